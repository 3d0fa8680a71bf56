"""python -m benchmarks.slow_reader.programs SETTINGS: one process of sensors, of readers with a connection each, or of one reader
with many EFs on one connection. Every address has an event in turn; each says when it was sent."""

from __future__ import annotations

import asyncio
import resource
import sys
from array import array
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import cycle
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.pacing import LOOK_AGAIN_S, pace
from benchmarks.windows import share
from utuple.client.receiving.watch import Watch
from utuple.client.space import Space
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

CALLS, CALL_ROWS = 4, 500
"""Of `full`: on their way at once, and the events of each."""
GIVE_UP_S = 60.0
"""Without any delivery."""
OPENING = 10
"""Readers that are opened at once: `connect` gives up after 5 s, also on a machine that is busy."""


class Sensors:
    def __init__(self, space: Space, about: Mapping[str, str], addresses: int) -> None:
        self._space, self._about = space, about
        self._addresses = cycle(f"{number}" for number in range(addresses))

    def _event(self, sent_s: float) -> dict[str, Any]:
        data = {"sent_s": sent_s}
        return {**self._about, "address": next(self._addresses), "data": data, "lifetime_s": 600.0}

    async def pace(self, question: Mapping[str, Any]) -> Answer:
        """One by one, at a fixed rate."""
        rows = round(question["rate_per_s"] * question["seconds"])
        emitting: set[asyncio.Task[None]] = set()

        async def start(_: int) -> None:
            task = asyncio.create_task(self._space.emit(**self._event(monotonic_s())))
            emitting.add(task)
            task.add_done_callback(emitting.discard)

        await pace(range(rows), question["rate_per_s"], start)
        await asyncio.gather(*emitting)
        return {"count": rows}

    async def full(self, question: Mapping[str, Any]) -> Answer:
        """As many as are taken; of another type, if that is asked for."""
        began_s, more = monotonic_s(), question.get("more", {})
        until_s = began_s + question["seconds"]

        async def emit() -> int:
            rows = 0
            while monotonic_s() < until_s:
                await self._space.emit_many([self._event(0.0) | more for _ in range(CALL_ROWS)])
                rows += CALL_ROWS
            return rows

        rows = sum(await asyncio.gather(*(emit() for _ in range(CALLS))))
        return {"count": rows, "per_s": rows / (monotonic_s() - began_s)}


class Readers:
    """Watches, and what came to them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._about = {"subject": given["subject"], "type": given["type"]}
        self._stack = AsyncExitStack()
        self._delays_s = array("d")
        self._count = 0

    async def come(self, question: Mapping[str, Any]) -> Answer:
        """So many watches of an address, on a connection each or on one for all; or one of all that comes from now on."""
        everything, more = question.get("everything", False), question.get("more", {})
        since = {"since": datetime.now(UTC)} if everything else {}
        numbers, alone = range(question["watches"]), question["connections"]
        gate = asyncio.Semaphore(OPENING)
        shared = None if alone else await self._connect()

        async def open_one(number: int) -> None:
            async with gate:
                space = shared or await self._connect()
                own = {"address": f"{number % self._given['addresses']}"}
                asked = self._about | more | (since if everything else own)
                watch = space.watch(**asked)
                await self._stack.enter_async_context(watch)
                reading = asyncio.create_task(self._read(watch))
                self._stack.callback(reading.cancel)

        await asyncio.gather(*map(open_one, numbers))
        return {}

    async def _connect(self) -> Space:
        return await self._stack.enter_async_context(utuple.connect(*self._given["managers"]))

    async def _read(self, watch: Watch) -> None:
        async for event in watch:
            self._count += 1
            if sent_s := event.data["sent_s"]:
                self._delays_s.append(monotonic_s() - sent_s)

    async def received(self, question: Mapping[str, Any]) -> Answer:
        """Waits for so many; how long those of a fixed rate took."""
        count, seen, give_up_s = question["count"], -1, monotonic_s() + GIVE_UP_S
        while self._count < count and monotonic_s() < give_up_s:
            if self._count > seen:
                seen, give_up_s = self._count, monotonic_s() + GIVE_UP_S
            await asyncio.sleep(LOOK_AGAIN_S)
        delays_s = sorted(self._delays_s)
        answer = {"missed": max(0, count - self._count), "repeated": max(0, self._count - count)}
        if delays_s:
            answer |= {"p50_s": share(delays_s, 0.5), "p99_s": share(delays_s, 0.99)}
        self._count = 0
        del self._delays_s[:]
        return answer

    async def leave(self, _: Mapping[str, Any]) -> Answer:
        """Watches without a name end with their programs."""
        await self._stack.aclose()
        return {}


async def main(stop: asyncio.Event) -> None:
    given = settings()
    if given["emits"]:
        async with utuple.connect(*given["managers"]) as space:
            about = {"subject": given["subject"], "type": given["type"]}
            sensors = Sensors(space, about, given["addresses"])
            await answer_questions({"pace": sensors.pace, "full": sensors.full}, stop)
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    readers = Readers(given)
    try:
        handlers = {"come": readers.come, "received": readers.received, "leave": readers.leave}
        await answer_questions(handlers, stop)
    finally:
        await readers.leave({})


if __name__ == "__main__":
    sys.exit(run_program("slow-reader", main))
