"""The demo's meters, all of one subject and type. Uses the public SDK only."""

from __future__ import annotations

import asyncio
import time
from random import Random

import utuple
from utuple.client.space import Space
from utuple.demo.overload import METERS, PERIOD_S, meter_event
from utuple.demo.scenario import Event


class Meters:
    """Each emits its next event when its period is over and the last one is durable."""

    def __init__(self, space: Space, dice: Random) -> None:
        self.events: list[Event] = []
        """Those registered."""
        self._space = space
        self._dice = dice
        self._numbered = 0
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        self._tasks = [
            asyncio.create_task(self._emit_on(meter), name=f"meter-{meter}")
            for meter in range(METERS)
        ]

    async def end(self) -> None:
        """What is under way is waited for."""
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def leave(self) -> None:
        """At once, whatever is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def raise_error(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _emit_on(self, meter: int) -> None:
        due_s = time.monotonic() + PERIOD_S * meter / METERS
        while True:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            if self._is_over:
                return
            due_s = time.monotonic() + PERIOD_S  # a meter that was kept waiting does not catch up
            event = meter_event(self._numbered, meter, self._dice)
            self._numbered += 1
            try:
                await self._space.emit(**event)
            except utuple.OutcomeUnknown as error:
                await self._space.retry(error)
            self.events.append(event)
