"""After a failed attempt: wait and try again, or give up. The one driver around the pure decision in `retry`.

Whoever makes attempts (the registrar, a fan-out to every member, calls to sCA servers, reads) says what went wrong and which
lines it went by. It gets back what is known for the next attempt, after the wait that is due, or the error for the
caller. A wait ends early when one of those lines is overtaken by a newer one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

from utuple.client.config import Config
from utuple.client.routing.lines import Lines
from utuple.client.routing.outcome import fate_of, given_up, is_unknown, retry_after_s
from utuple.client.routing.retry import Fate, GiveUp, Tries, after
from utuple.cluster.line import Line

ByKey = Mapping[int, Line | None]
"""The line that each key was routed by; None if it is not known."""


class Retrier:
    def __init__(self, lines: Lines, dice: random.Random, config: Config) -> None:
        self._lines = lines
        self._dice = dice
        self._policy = config.retry

    def is_overtaken(self, error: Exception, lines: ByKey) -> bool:
        """A server refused because of the epoch, and a newer line is known by now: no server is to blame."""
        return fate_of(error) is Fate.BEHIND and any(
            self._lines.has_newer(key, line) for key, line in lines.items()
        )

    async def next_attempt(
        self,
        tries: Tries,
        error: Exception,
        lines: ByKey,
        *,
        member: str = "",
        has_others: bool = False,
        registers: bool = True,
        pending: object = None,
    ) -> Tries:
        """What the next attempt is to know, when it is due; raises when there is none. `member`: who failed, if it was
        chosen among several; `has_others`: some of those were not tried yet. What only reads (`registers` is False) never
        ends with an unknown outcome. `pending` is what `space.retry` will need."""
        fate = fate_of(error)
        if fate is None:
            unknown = registers and is_unknown(error, tries)
            raise given_up(error, unknown=unknown, pending=pending) from None
        step = after(
            tries,
            fate,
            member,
            now_s=asyncio.get_running_loop().time(),
            dice=self._dice.random(),
            policy=self._policy,
            newer_line=self.is_overtaken(error, lines),
            others=has_others,
            retry_after_s=retry_after_s(error),
        )
        if isinstance(step, GiveUp):
            unknown = registers and step.unknown
            raise given_up(error, unknown=unknown, pending=pending) from None
        if step.refresh:
            for key in lines:
                self._lines.refresh(key)
        await self._lines.pause(step.wait_s, lines)
        return step.tries
