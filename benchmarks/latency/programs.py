"""python -m benchmarks.latency.programs SETTINGS: an SDK process that emits at a fixed rate, or one that watches.
Each event says when it was sent, as the rivals' messages do."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Mapping
from typing import Any

import utuple
from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.pacing import Arrivals, pace
from utuple.client.receiving.watch import Watch
from utuple.client.space import Space
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program


class Sensors:
    """Each event is emitted by a task of its own, as sensors do that know nothing of each other."""

    def __init__(self, space: Space, lifetime_s: float) -> None:
        self._space = space
        self._lifetime_s = lifetime_s
        self._emitting: set[asyncio.Task[None]] = set()

    async def emit(self, question: Mapping[str, Any]) -> Answer:
        """All are answered when it answers."""
        ready = trucks.events(question["count"], question["seed"])
        gc.collect()
        gc.freeze()
        per_s = await pace(ready, question["rate_per_s"], self._start)
        await asyncio.gather(*self._emitting)
        return {"per_s": per_s}

    async def _start(self, event: dict[str, Any]) -> None:
        event["data"]["sent_s"] = monotonic_s()
        emitting = asyncio.create_task(self._space.emit(**event, lifetime_s=self._lifetime_s))
        self._emitting.add(emitting)
        emitting.add_done_callback(self._forget)

    def _forget(self, emitting: asyncio.Task[None]) -> None:
        if emitting.exception() is None:  # one that failed is kept for who waits for all
            self._emitting.discard(emitting)


async def watch(watch: Watch, arrivals: Arrivals) -> None:
    async for event in watch:
        arrivals.take(event.data["sent_s"])
        await event.ack()


async def main(stop: asyncio.Event) -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space:
        if not given["watching"]:
            sensors = Sensors(space, given.get("lifetime_s", trucks.LIFETIME_S))
            await answer_questions({"emit": sensors.emit}, stop)
            return
        arrivals = Arrivals()
        reader = given.get("reader", "live")
        async with space.watch(subject=trucks.SUBJECT, type=trucks.TYPE, reader=reader) as events:
            watching = asyncio.create_task(watch(events, arrivals))
            try:
                await answer_questions({"received": arrivals.received}, stop)
            finally:
                watching.cancel()


if __name__ == "__main__":
    sys.exit(run_program("latency", main))
