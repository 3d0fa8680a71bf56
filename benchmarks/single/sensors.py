"""python -m benchmarks.single.sensors SETTINGS: one SDK process with many coroutines, each of which awaits the `emit`
of one event after the other."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import utuple
from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.timed import timed
from utuple.client.space import Space
from utuple.runtime.program import run_program


class Sensors:
    def __init__(self, space: Space) -> None:
        self._space = space

    async def emit(self, question: Mapping[str, Any]) -> Answer:
        events = trucks.events(question["count"], question["seed"])
        left = iter(events)
        return await timed(self._each(left) for _ in range(question["at_once"]))

    async def _each(self, left: Iterator[dict[str, Any]]) -> None:
        for event in left:
            await self._space.emit(**event)


async def main(stop: asyncio.Event) -> None:
    async with utuple.connect(*settings()["managers"]) as space:
        await answer_questions({"emit": Sensors(space).emit}, stop)


if __name__ == "__main__":
    sys.exit(run_program("sensors", main))
