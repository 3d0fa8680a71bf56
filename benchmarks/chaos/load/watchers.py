"""Watchers: seats that stay, seats that come and go, seats with a reader's name that come back and go on.

Every delivery is written down before it is acknowledged: a killed reader has either both or may get it again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import utuple
from benchmarks.chaos import record
from benchmarks.chaos.load.part import COME_AGAIN_S, User, settled
from benchmarks.chaos.load.scene import Asked, random_asked
from benchmarks.chaos.load.sensors import sensed_families
from utuple.client.receiving.delivery import Delivery
from utuple.client.receiving.watch import Watch
from utuple.client.space import Space
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log

TAKE = 200
STAYS_S = (3.0, 40.0)
AWAY_S = (0.2, 12.0)
LAZY_SHARE = 0.1
"""Of what a reader takes is acknowledged only with the next."""

_log = Log("benchmarks.chaos.load")


@dataclass(frozen=True, slots=True)
class Seat:
    name: str
    named: bool
    """Its reader has a name: it comes back and goes on."""
    leaves: bool
    stays_s: tuple[float, float] = STAYS_S
    away_s: tuple[float, float] = AWAY_S


AUDIENCE = (
    *(Seat(f"steady-{n}", named=False, leaves=False) for n in range(5)),
    *(Seat(f"passing-{n}", named=False, leaves=True) for n in range(4)),
    # EFs that come and are cancelled while others are taught: moves must not lose or revive one.
    *(Seat(f"fleeting-{n}", False, True, (0.0, 2.0), (0.0, 0.5)) for n in range(3)),
    *(Seat(f"regular-{n}", named=True, leaves=True) for n in range(6)),
)
READER = tuple(Seat(f"resuming-{n}", named=True, leaves=False) for n in range(3))
"""Of a process that is killed and started again."""
SEATS_A_SPACE = 3


async def watch(user: User, seats: tuple[Seat, ...]) -> None:
    spaces = [await user.opened() for _ in range(0, len(seats), SEATS_A_SPACE)]
    try:
        sitters = [_Sitter(user, s, spaces[n // SEATS_A_SPACE]) for n, s in enumerate(seats)]
        await asyncio.gather(*(sitter.run() for sitter in sitters))
    finally:
        await asyncio.gather(*(space.close() for space in spaces))


class _Sitter:
    def __init__(self, user: User, seat: Seat, space: Space) -> None:
        self._user = user
        self._seat = seat
        self._space = space
        self._families = sensed_families(user.part.servers)
        self._dice = user.part.dice(seat.name)
        self._name = f"{user.part.program}.{seat.name}"
        self._visits = 0

    async def run(self) -> None:
        stay = self._user.stay
        if self._seat.leaves:
            await stay.away(self._dice.uniform(*self._seat.away_s))
        while not stay.over.is_set():
            if not await self._visit():
                await stay.rest(COME_AGAIN_S)
            elif self._seat.leaves:
                await stay.away(self._dice.uniform(*self._seat.away_s))

    def _asked(self) -> tuple[str, Asked]:
        """A reader with a name asks for the same each time, in each life of its process."""
        if self._seat.named:
            dice = self._user.part.steady_dice(self._seat.name)
            return self._name, random_asked(dice, self._families, 0, narrow=False)
        self._visits += 1
        label = f"{self._name}.{self._user.part.life}.{self._visits}"
        return label, random_asked(self._dice, self._families, now_us(), narrow=self._seat.leaves)

    async def _visit(self) -> bool:
        """False: it could not be opened."""
        label, asked = self._asked()
        recorder, named = self._user.recorder, self._seat.named
        recorder.write(record.ASK, {"label": label, "named": named, "asked": asked.said})
        watch = self._space.watch(**asked.arguments, reader=label if named else None)
        outcome, opened = await settled(self._space, watch.open)
        if outcome != "OK":
            _log.warning("could not be opened", label=label, outcome=outcome)
            await watch.close()
            return False
        recorder.write(record.OPEN, {"label": label})
        try:
            await self._take(label, cast(Watch, opened))
        finally:
            if not self._user.stay.over.is_set():  # else it was there to the end
                recorder.write(record.CLOSE, {"label": label})
            await watch.close()
        return True

    async def _take(self, label: str, watch: Watch) -> None:
        stay, held = self._user.stay, list[Delivery]()
        leaves_s = monotonic_s() + self._dice.uniform(*self._seat.stays_s)
        while not stay.over.is_set():
            if self._seat.leaves and not stay.calm.is_set() and monotonic_s() > leaves_s:
                return
            try:
                async with asyncio.timeout(COME_AGAIN_S):
                    found = await watch.take(TAKE)
            except TimeoutError:
                continue
            except utuple.ReaderReplaced as error:
                # Our own predecessor, killed or given up, whose stream the server hears of late.
                _log.error("replaced", label=label, reason=error)
                return
            numbers = [event.data["n"] for event in found]
            self._user.recorder.write(record.GOT, {"label": label, "ns": numbers})
            lazy = self._dice.random() < LAZY_SHARE
            for event in [*held, *([] if lazy else found)]:
                await event.ack()
            held = found if lazy else []
