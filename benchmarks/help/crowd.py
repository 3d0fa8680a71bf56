"""python -m benchmarks.help.crowd SETTINGS: many EFs, each for an address of its own: first those that are
there before, then new ones at a steady rate.

They are registered as the SDK registers an EF (`Tour`: accepted by every member of one epoch), but a batch
at a time and without streams: their readers are away.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from benchmarks.child import Answer, answer_questions, settings
from benchmarks.windows import Window, share, waits_s
from utuple.client.attempt import raise_refusals
from utuple.client.config import Config
from utuple.client.everywhere import Tour
from utuple.client.parts import Parts, put_together
from utuple.client.route import Stop
from utuple.client.transport import GrpcTransport
from utuple.cluster.line import Line
from utuple.errors import UTupleError
from utuple.model.condition import Equal
from utuple.model.key import key_of
from utuple.model.packed import Packed, packed
from utuple.model.utuple import Family, Kind, Template, UTuple
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.wire import utuple_pb2 as pb
from utuple.wire.templates import templates_to_wire

TICK_S = 0.05
LIFETIME_S = 3_600.0
FILL_BATCH = 500
FILL_CALLS = 2
MOST_CALLS = 400
"""On their way: twenty seconds of them. Beyond it the rate falls, which is reported."""
READERS = 1_000
"""The EFs are theirs in turn."""


class Crowd:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._family = Family(given["subject"], given["type"])
        self._key = key_of(*self._family)
        self._rate_per_s: float = given["rate_per_s"]
        # Not the system's dice: ids need not be secret here, and this is cheap.
        self._parts: Parts = put_together(
            given["managers"], Config(), GrpcTransport(), random.Random(), now_us
        )
        self._numbers = count()
        self._failed = 0
        self._calls: dict[asyncio.Task[None], None] = {}
        self._spans: list[tuple[float, float]] = []
        """When each batch left and when it was registered everywhere."""
        self._registering: asyncio.Task[None] | None = None
        self._due = 0
        self._began_s = 0.0

    async def fill(self, question: Mapping[str, Any]) -> Answer:
        """So many more EFs are there."""
        left = question["count"]
        while left:
            some = [min(FILL_BATCH, left - at) for at in range(0, left, FILL_BATCH)][:FILL_CALLS]
            await asyncio.gather(*map(self._register, some))
            left -= sum(some)
        if self._failed:
            return {"error": f"{self._failed} EFs could not be registered"}
        self._spans.clear()
        return {}

    async def begin(self, _: Mapping[str, Any]) -> Answer:
        self._began_s = monotonic_s()
        self._registering = asyncio.create_task(self._register_forever())
        return {}

    async def end(self, question: Mapping[str, Any]) -> Answer:
        assert self._registering is not None
        self._registering.cancel()
        took_s = monotonic_s() - self._began_s
        await asyncio.gather(*self._calls, return_exceptions=True)
        windows = [Window(*window) for window in question["windows"]]
        waits = [waits_s(self._spans, window) for window in windows]
        return {
            "rate_per_s": self._due / took_s,
            "failed": self._failed,
            "windows": [{"wait_longest_s": share(one, 1.0)} for one in waits],
        }

    async def close(self) -> None:
        if self._registering is not None:
            self._registering.cancel()
        await self._parts.close()

    async def _register_forever(self) -> None:
        while True:
            due = int((monotonic_s() - self._began_s) * self._rate_per_s) - self._due
            if due > 0 and len(self._calls) < MOST_CALLS:
                self._due += due
                call = asyncio.create_task(self._register(due))
                self._calls[call] = None
                call.add_done_callback(self._calls.pop)
            await asyncio.sleep(TICK_S)

    async def _register(self, size: int) -> None:
        began_s = monotonic_s()
        halves = [packed(self._new()) for _ in range(size)]

        async def visit(stop: Stop, line: Line, retry: bool) -> None:
            await self._visit(halves, stop, line, retry)

        tour: Tour[None] = Tour(Kind.EF, self._parts.lines, self._parts.dice, self._parts.config)
        try:
            await tour.run(self._key, visit, self._parts.tries())
        except UTupleError:
            self._failed += size
        else:
            self._spans.append((began_s, monotonic_s()))

    async def _visit(self, halves: Sequence[Packed], stop: Stop, line: Line, retry: bool) -> None:
        templates = templates_to_wire(halves, epochs={self._family: line.epoch})
        request = pb.RegisterRequest(retry=retry, templates=templates)
        parts = self._parts
        address = parts.lines.address_of(stop.member)
        answer = await parts.transport.register(address, request, parts.config.attempt_s)
        parts.lines.hear(answer.lines, answer.servers)
        raise_refusals(list(answer.refusals))

    def _new(self) -> UTuple:
        number = next(self._numbers)
        return UTuple(
            self._parts.new_id(),
            self._family,
            Template(address=Equal(f"device-{number}")),
            None,
            {},
            LIFETIME_S,
            f"reader-{number % READERS}",
        )


async def main(stop: asyncio.Event) -> None:
    crowd = Crowd(settings())
    try:
        await answer_questions({"fill": crowd.fill, "begin": crowd.begin, "end": crowd.end}, stop)
    finally:
        await crowd.close()


if __name__ == "__main__":
    sys.exit(run_program("crowd", main))
