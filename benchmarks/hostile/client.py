"""python -m benchmarks.hostile.client SETTINGS: a well-behaved client. It emits one event after the other at a steady pace, and
asks once a second on a new connection, as whoever comes new does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

import utuple
from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from utuple.admin.transport import call
from utuple.client.space import Space
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program
from utuple.security.own import OWN, OwnCredentials

EVERY_S = 0.01
NEW_EVERY_S = 1.0
LIMIT_S = 10.0


class Client:
    def __init__(self, space: Space, server: str) -> None:
        self._space = space
        self._server = server
        self._refused: list[str] = []

    async def emit(self, question: Mapping[str, Any]) -> Answer:
        """For so long; how long each took, and what was refused."""
        self._refused = []
        until_s = monotonic_s() + question["seconds"]
        delays, _ = await asyncio.gather(self._emit(until_s, question["seed"]), self._come(until_s))
        return {"delays_s": delays, "refused": self._refused}

    async def _emit(self, until_s: float, seed: int) -> list[float]:
        """Each when it is due, also if one before it is late: so a pause is noticed by all whom it delays."""
        emits: list[asyncio.Task[float | None]] = []
        count = int((until_s - monotonic_s()) / EVERY_S)
        began_s = monotonic_s()
        async with asyncio.TaskGroup() as group:
            for number, event in enumerate(trucks.events(count, seed)):
                due_s = began_s + number * EVERY_S
                await asyncio.sleep(max(0.0, due_s - monotonic_s()))
                emits.append(group.create_task(self._one(event, due_s)))
        return [took for task in emits if (took := task.result()) is not None]

    async def _one(self, event: dict[str, Any], due_s: float) -> float | None:
        try:
            async with asyncio.timeout(LIMIT_S):
                await self._space.emit(**event)
        except (UTupleError, TimeoutError) as error:
            self._refused.append(f"emit: {error}")
            return None
        return monotonic_s() - due_s

    async def _come(self, until_s: float) -> None:
        while monotonic_s() < until_s:
            await asyncio.sleep(NEW_EVERY_S)
            if await call(self._server, _is_serving) is None:
                self._refused.append("a new connection was not answered")


async def _is_serving(channel: Any) -> Any:
    return await HealthStub(channel).Check(HealthCheckRequest(), timeout=LIMIT_S)


async def main(stop: asyncio.Event) -> None:
    given = settings()
    if path := os.environ.get("UTUPLE_CREDENTIALS"):
        OWN.set(OwnCredentials(path))
    async with utuple.connect(*given["managers"]) as space:
        await answer_questions({"emit": Client(space, given["server"]).emit}, stop)


if __name__ == "__main__":
    sys.exit(run_program("client", main))
