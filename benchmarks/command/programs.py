"""python -m benchmarks.command.programs SETTINGS: SDK programs of this benchmark: one that commands, and one that
serves some of the devices."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.command import fleet
from utuple.client.receiving.device import Device
from utuple.client.space import Space
from utuple.client.transport import GrpcTransport
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire

REGISTER_ROWS = 50_000
OPENING_AT_ONCE = 200
CALL_LIMIT_S = 60.0
CONCURRENT = 2_048


class Programs:
    def __init__(self, space: Space, stack: AsyncExitStack, sca: str) -> None:
        self._space = space
        self._stack = stack
        self._sca = sca
        self._ready: list[dict[str, Any]] = []
        self._taken = 0

    async def register(self, question: Mapping[str, Any]) -> Answer:
        """Devices that are known and away: at the sCA server in bulk, as a refill brings them."""
        transport = GrpcTransport()
        began_s = monotonic_s()
        try:
            for first in range(question["first"], question["count"], REGISTER_ROWS):
                numbers = range(first, min(first + REGISTER_ROWS, question["count"]))
                columns = columns_to_wire(fleet.devices(numbers, now_us(), first))
                answer = await transport.sca_register(
                    question.get("sca", self._sca),
                    pb.ScaRegisterRequest(devices=columns),
                    CALL_LIMIT_S,
                )
                if answer.refusals:
                    raise UTupleError(f"devices are refused: {answer.refusals[0]}")
        finally:
            await transport.close()
        return {"per_s": (question["count"] - question["first"]) / (monotonic_s() - began_s)}

    async def serve(self, question: Mapping[str, Any]) -> Answer:
        """The first devices are here, in the hands of this program."""
        for first in range(0, question["count"], OPENING_AT_ONCE):
            numbers = range(first, min(first + OPENING_AT_ONCE, question["count"]))
            await asyncio.gather(*(self._serve(number) for number in numbers))
        return {}

    async def _serve(self, number: int) -> None:
        device = self._space.serve(
            subject=fleet.SUBJECT,
            type=fleet.TYPE,
            address=fleet.room(number),
            where={"on": bool},
        )
        taking = asyncio.create_task(self._take(await self._stack.enter_async_context(device)))
        self._stack.callback(taking.cancel)

    async def _take(self, device: Device) -> None:
        async for command in device:
            assert isinstance(command.data["on"], bool)
            self._taken += 1

    async def taken(self, _: Mapping[str, Any]) -> Answer:
        return {"count": self._taken}

    async def make(self, question: Mapping[str, Any]) -> Answer:
        """So many commands lie ready; collecting garbage among them is not what is measured."""
        self._ready = fleet.orders(question["count"], question["rooms"], question["seed"])
        gc.collect()
        gc.freeze()
        return {}

    async def command(self, _: Mapping[str, Any]) -> Answer:
        began_s, began_cpu_s = monotonic_s(), time.process_time()
        receipts = await self._space.command_many(self._ready)
        took_s, cpu_s = monotonic_s() - began_s, time.process_time() - began_cpu_s
        return {
            "per_s": len(receipts) / took_s,
            "cpu_us": cpu_s / len(receipts) * 1e6,
            "matched": receipts.matched,
            "handed_over": receipts.handed_over,
        }

    async def command_singly(self, _: Mapping[str, Any]) -> Answer:
        """The same by concurrent calls of `command`, some at a time."""
        began_s, began_cpu_s = monotonic_s(), time.process_time()
        for at in range(0, len(self._ready), CONCURRENT):
            some = self._ready[at : at + CONCURRENT]
            await asyncio.gather(*(self._space.command(**order) for order in some))
        took_s, cpu_s = monotonic_s() - began_s, time.process_time() - began_cpu_s
        return {"per_s": len(self._ready) / took_s, "cpu_us": cpu_s / len(self._ready) * 1e6}


async def main(stop: asyncio.Event) -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space, AsyncExitStack() as stack:
        programs = Programs(space, stack, given["sca"])
        verbs = ("register", "serve", "taken", "make", "command", "command_singly")
        await answer_questions({verb: getattr(programs, verb) for verb in verbs}, stop)


if __name__ == "__main__":
    sys.exit(run_program("programs", main))
