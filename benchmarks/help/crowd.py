"""python -m benchmarks.help.crowd SETTINGS: many EFs, each for an address of its own (or, every so many, for a
place; or each for a span of a number in the data): first those that are there before, then new ones at a steady rate; and the oldest are cancelled.

They are registered as the SDK registers an EF (`FanOut`: accepted by every member of one epoch that it visits), but a
batch at a time and without streams: their readers are away.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

from benchmarks.child import Answer, Handler, answer_questions, settings
from benchmarks.windows import Window, share, waits_s
from utuple.client.config import Config
from utuple.client.parts import Parts, put_together
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.outcome import raise_refusals
from utuple.client.routing.route import Target, targets
from utuple.client.transport import GrpcTransport
from utuple.cluster.line import Line
from utuple.errors import UTupleError
from utuple.model.area import Box
from utuple.model.condition import DataCondition, Equal, Range
from utuple.model.key import key_of
from utuple.model.packed import Packed, packed
from utuple.model.utuple import Family, Template, UTuple
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import family_to_wire, templates_to_wire

TICK_S = 0.05
LIFETIME_S = 3_600.0
FILL_BATCH = 500
FILL_CALLS = 3
"""At once: while one is durable the next is read."""
MOST_CALLS = 400
"""On their way: twenty seconds of them. Beyond it the rate falls, which is reported."""
PLACE_DEGREES = 0.05
Request = Callable[[Line, str], pb.RegisterRequest | None]
"""For one member of this line; None: it is not concerned."""
LENGTH = 1_000_000.0
"""Of a number in the data that EFs ask for a span of; the spans are spread evenly."""
READERS = 1_000
"""The EFs are theirs in turn."""


class Crowd:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._family = Family(given["subject"], given["type"])
        self._key = key_of(*self._family)
        self._device: str = given.get("device", "device")
        self._rate_per_s: float = given["rate_per_s"]
        # Not the system's dice: ids need not be secret here, and this is cheap.
        self._parts: Parts = put_together(
            given["managers"], Config(), GrpcTransport(), random.Random(), now_us
        )
        self._place_every: int = given.get("place_every", 0)
        self._field: str = given.get("field", "")
        self._range_width: float = given.get("range_width", 0.0)
        self._may_cancel: bool = given.get("may_cancel", False)
        self._ids: deque[bytes] = deque()
        self._numbers = count()
        self._failed = 0
        self._calls: dict[asyncio.Task[None], None] = {}
        self._spans: list[tuple[float, float]] = []
        """When each batch left and when it was registered everywhere."""
        self._registering: asyncio.Task[None] | None = None
        self._due = 0
        self._began_s = 0.0

    async def fill(self, question: Mapping[str, Any]) -> Answer:
        """So many more EFs are there. With `calls` of them at once, and built before the time is taken."""
        calls: int = question.get("calls", 0)
        if not calls:
            took_s = await self._in_batches(question["count"], self._register)
        else:
            built = deque(
                _Batch([self._new() for _ in range(n)]) for n in _sizes(question["count"])
            )

            async def register(size: int) -> None:
                await self._everywhere(size, built.popleft().request)

            took_s = await self._in_batches(question["count"], register, calls)
        self._spans.clear()
        return self._done(question["count"], took_s)

    async def cancel(self, question: Mapping[str, Any]) -> Answer:
        """So many of the oldest are gone."""
        return self._done(
            question["count"], await self._in_batches(question["count"], self._cancel)
        )

    def _done(self, rows: int, took_s: float) -> Answer:
        if self._failed:
            return {"error": f"{self._failed} EFs could not be registered or cancelled"}
        return {"per_s": rows / took_s}

    async def _in_batches(
        self, rows: int, work: Callable[[int], Awaitable[None]], calls: int = FILL_CALLS
    ) -> float:
        """How long it took."""
        began_s = monotonic_s()
        sizes = iter(_sizes(rows))

        async def some() -> None:
            for size in sizes:
                await work(size)

        await asyncio.gather(*(some() for _ in range(calls)))
        return monotonic_s() - began_s

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
        batch = _Batch([self._new() for _ in range(size)])
        if self._may_cancel:
            self._ids.extend(half.id for half in batch.halves)
        await self._everywhere(size, batch.request)

    async def _cancel(self, size: int) -> None:
        ids = [self._ids.popleft() for _ in range(size)]

        def request(line: Line, member: str) -> pb.RegisterRequest:
            family = family_to_wire(self._family, {self._family: line.epoch})
            return pb.RegisterRequest(cancels=[pb.Cancel(id=id_, family=family) for id_ in ids])

        await self._everywhere(size, request)

    async def _everywhere(self, size: int, request: Request) -> None:
        began_s = monotonic_s()

        async def call(target: Target, line: Line, retry: bool) -> None:
            message = request(line, target.member)
            if message is not None:
                message.retry = retry
                await self._call(message, target)

        anywhere = UTuple(self._parts.new_id(), self._family, Template(), None, {}, LIFETIME_S)
        fan_out: FanOut[None] = self._parts.fan_out(anywhere)
        try:
            await fan_out.run(self._key, call, self._parts.tries())
        except UTupleError:
            self._failed += size
        else:
            self._spans.append((began_s, monotonic_s()))

    async def _call(self, request: pb.RegisterRequest, target: Target) -> None:
        parts = self._parts
        address = parts.lines.address_of(target.member)
        answer = await parts.transport.register(address, request, parts.config.attempt_s)
        parts.lines.hear(answer.lines, answer.servers)
        raise_refusals(list(answer.refusals))

    def _new(self) -> UTuple:
        number = next(self._numbers)
        return UTuple(
            self._parts.new_id(),
            self._family,
            self._template(number),
            None,
            self._where(),
            LIFETIME_S,
            f"reader-{number % READERS}",
        )

    def _template(self, number: int) -> Template:
        if self._place_every and number % self._place_every == 0:
            dice = self._parts.dice
            south, west = dice.uniform(30.0, 45.0), dice.uniform(130.0, 145.0)
            return Template(area=Box(south, west, south + PLACE_DEGREES, west + PLACE_DEGREES))
        if self._range_width:
            return Template()
        return Template(address=Equal(f"{self._device}-{number}"))

    def _where(self) -> dict[str, DataCondition]:
        if not self._range_width:
            return {}
        low = self._parts.dice.uniform(0.0, LENGTH)
        return {self._field: Range(low, low + self._range_width)}


def _sizes(rows: int) -> list[int]:
    return [min(FILL_BATCH, rows - at) for at in range(0, rows, FILL_BATCH)]


class _Batch:
    """Some EFs. Of a partitioned line each member is brought those that visit it, else all are brought to all."""

    def __init__(self, halves: list[UTuple]) -> None:
        self.halves = halves
        self._packed = [packed(half) for half in halves]
        self._line: Line | None = None
        self._visiting: dict[str, list[Packed]] = {}

    def request(self, line: Line, member: str) -> pb.RegisterRequest | None:
        if line != self._line:
            self._line, self._visiting = line, self._sorted(line)
        some = self._visiting.get(member)
        if not some:
            return None
        epochs = {half.family: line.epoch for half in some}
        return pb.RegisterRequest(templates=templates_to_wire(some, epochs=epochs))

    def _sorted(self, line: Line) -> dict[str, list[Packed]]:
        if not line.layout.axes:
            return {member.name: self._packed for member in line.serving}
        found: dict[str, list[Packed]] = {}
        for half, kept in zip(self.halves, self._packed, strict=True):
            for target in targets(line, half):
                one = kept if target.keeps else kept._replace(lifetime_s=0.0)
                found.setdefault(target.member, []).append(one)
        return found


async def main(stop: asyncio.Event) -> None:
    crowd = Crowd(settings())
    try:
        questions: dict[str, Handler] = {
            "fill": crowd.fill,
            "cancel": crowd.cancel,
            "begin": crowd.begin,
            "end": crowd.end,
        }
        await answer_questions(questions, stop)
    finally:
        await crowd.close()


if __name__ == "__main__":
    sys.exit(run_program("crowd", main))
