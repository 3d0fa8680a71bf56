"""python -m benchmarks.lookup.asking SETTINGS: one client process that looks up keys, and registers events while its
lookups are counted."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.child import Answer, answer_questions, settings
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.client.transport import GrpcTransport
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.wire import utuple_pb2 as pb

IN_FLIGHT = 2
LIMIT_S = 30.0
LIFETIME_S = 600.0
KEY_BITS = 64


class CountingTransport(GrpcTransport):
    def __init__(self) -> None:
        super().__init__()
        self.lookups = 0

    async def lookup(
        self, address: str, request: pb.LookupRequest, timeout_s: float
    ) -> pb.LookupAnswer:
        self.lookups += 1
        return await super().lookup(address, request, timeout_s)


class Asking:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._manager: str = given["managers"][0]
        self._transport = CountingTransport()
        self._space = Space(
            put_together(
                given["managers"], Config(), self._transport, random.SystemRandom(), now_us
            )
        )

    async def look_up(self, question: Mapping[str, Any]) -> Answer:
        """Keys drawn from the whole hash space, in calls of so many, some calls on their way at once."""
        dice, size = random.Random(question["seed"]), question["call_keys"]
        calls = [
            pb.LookupRequest(keys=[dice.getrandbits(KEY_BITS) for _ in range(size)])
            for _ in range(question["calls"])
        ]
        began_s = monotonic_s()
        answered = sum(
            await asyncio.gather(*(self._each(calls[n::IN_FLIGHT]) for n in range(IN_FLIGHT)))
        )
        took_s = monotonic_s() - began_s
        if answered != size * len(calls):
            raise UTupleError(f"{answered} of {size * len(calls)} keys have a line")
        return {"per_s": answered / took_s}

    async def _each(self, calls: list[pb.LookupRequest]) -> int:
        answered = 0
        for call in calls:
            answer = await self._transport.lookup(self._manager, call, LIMIT_S)
            answered += sum(slot > 0 for slot in answer.line)
        return answered

    async def register(self, question: Mapping[str, Any]) -> Answer:
        """Events of many families, one by one and in bulk; how often a manager was asked for it."""
        before = self._transport.lookups
        events: list[dict[str, Any]] = [
            {
                "subject": "sensor",
                "type": f"kind-{number % question['families']}",
                "address": f"sensor-{number}",
                "data": {"n": number},
                "lifetime_s": LIFETIME_S,
            }
            for number in range(question["count"])
        ]
        half = len(events) // 2
        await self._space.emit_many(events[:half])
        await asyncio.gather(*(self._space.emit(**event) for event in events[half:]))
        return {"lookups": self._transport.lookups - before}

    async def close(self) -> None:
        await self._space.close()


async def main(stop: asyncio.Event) -> None:
    asking = Asking(settings())
    try:
        await answer_questions({"look_up": asking.look_up, "register": asking.register}, stop)
    finally:
        await asking.close()


if __name__ == "__main__":
    sys.exit(run_program("asking", main))
