"""An event loop whose time jumps: when nothing is left to do, it is at once the time of the next timer."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class _Jumping(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("nothing will ever happen: the test waits for something nobody does")
        self.now_s += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an asynchronous test in a loop of its own, whose hours take no time. Whatever the loop would only log (a
    callback that raises, a task whose error nobody retrieves) fails the test: every task has an owner."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        unseen: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.get_loop().set_exception_handler(lambda _, told: unseen.append(told))
            runner.run(test(*args, **kwargs))
        assert not unseen, unseen

    return run
