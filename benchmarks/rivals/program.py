"""python -m benchmarks.rivals.program SETTINGS: one client program of a rival, which publishes or is subscribed."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Mapping
from typing import Any

import orjson

from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.pacing import Arrivals, pace
from benchmarks.rivals.client import client_of
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program


class RivalProgram:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._client = client_of(given["rival"], given["port"])
        self.arrivals = Arrivals()
        self._ready: list[dict[str, Any]] = []

    async def open(self, question: Mapping[str, Any]) -> Answer:
        await self._client.open()
        if question["subscribed"]:
            await self._client.subscribe(self._take)
        return {}

    def _take(self, payload: bytes) -> None:
        self.arrivals.take(orjson.loads(payload)["sent_s"])

    async def make(self, question: Mapping[str, Any]) -> Answer:
        """So many readings of application A lie ready; collecting garbage among them is not what is measured."""
        self._ready = trucks.events(question["count"], question["seed"])
        gc.collect()
        gc.freeze()
        return {}

    async def publish(self, _: Mapping[str, Any]) -> Answer:
        """All of them, each as JSON, as fast as it goes; acknowledged."""
        began_s = monotonic_s()
        await self._client.publish(map(_message, self._ready))
        return {"began_s": began_s, "ended_s": monotonic_s()}

    async def pace(self, question: Mapping[str, Any]) -> Answer:
        return {"per_s": await pace(self._ready, question["rate_per_s"], self._publish_one)}

    async def _publish_one(self, event: Mapping[str, Any]) -> None:
        await self._client.publish_one(_message(event))

    async def close(self) -> None:
        await self._client.close()


def _message(event: Mapping[str, Any]) -> bytes:
    return orjson.dumps({**event, "sent_s": monotonic_s()})


async def main(stop: asyncio.Event) -> None:
    program = RivalProgram(settings())
    handlers = {
        "open": program.open,
        "make": program.make,
        "publish": program.publish,
        "pace": program.pace,
        "received": program.arrivals.received,
    }
    try:
        await answer_questions(handlers, stop)
    finally:
        await program.close()


if __name__ == "__main__":
    sys.exit(run_program("rival", main))
