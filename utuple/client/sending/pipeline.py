"""How the many of `emit_many` and `command_many` travel: in slices, several on their way at once.

A slice is taken from the caller's iterable and built in one step that needs no event loop, so that a blocking
caller's iterable runs on its own thread; sending and waiting belong to the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Generic, Protocol, TypeVar

from utuple.errors import InvalidInput, OutcomeUnknown, Refused, SomeRegistered, UTupleError

_RULE = "must be an iterable of mappings, each with the arguments of one call"
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Pipeline(Protocol[R_co]):
    def build_next(self) -> bool:
        """Take the next slice from the iterable and build it. False: there is no more, or no use in more."""

    async def send_built(self) -> None:
        """What was built is on its way when this returns, which may be when there is room for it."""

    async def drain(self) -> None:
        """Until all that was sent has been answered or has failed."""

    def outcome(self) -> R_co:
        """What the verb returns, or raises. What was not sent, or not answered, was cut by closing."""

    def so_far(self) -> str:
        """What is certain, for a caller that is interrupted."""

    def cancel_all(self) -> None:
        """The caller has gone."""


async def run_pipeline(pipeline: Pipeline[R_co]) -> R_co:
    try:
        while pipeline.build_next():
            await pipeline.send_built()
        await pipeline.drain()
    except BaseException as error:
        error.add_note(pipeline.so_far())
        pipeline.cancel_all()
        raise
    return pipeline.outcome()


def reaching(rows: int, error: UTupleError) -> UTupleError:
    """The error of a pipeline that took so many from its iterable."""
    if isinstance(error, OutcomeUnknown):
        error.reached = rows
    return error


class Source(Generic[T]):
    """A caller's iterable. It may fail: what it gave before that is as good as if it had ended there."""

    def __init__(self, name: str, items: Iterable[T]) -> None:
        """`name`: what the verb calls it, for the error of a caller that gives something else."""
        self._items = _checked(name, items)
        self.error: Exception | None = None

    def take(self, most: int) -> list[T]:
        taken: list[T] = []
        if self.error is None:
            try:
                taken.extend(islice(self._items, most))
            except Exception as error:  # noqa: BLE001  the caller's own: it is told
                self.error = error
        return taken

    def failed(
        self,
        reached: int,
        registered: int,
        *,
        refused: Mapping[int, Refused] | None = None,
        receipts: object = None,
    ) -> Exception | None:
        """What to tell the caller if it has failed. When nothing came before that, its own error says it all."""
        if self.error is None or not reached:
            return self.error
        reason = f"{type(self.error).__name__}: {self.error}"
        told = SomeRegistered(reason, reached, registered, refused=refused, receipts=receipts)
        told.__cause__ = self.error
        return told


def _checked(name: str, items: Iterable[T]) -> Iterator[T]:
    if hasattr(items, "__aiter__"):
        raise InvalidInput(
            name, items, f"{_RULE}; this one is asynchronous: give lists of what it gives"
        )
    if isinstance(items, str | bytes | Mapping):
        raise InvalidInput(name, items, f"{_RULE}; for one alone give a list of it")
    try:
        return iter(items)
    except TypeError:
        raise InvalidInput(name, items, _RULE) from None
