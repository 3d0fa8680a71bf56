"""python -m benchmarks.shares.programs SETTINGS: one SDK program that serves the devices, and one that commands them at a steady
rate. Each writes down what it saw, command by command, for `benchmark` to compare."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson

import utuple
from benchmarks.child import Answer, answer_questions, settings
from utuple.client.receiving.device import Device
from utuple.client.space import Space
from utuple.errors import NotRegistered, OutcomeUnknown
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

SUBJECT, TYPE = "aircon", "power"
OPENING_AT_ONCE = 200
PACE_S = 0.02


class Programs:
    def __init__(self, space: Space, stack: AsyncExitStack, file: Path) -> None:
        self._space = space
        self._stack = stack
        self._file = file
        self._got: Counter[int] = Counter()
        self._said: dict[int, tuple[float, float, str]] = {}
        """By number: when it was sent and answered, and what was said."""
        self._flowing: asyncio.Task[None] | None = None
        self._open: set[asyncio.Task[None]] = set()

    # --- devices --------------------------------------------------------------------------------------

    async def serve(self, question: Mapping[str, Any]) -> Answer:
        for first in range(0, question["count"], OPENING_AT_ONCE):
            numbers = range(first, min(first + OPENING_AT_ONCE, question["count"]))
            await asyncio.gather(*map(self._serve, numbers))
        return {}

    async def _serve(self, number: int) -> None:
        device = self._space.serve(subject=SUBJECT, type=TYPE, address=f"room-{number}")
        taking = asyncio.create_task(self._take(await self._stack.enter_async_context(device)))
        self._stack.callback(taking.cancel)

    async def _take(self, device: Device) -> None:
        async for command in device:
            self._got[int(command.data["n"])] += 1

    async def got(self, _: Mapping[str, Any]) -> Answer:
        self._file.write_bytes(orjson.dumps(sorted(self._got.items())))
        return {}

    # --- commands -------------------------------------------------------------------------------------

    async def begin(self, question: Mapping[str, Any]) -> Answer:
        flow = self._flow(question["rate"], question["devices"])
        self._flowing = asyncio.create_task(flow)
        return {}

    async def _flow(self, rate: float, devices: int) -> None:
        """So many a second, whatever becomes of those before: some are on their way for seconds."""
        began_s, sent = monotonic_s(), 0
        while True:
            while sent < (monotonic_s() - began_s) * rate:
                task = asyncio.create_task(self._command(sent, f"room-{sent * 7919 % devices}"))
                self._open.add(task)
                task.add_done_callback(self._open.discard)
                sent += 1
            await asyncio.sleep(PACE_S)

    async def _command(self, number: int, address: str) -> None:
        began_s = monotonic_s()
        try:
            receipt = await self._space.command(
                subject=SUBJECT, type=TYPE, address=address, data={"n": number}
            )
            said = ", ".join(one.reason or "handed over" for one in receipt.devices) or "no device"
        except NotRegistered as error:
            said = f"not registered: {error}"
        except OutcomeUnknown as error:
            said = f"unknown: {error}"
        self._said[number] = began_s, monotonic_s(), said

    async def now(self, _: Mapping[str, Any]) -> Answer:
        """By the clock that commands are noted by; and how many were answered."""
        return {"now_s": monotonic_s(), "answered": len(self._said)}

    async def end(self, _: Mapping[str, Any]) -> Answer:
        assert self._flowing is not None
        self._flowing.cancel()
        await asyncio.gather(*self._open)
        self._file.write_bytes(orjson.dumps(sorted(self._said.items())))
        return {"now_s": monotonic_s()}


async def main(stop: asyncio.Event) -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space, AsyncExitStack() as stack:
        programs = Programs(space, stack, Path(given["file"]))
        verbs = ("serve", "got", "begin", "now", "end")
        await answer_questions({verb: getattr(programs, verb) for verb in verbs}, stop)


if __name__ == "__main__":
    sys.exit(run_program("programs", main))
