"""R2: an EF or CA counts only when every serving member of one epoch has accepted it.

As soon as a newer line is heard, from a member or from anyone, all members of that one are visited anew, and
nobody is waited for that is still silent: it may have been suspended for that. A member that is silent or has
not heard of the epoch yet is visited again until the time is over.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from utuple.client.config import Config
from utuple.client.routing.lines import Lines
from utuple.client.routing.outcome import Behind, fate_of, given_up, retry_after_s
from utuple.client.routing.retry import Again, Fate, GiveUp, Tries, after
from utuple.client.routing.route import Stop, stops
from utuple.cluster.line import Line
from utuple.errors import Closed, UTupleError
from utuple.model.utuple import Kind

T = TypeVar("T")

Visit = Callable[[Stop, Line, bool], Awaitable[T]]
"""Bring it to one member, by this line, saying whether this is a retry. Raises `Behind` when the member
is of another epoch."""

_WORST_LAST = (Fate.UNREACHABLE, Fate.FULL, Fate.BEHIND, Fate.LOST)


def _never(stop: Stop, line: Line) -> bool:
    return False


class Tour(Generic[T]):
    """One EF or CA on its way to every member; an EF that is only read registers nothing."""

    def __init__(
        self,
        kind: Kind,
        lines: Lines,
        dice: random.Random,
        config: Config,
        *,
        registers: bool = True,
    ) -> None:
        self._kind = kind
        self._lines = lines
        self._dice = dice
        self._silence_s = config.most_wait_s
        self._policy = config.retry
        self._accepted: dict[str, T] = {}
        self._line: Line | None = None
        self._registers = registers
        self._touched = False

    async def run(
        self,
        key: int,
        visit: Visit[T],
        tries: Tries,
        abandon: Callable[[T], None] | None = None,
        is_sure: Callable[[Stop, Line], bool] = _never,
    ) -> tuple[Line, dict[str, T]]:
        """The line whose members all accepted, and what each gave. `abandon` is given what was accepted
        under a line that turned out to be old, or in vain; who has surely accepted is not visited."""
        self._touched = tries.retry
        try:
            while True:
                error = await self._round(key, visit, tries.deadline_s, abandon, is_sure)
                if error is None:
                    assert self._line is not None
                    return self._line, self._accepted
                tries = await self._after(key, error, tries)
        except BaseException:
            self._abandon(abandon)
            raise

    async def _round(
        self,
        key: int,
        visit: Visit[T],
        deadline_s: float,
        abandon: Callable[[T], None] | None,
        is_sure: Callable[[Stop, Line], bool],
    ) -> Exception | None:
        try:
            line = await self._lines.line(key, deadline_s)
        except UTupleError as unknown:
            return unknown
        if self._line is None or line.epoch != self._line.epoch:
            self._abandon(abandon)
            self._line = line
        missing = [
            stop
            for stop in stops(line, self._kind)
            if stop.member not in self._accepted and not is_sure(stop, line)
        ]
        if not missing:
            return None
        visits = [self._outcome(stop, visit(stop, line, self._touched)) for stop in missing]
        return max(await self._outcomes(key, line, visits), key=_badness, default=None)

    async def _outcomes(
        self, key: int, line: Line, visits: list[Coroutine[Any, Any, Exception | None]]
    ) -> list[Exception]:
        """What went wrong, of all visits or of those that ended before a newer line was heard."""
        tasks = [asyncio.create_task(one) for one in visits]
        with self._lines.newer_than({key: line}) as newer:
            told = asyncio.create_task(newer.wait())
            try:
                while missing := [task for task in tasks if not task.done()]:
                    done, _ = await asyncio.wait(
                        [*missing, told],
                        timeout=self._silence_s,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if told in done:
                        break
                    if not done:  # whoever is silent may be suspended, and nobody told us
                        self._lines.refresh(key)
            finally:
                told.cancel()
                cut = [task for task in tasks if task.cancel()]
                await asyncio.gather(*cut, return_exceptions=True)
        self._touched = self._touched or bool(cut)
        ended = [task.result() for task in tasks if not task.cancelled()]
        errors = [error for error in ended if error is not None]
        return [*errors, Behind("a newer line was heard")] if cut else errors

    async def _outcome(self, stop: Stop, visit: Awaitable[T]) -> Exception | None:
        try:
            self._accepted[stop.member] = await visit
        except (UTupleError, Behind) as error:
            return error
        self._touched = True
        return None

    async def _after(self, key: int, error: Exception, tries: Tries) -> Tries:
        fate = fate_of(error)
        if fate is None:
            unknown = self._registers and isinstance(error, Closed) and self._touched
            raise given_up(error, unknown=unknown) from None
        newer = self._lines.has_newer(key, self._line)
        step = after(
            tries,
            fate,
            "",
            now_s=asyncio.get_running_loop().time(),
            dice=self._dice.random(),
            policy=self._policy,
            newer_line=fate is Fate.BEHIND and newer,
            retry_after_s=retry_after_s(error),
        )
        if isinstance(step, GiveUp):
            unknown = self._registers and (step.unknown or self._touched)
            raise given_up(error, unknown=unknown) from None
        return await self._wait(key, step)

    async def _wait(self, key: int, step: Again) -> Tries:
        self._touched = self._touched or step.tries.retry
        if step.refresh:
            self._lines.refresh(key)
        await self._lines.pause(step.wait_s, {key: self._line})
        return step.tries

    def _abandon(self, abandon: Callable[[T], None] | None) -> None:
        accepted, self._accepted = self._accepted, {}
        if abandon is not None:
            for value in accepted.values():
                abandon(value)


def _badness(error: Exception) -> int:
    """What no attempt can mend comes first, then what may have been registered."""
    fate = fate_of(error)
    return len(_WORST_LAST) if fate is None else _WORST_LAST.index(fate)
