"""python -m benchmarks.partition.emitters SETTINGS: EAs as fast as they are registered, their values spread evenly over what
EFs ask for. They are built before; some calls are always under way."""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Mapping
from random import Random
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.windows import Window
from utuple.client.space import Space
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

LIFETIME_S = 600.0
ROWS = 1_000
"""Of a call."""
CALLS = 16
"""At once: so many that it is work that limits, and not waiting for disks. A call is cut among the members."""


class Emitters:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._managers: list[str] = given["managers"]
        dice = Random(0)
        self._events = [
            {
                "subject": given["subject"],
                "type": given["type"],
                "address": f"device-{row}",
                "data": {given["field"]: dice.uniform(0, given["length"])},
                "lifetime_s": LIFETIME_S,
            }
            for row in range(ROWS * CALLS)
        ]
        self._space: Space | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._done_s = array("d")
        """When each call was registered."""
        self._refused = 0

    async def begin(self, _: Mapping[str, Any]) -> Answer:
        self._space = await utuple.connect(*self._managers).open()
        self._tasks = [asyncio.create_task(self._emit_on(at)) for at in range(CALLS)]
        return {}

    async def end(self, question: Mapping[str, Any]) -> Answer:
        window = Window(*question["window"])
        await self.close()
        done = sum(at_s in window for at_s in self._done_s)
        return {"per_s": done * ROWS / window.length_s, "refused": self._refused}

    async def close(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        space, self._space = self._space, None
        if space is not None:
            await space.close()

    async def _emit_on(self, at: int) -> None:
        assert self._space is not None
        events = self._events[at * ROWS : (at + 1) * ROWS]
        while True:
            try:
                await self._space.emit_many(events)
            except UTupleError:
                self._refused += len(events)
            else:
                self._done_s.append(monotonic_s())


async def main(stop: asyncio.Event) -> None:
    emitters = Emitters(settings())
    try:
        await answer_questions({"begin": emitters.begin, "end": emitters.end}, stop)
    finally:
        await emitters.close()


if __name__ == "__main__":
    sys.exit(run_program("emitters", main))
