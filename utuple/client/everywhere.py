"""R2: an EF or CA counts only when every serving member of one epoch has accepted it.

When a member answers with a newer line, all members of that one are visited anew; a member that is silent
or has not heard of the epoch yet is visited again until the time is over.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from utuple.client.attempt import Behind, fate_of, given_up, retry_after_s
from utuple.client.config import Config
from utuple.client.lines import Lines
from utuple.client.retry import Again, Fate, GiveUp, Policy, Tries, after
from utuple.client.route import Stop, stops
from utuple.cluster.line import Line
from utuple.errors import UTupleError

T = TypeVar("T")

Visit = Callable[[Stop, Line, bool], Awaitable[T]]
"""Bring it to one member, by this line, saying whether this is a retry. Raises `Behind` when the member
is of another epoch."""

_WORST_LAST = (Fate.UNREACHABLE, Fate.FULL, Fate.BEHIND, Fate.LOST)


class Tour(Generic[T]):
    """One EF or CA on its way to every member; an EF that is only read registers nothing."""

    def __init__(
        self, lines: Lines, dice: random.Random, config: Config, *, registers: bool = True
    ) -> None:
        self._lines = lines
        self._dice = dice
        self._policy = Policy(config.first_wait_s, config.most_wait_s, config.same_member_s)
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
    ) -> tuple[Line, dict[str, T]]:
        """The line whose members all accepted, and what each gave. `abandon` is given what was accepted
        under a line that turned out to be old, or in vain."""
        self._touched = tries.retry
        try:
            while True:
                error = await self._round(key, visit, abandon)
                if error is None:
                    assert self._line is not None
                    return self._line, self._accepted
                tries = await self._after(key, error, tries)
        except BaseException:
            self._abandon(abandon)
            raise

    async def _round(
        self, key: int, visit: Visit[T], abandon: Callable[[T], None] | None
    ) -> Exception | None:
        try:
            line = await self._lines.line(key)
        except UTupleError as unknown:
            return unknown
        if self._line is None or line.epoch != self._line.epoch:
            self._abandon(abandon)
            self._line = line
        missing = [stop for stop in stops(line) if stop.member not in self._accepted]
        visits = (self._outcome(visit(stop, line, self._touched)) for stop in missing)
        outcomes = await asyncio.gather(*visits)
        errors = []
        for stop, (value, error) in zip(missing, outcomes, strict=True):
            if error is not None:
                errors.append(error)
            else:
                self._accepted[stop.member] = value  # type: ignore[assignment]
                self._touched = True
        return max(errors, key=_badness, default=None)

    async def _outcome(self, visit: Awaitable[T]) -> tuple[T | None, Exception | None]:
        try:
            return await visit, None
        except (UTupleError, Behind) as error:
            return None, error

    async def _after(self, key: int, error: Exception, tries: Tries) -> Tries:
        fate = fate_of(error)
        if fate is None:
            raise error
        known = self._lines.known(key)
        newer = self._line is None or (known is not None and known.epoch > self._line.epoch)
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
            await self._lines.refresh(key)
        await asyncio.sleep(step.wait_s)
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
