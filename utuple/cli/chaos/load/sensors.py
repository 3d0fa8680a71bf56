"""Sensors that emit one by one, and gateways that emit many at once, each with a space of its own."""

from __future__ import annotations

import asyncio

from utuple.cli.chaos import record
from utuple.cli.chaos.load.part import User, settled
from utuple.cli.chaos.load.scene import families, random_event, written
from utuple.client.space import Space
from utuple.model.utuple import Family
from utuple.runtime.clock import now_us

FAMILIES_OF_EACH = 3
"""In the section of each server of the first table."""
AT_ONCE = ((1, 1), (1, 1), (1, 1), (5, 60))
"""Of each emitter: how many events it sends at once."""
WAITING = 100
"""Sendings of one emitter that wait for their answer; beyond it the emitter waits, too."""


def sensed_families(servers: int) -> list[Family]:
    """The first one is the hot one."""
    return families(servers, FAMILIES_OF_EACH, "truck")


async def sense(user: User) -> None:
    rate_per_s = user.part.rate_per_s / len(AT_ONCE)
    emitters = [_Emitter(user, n, at_once, rate_per_s) for n, at_once in enumerate(AT_ONCE)]
    await asyncio.gather(*(emitter.run() for emitter in emitters))


class _Emitter:
    def __init__(
        self, user: User, number: int, at_once: tuple[int, int], rate_per_s: float
    ) -> None:
        self._user = user
        self._at_once = at_once
        self._rate_per_s = rate_per_s
        self._families = sensed_families(user.part.servers)
        self._dice = user.part.dice(f"emitter-{number}")
        self._waiting: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        space = await self._user.opened()
        try:
            while not self._user.stay.over.is_set():
                count = self._dice.randint(*self._at_once)
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
        recorder, events = self._user.recorder, []
        for _ in range(count):
            event = random_event(self._dice, self._user.next_number(), self._families, now_us())
            recorder.write(record.EMIT, written(event))
            events.append(event)
        if count == 1:
            outcome, _ = await settled(space, lambda: space.emit(**events[0]))
        else:
            outcome, _ = await settled(space, lambda: space.emit_many(events))
        numbers = [event["data"]["n"] for event in events]
        recorder.write(record.EMITTED, {"ns": numbers, "outcome": outcome})
