"""python -m benchmarks.gateway SETTINGS: a gateway of application A: one SDK process that registers ready
readings with `emit_many`."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Mapping
from typing import Any

import utuple
from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from utuple.client.space import Space
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program


class Gateway:
    def __init__(self, space: Space, type_: str) -> None:
        self._space = space
        self._type = type_
        self._ready: list[dict[str, Any]] = []

    async def make(self, question: Mapping[str, Any]) -> Answer:
        """So many readings lie ready; collecting garbage among them is not what is measured."""
        self._ready = trucks.events(question["count"], question["seed"], self._type)
        if (lifetime_s := question.get("lifetime_s")) is not None:
            for event in self._ready:
                event["lifetime_s"] = lifetime_s
        gc.collect()
        gc.freeze()
        return {}

    async def emit(self, _: Mapping[str, Any]) -> Answer:
        """All of them; when it began, when the last one was answered, and the processor time between."""
        began_s, began_cpu_s = monotonic_s(), time.process_time()
        count = await self._space.emit_many(self._ready)
        ended_s, ended_cpu_s = monotonic_s(), time.process_time()
        return {
            "began_s": began_s,
            "ended_s": ended_s,
            "count": count,
            "cpu_s": ended_cpu_s - began_cpu_s,
        }


async def main(stop: asyncio.Event) -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space:
        gateway = Gateway(space, given.get("type", trucks.TYPE))
        await answer_questions({"make": gateway.make, "emit": gateway.emit}, stop)


if __name__ == "__main__":
    sys.exit(run_program("gateway", main))
