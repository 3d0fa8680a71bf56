"""Sensors that emit one by one, and gateways that emit many at once, each with a space of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from benchmarks.chaos import record
from benchmarks.chaos.load.part import RETRIES, VERB_LIMIT_S, User, settled
from benchmarks.chaos.load.scene import families, random_event, written
from utuple.client.space import Space
from utuple.model.utuple import Family
from utuple.runtime.clock import now_us

FAMILIES_OF_EACH = 3
"""In the section of each server of the first table."""
WAITING = 2_000
"""Sendings of one emitter that wait for their answer; beyond it the emitter waits, too. Far above what
gathers at one dead server, so that the keys of the others go on."""


@dataclass(frozen=True, slots=True)
class Habit:
    at_once: tuple[int, int] = (1, 1)
    """How many events it sends at once."""
    verb_limit_s: float = VERB_LIMIT_S
    retries: int = RETRIES


HABITS = (
    Habit(),
    Habit(),
    Habit((5, 60)),
    Habit((1, 3), verb_limit_s=1.5, retries=0),  # soon knows that it does not know
)


def sensed_families(servers: int) -> list[Family]:
    """The first one is the hot one."""
    return families(servers, FAMILIES_OF_EACH, "truck")


async def sense(user: User) -> None:
    rate_per_s = user.part.rate_per_s / len(HABITS)
    emitters = [_Emitter(user, n, habit, rate_per_s) for n, habit in enumerate(HABITS)]
    await asyncio.gather(*(emitter.run() for emitter in emitters))


class _Emitter:
    def __init__(self, user: User, number: int, habit: Habit, rate_per_s: float) -> None:
        self._user = user
        self._habit = habit
        self._rate_per_s = rate_per_s
        self._families = sensed_families(user.part.servers)
        self._dice = user.part.dice(f"emitter-{number}")
        self._waiting: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        space = await self._user.opened(self._habit.verb_limit_s)
        try:
            while not self._user.stay.over.is_set():
                count = self._dice.randint(*self._habit.at_once)
                self._waiting.add(asyncio.create_task(self._send(space, count)))
                await asyncio.sleep(self._dice.expovariate(self._rate_per_s / count))
                await self._tidy(WAITING)
            await self._tidy(1)
        finally:
            await space.close()

    async def _tidy(self, most: int) -> None:
        """Until fewer than so many wait. What a sending raises is a bug, and ends the process."""
        while len(self._waiting) >= most:
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)
            self._collect()
        self._collect()

    def _collect(self) -> None:
        for task in [task for task in self._waiting if task.done()]:
            self._waiting.discard(task)
            task.result()

    async def _send(self, space: Space, count: int) -> None:
        recorder, retries, events = self._user.recorder, self._habit.retries, []
        for _ in range(count):
            event = random_event(self._dice, self._user.next_number(), self._families, now_us())
            recorder.write(record.EMIT, written(event))
            events.append(event)
        if count == 1:
            outcome, _ = await settled(space, lambda: space.emit(**events[0]), retries)
        else:
            outcome, _ = await settled(space, lambda: space.emit_many(events), retries)
        numbers = [event["data"]["n"] for event in events]
        recorder.write(record.EMITTED, {"ns": numbers, "outcome": outcome})
