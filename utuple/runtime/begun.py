"""A coroutine that runs at once, up to where it first waits, and is awaited later."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """In the task that begins it: there it is to be awaited, once."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._waits_for: Any = None
        self._result: T | None = None
        self._error: BaseException | None = None
        self._is_over = False
        try:
            self._waits_for = coroutine.send(None)
        except StopIteration as end:
            self._result, self._is_over = end.value, True
        except Exception as error:  # noqa: BLE001  for whoever awaits it
            self._error, self._is_over = error, True

    def __await__(self) -> Generator[Any, Any, T]:
        if self._error is not None:
            raise self._error
        if self._is_over:
            return self._result  # type: ignore[return-value]
        try:
            while True:
                try:
                    sent = yield self._waits_for
                except BaseException as thrown:  # noqa: BLE001  cancelled: it is told
                    self._waits_for = self._coroutine.throw(thrown)
                else:
                    self._waits_for = self._coroutine.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result
