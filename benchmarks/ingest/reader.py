"""python -m benchmarks.ingest.reader SETTINGS: applications that watch a district each, in one process. Every
delivery becomes an object, is looked into and acknowledged."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import Any

import utuple
from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from utuple.client.receiving.watch import Watch
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

OPENING_AT_ONCE = 200
TAKEN_AT_ONCE = 256


class Reader:
    def __init__(self) -> None:
        self._acknowledged = 0
        self._wanted = 0
        self._kg = 0
        self._done = asyncio.Event()
        self._done_s = 0.0

    async def read(self, watch: Watch) -> None:
        while True:
            for event in await watch.take(TAKEN_AT_ONCE):
                self._kg += event.data["kg"]
                await event.ack()
                self._acknowledged += 1
            if self._acknowledged == self._wanted:
                self._done_s = monotonic_s()
                self._done.set()

    async def cpu(self, _: Mapping[str, Any]) -> Answer:
        return {"cpu_s": time.process_time()}

    async def expect(self, question: Mapping[str, Any]) -> Answer:
        """So many deliveries from now on."""
        self._wanted = self._acknowledged + question["count"]
        self._done.clear()
        return {}

    async def rest(self, question: Mapping[str, Any]) -> Answer:
        """How many of those are missing when no more have come for so long."""
        seen, give_up_s = -1, monotonic_s() + question["limit_s"]
        while seen < self._acknowledged < self._wanted and monotonic_s() < give_up_s:
            seen = self._acknowledged
            with suppress(TimeoutError):
                async with asyncio.timeout(question["quiet_s"]):
                    await self._done.wait()
        return {"missing": self._wanted - self._acknowledged}

    async def done(self, question: Mapping[str, Any]) -> Answer:
        """When the last of those was acknowledged, and this process's CPU time so far."""
        try:
            async with asyncio.timeout(question["limit_s"]):
                await self._done.wait()
        except TimeoutError:
            missing = self._wanted - self._acknowledged
            return {"error": f"{missing} deliveries are missing"}
        return {
            "done_s": self._done_s,
            "acknowledged": self._acknowledged,
            "cpu_s": time.process_time(),
        }


async def main(stop: asyncio.Event) -> None:
    given = settings()
    reader = Reader()
    async with AsyncExitStack() as stack:
        space = await stack.enter_async_context(utuple.connect(*given["managers"]))
        few = asyncio.Semaphore(OPENING_AT_ONCE)

        async def opened(number: int, district: utuple.Box) -> Watch:
            async with few:
                watch = space.watch(
                    subject=trucks.SUBJECT,
                    type=given.get("type", trucks.TYPE),
                    area=district,
                    since=datetime.now(UTC) if given.get("only_new") else None,
                    reader=f"district-{number}",
                )
                return await watch.open()

        districts = enumerate(trucks.districts(given["efs"]))
        watches = await asyncio.gather(*(opened(*one) for one in districts))
        tasks = [asyncio.create_task(reader.read(watch)) for watch in watches]
        try:
            await answer_questions(
                {
                    "cpu": reader.cpu,
                    "expect": reader.expect,
                    "rest": reader.rest,
                    "done": reader.done,
                },
                stop,
            )
        finally:
            for task in tasks:
                task.cancel()


if __name__ == "__main__":
    sys.exit(run_program("reader", main))
