"""python -m benchmarks.rivals.program SETTINGS: one client program of a rival, which publishes or is subscribed."""

from __future__ import annotations

import asyncio
import gc
import sys
from array import array
from collections.abc import Mapping
from typing import Any

import orjson

from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.rivals.client import client_of
from benchmarks.windows import share
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

TICK_S = 0.001
LOOK_AGAIN_S = 0.01
GIVE_UP_S = 60.0
"""Without any message."""


class RivalProgram:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._client = client_of(given["rival"], given["port"])
        self._arrived_s = array("d")
        self._sent_s = array("d")
        self._ready: list[dict[str, Any]] = []

    async def open(self, question: Mapping[str, Any]) -> Answer:
        await self._client.open()
        if question["subscribed"]:
            await self._client.subscribe(self._take)
        return {}

    def _take(self, payload: bytes) -> None:
        self._arrived_s.append(monotonic_s())
        self._sent_s.append(orjson.loads(payload)["sent_s"])

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
        """All of them at a fixed rate, whether or not the rival keeps up."""
        began_s = monotonic_s()
        sent = 0
        while sent < len(self._ready):
            due = int((monotonic_s() - began_s) * question["rate_per_s"])
            for event in self._ready[sent:due]:
                await self._client.publish_one(_message(event))
                sent += 1
            await asyncio.sleep(TICK_S)
        return {"per_s": sent / (monotonic_s() - began_s)}

    async def received(self, question: Mapping[str, Any]) -> Answer:
        """Waits for so many; when the last came, and how long they took, without the first ones."""
        count, skipped = question["count"], question["skipped"]
        seen, give_up_s = -1, monotonic_s() + GIVE_UP_S
        while len(self._arrived_s) < count and monotonic_s() < give_up_s:
            if len(self._arrived_s) > seen:
                seen, give_up_s = len(self._arrived_s), monotonic_s() + GIVE_UP_S
            await asyncio.sleep(LOOK_AGAIN_S)
        pairs = zip(self._sent_s[skipped:], self._arrived_s[skipped:], strict=True)
        delays_s = sorted(arrived_s - sent_s for sent_s, arrived_s in pairs)
        answer = {
            "missed": count - len(self._arrived_s),
            "last_s": self._arrived_s[-1] if self._arrived_s else 0.0,
            "p50_s": share(delays_s, 0.5),
            "p99_s": share(delays_s, 0.99),
            "p999_s": share(delays_s, 0.999),
        }
        del self._arrived_s[:], self._sent_s[:]
        return answer

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
        "received": program.received,
    }
    try:
        await answer_questions(handlers, stop)
    finally:
        await program.close()


if __name__ == "__main__":
    sys.exit(run_program("rival", main))
