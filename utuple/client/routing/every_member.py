"""R2: an EF or CA counts only when every member of one epoch that it must reach has accepted it.

As soon as a newer line is heard, from a member or from anyone, all members of that one are called anew, and nobody is
waited for that is still silent: it may have been suspended for that. A member that is silent or has not heard of the
epoch yet is called again until the time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Generic, TypeVar

from utuple.client.routing.lines import Lines
from utuple.client.routing.outcome import Behind, fate_of
from utuple.client.routing.retrier import Retrier
from utuple.client.routing.retry import Fate, Tries
from utuple.client.routing.route import Target, targets
from utuple.cluster.line import Line
from utuple.errors import UTupleError
from utuple.model.utuple import UTuple

T = TypeVar("T")

Call = Callable[[Target, Line, bool], Awaitable[T]]
"""Bring it to one member, by this line, saying whether this is a retry. Raises `Behind` when the member is of another
epoch."""

_WORST_LAST = (Fate.UNREACHABLE, Fate.FULL, Fate.BEHIND, Fate.LOST)


def _nobody(target: Target, line: Line) -> bool:
    return False


class FanOut(Generic[T]):
    """One EF or CA on its way to every member."""

    def __init__(
        self,
        half: UTuple,
        lines: Lines,
        retrier: Retrier,
        silence_s: float,
        *,
        registers: bool = True,
    ) -> None:
        """After `silence_s` without an answer the line is looked up again. An EF that is only read registers nothing."""
        self._half = half
        self._lines = lines
        self._retrier = retrier
        self._silence_s = silence_s
        self._registers = registers
        self._accepted: dict[str, T] = {}
        self._line: Line | None = None
        self._may_be_registered = False
        """Some member has accepted it, or may have."""

    async def run(
        self,
        key: int,
        call: Call[T],
        tries: Tries,
        discard: Callable[[T], None] | None = None,
        has_accepted: Callable[[Target, Line], bool] = _nobody,
    ) -> tuple[Line, dict[str, T]]:
        """The line whose members all accepted, and what each gave. `discard` is given what was accepted under a line
        that turned out to be old, or in vain; who is known to have accepted is not called."""
        self._may_be_registered = tries.retry
        try:
            while True:
                error = await self._round(key, call, tries.deadline_s, discard, has_accepted)
                if error is None:
                    assert self._line is not None
                    return self._line, self._accepted
                tries = replace(tries, retry=tries.retry or self._may_be_registered)
                tries = await self._retrier.next_attempt(
                    tries, error, {key: self._line}, registers=self._registers
                )
                self._may_be_registered = tries.retry
        except BaseException:
            self._discard(discard)
            raise

    async def _round(
        self,
        key: int,
        call: Call[T],
        deadline_s: float,
        discard: Callable[[T], None] | None,
        has_accepted: Callable[[Target, Line], bool],
    ) -> Exception | None:
        """Every member that is missing is called once. The worst that happened, or None when all have accepted."""
        try:
            line = await self._lines.line(key, deadline_s)
        except UTupleError as unknown:
            return unknown
        if self._line is None or line.epoch != self._line.epoch:
            self._discard(discard)
            self._line = line
        missing = [
            target
            for target in targets(line, self._half)
            if target.member not in self._accepted and not has_accepted(target, line)
        ]
        if not missing:
            return None
        retry = self._may_be_registered
        calls = [self._outcome(target, call(target, line, retry)) for target in missing]
        return max(await self._errors(key, line, calls), key=_badness, default=None)

    async def _errors(
        self, key: int, line: Line, calls: list[Coroutine[Any, Any, Exception | None]]
    ) -> list[Exception]:
        """What went wrong, of all calls or of those that ended before a newer line was heard."""
        tasks = [asyncio.create_task(one) for one in calls]
        with self._lines.newer_than({key: line}) as overtaken:
            try:
                while missing := [task for task in tasks if not task.done()]:
                    awaited: list[asyncio.Future[Any]] = [*missing, overtaken]
                    done, _ = await asyncio.wait(
                        awaited, timeout=self._silence_s, return_when=asyncio.FIRST_COMPLETED
                    )
                    if overtaken in done:
                        break
                    if not done:  # whoever is silent may be suspended, and we were not told
                        self._lines.refresh(key)
            finally:
                cut = [task for task in tasks if task.cancel()]
                if cut:
                    await asyncio.gather(*cut, return_exceptions=True)
        self._may_be_registered = self._may_be_registered or bool(cut)
        ended = [task.result() for task in tasks if not task.cancelled()]
        errors = [error for error in ended if error is not None]
        return [*errors, Behind("a newer line was heard")] if cut else errors

    async def _outcome(self, target: Target, calling: Awaitable[T]) -> Exception | None:
        try:
            self._accepted[target.member] = await calling
        except (UTupleError, Behind) as error:
            return error
        self._may_be_registered = True
        return None

    def _discard(self, discard: Callable[[T], None] | None) -> None:
        accepted, self._accepted = self._accepted, {}
        if discard is not None:
            for value in accepted.values():
                discard(value)


def _badness(error: Exception) -> int:
    """What no attempt can mend comes first, then what may have been registered."""
    fate = fate_of(error)
    return len(_WORST_LAST) if fate is None else _WORST_LAST.index(fate)
