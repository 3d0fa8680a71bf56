"""python -m benchmarks.overload.sensors SETTINGS: several sensor programs in one process. A call is made whenever it
is due, whether or not the last ones are answered, and every call's answer is noted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from utuple.client.space import Space
from utuple.errors import NotRegistered, OutcomeUnknown
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

SUBJECT, TYPE = "sensor", "reading"
LIFETIME_S = 3_600.0
TICK_S = 0.005
RETRIES = 3
OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


class Sensors:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._name: str = given["name"]
        self._managers: list[str] = given["managers"]
        self._rows: int = given["rows"]
        self._timeout_s: float = given["timeout_s"]
        self._spaces: list[Space] = []
        self._stack = AsyncExitStack()
        self._calls: set[asyncio.Task[None]] = set()
        self._made = 0
        self._retried = 0
        self._outcomes: dict[str, str] = {}
        self._probing: asyncio.Task[None] | None = None
        self._probes: list[tuple[float, float, str]] = []

    async def open(self, question: Mapping[str, Any]) -> Answer:
        for _ in range(question["spaces"]):
            space = utuple.connect(*self._managers, timeout_s=self._timeout_s)
            self._spaces.append(await self._stack.enter_async_context(space))
        return {}

    async def closed_loop(self, question: Mapping[str, Any]) -> Answer:
        """What is carried when each space waits for its answers, two calls at a time."""
        began_s = monotonic_s()
        until_s = began_s + question["seconds"]

        async def sensor(space: Space) -> int:
            rows = 0
            while monotonic_s() < until_s:
                await self._call(space)
                rows += self._rows
            return rows

        rows = sum(await asyncio.gather(*(sensor(space) for space in self._spaces * 2)))
        return {"per_s": rows / (monotonic_s() - began_s)}

    async def flood(self, question: Mapping[str, Any]) -> Answer:
        """So many a second for so long; answered when every call has its answer."""
        began_s = monotonic_s()
        first = self._made
        total = int(question["rate_per_s"] * question["seconds"] / self._rows)
        while self._made - first < total:
            due = int((monotonic_s() - began_s) * question["rate_per_s"] / self._rows)
            for _ in range(first + min(due, total) - self._made):
                space = self._spaces[self._made % len(self._spaces)]
                call = asyncio.create_task(self._call(space))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                await asyncio.sleep(0)
            await asyncio.sleep(TICK_S)
        ended_s = monotonic_s()
        await asyncio.gather(*self._calls)
        offered_per_s = total * self._rows / (ended_s - began_s)
        return {"offered_per_s": offered_per_s, "ended_s": ended_s, "answered_s": monotonic_s()}

    async def _call(self, space: Space) -> None:
        address = f"{self._name}-{self._made}"
        self._made += 1
        events = [
            {
                "subject": SUBJECT,
                "type": TYPE,
                "address": address,
                "data": {"n": number},
                "lifetime_s": LIFETIME_S,
            }
            for number in range(self._rows)
        ]
        self._outcomes[address] = await self._settled(space, events)

    async def _settled(self, space: Space, events: list[dict[str, Any]]) -> str:
        """As a careful program does it: what is unknown is tried again, which is safe."""
        try:
            await space.emit_many(events)
        except NotRegistered:
            return REFUSED
        except OutcomeUnknown as unknown:
            self._retried += 1
            return await _tried_again(space, unknown)
        return OK

    async def probe(self, question: Mapping[str, Any]) -> Answer:
        """One event every so often from now on, and how long each took."""
        self._probing = asyncio.create_task(self._probe(question["every_s"]))
        return {}

    async def _probe(self, every_s: float) -> None:
        event = {"subject": SUBJECT, "type": TYPE, "address": "probe", "data": {}}
        while True:
            began_s = monotonic_s()
            outcome = await _outcome(self._spaces[0], [event])
            self._probes.append((began_s, monotonic_s(), outcome))
            await asyncio.sleep(every_s)

    async def probes(self, _: Mapping[str, Any]) -> Answer:
        return {"probes": self._probes}

    async def outcomes(self, _: Mapping[str, Any]) -> Answer:
        """What became of each call, by its address."""
        return {"retried": self._retried, "of": self._outcomes}

    async def close(self) -> None:
        if self._probing is not None:
            self._probing.cancel()
        await self._stack.aclose()


async def _tried_again(space: Space, error: OutcomeUnknown) -> str:
    for _ in range(RETRIES):
        try:
            await space.retry(error)
        except OutcomeUnknown as still:
            error = still
        else:
            return OK
    return UNKNOWN


async def _outcome(space: Space, events: list[dict[str, Any]]) -> str:
    try:
        await space.emit_many(events)
    except NotRegistered:
        return REFUSED
    except OutcomeUnknown:
        return UNKNOWN
    return OK


async def main(stop: asyncio.Event) -> None:
    sensors = Sensors(settings())
    verbs = ("open", "closed_loop", "flood", "probe", "probes", "outcomes")
    try:
        await answer_questions({verb: getattr(sensors, verb) for verb in verbs}, stop)
    finally:
        await sensors.close()


if __name__ == "__main__":
    sys.exit(run_program("sensors", main))
