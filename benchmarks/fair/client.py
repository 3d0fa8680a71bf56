"""python -m benchmarks.fair.client SETTINGS: emits and commands at a steady pace, each when it is due, also if one before it is late."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import utuple
from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.fair.messages import commands
from benchmarks.fair.transport import refusal_of
from utuple.client.space import Space
from utuple.errors import Unavailable, UTupleError
from utuple.runtime.channel import open_channel
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program
from utuple.security.own import OWN, OwnCredentials
from utuple.wire.utuple_pb2_grpc import ScaStub

EVERY_S = 0.02
LIMIT_S = 10.0


class Client:
    def __init__(self, space: Space, sca: Any) -> None:
        self._space = space
        self._sca = ScaStub(sca)
        self._refused: list[str] = []

    async def work(self, question: Mapping[str, Any]) -> Answer:
        """For so long; how long each emit and each command took, and what was refused."""
        self._refused = []
        count = int(question["seconds"] / EVERY_S)
        events = iter(trucks.events(count, question["seed"]))
        emits, asked = await asyncio.gather(
            self._paced(count, lambda: self._space.emit(**next(events))),
            self._paced(count, self._command),
        )
        return {"emits_s": emits, "commands_s": asked, "refused": self._refused, "asked": 2 * count}

    async def _paced(self, count: int, act: Callable[[], Awaitable[Any]]) -> list[float]:
        began_s = monotonic_s()
        doing: list[asyncio.Task[float | None]] = []
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                due_s = began_s + number * EVERY_S
                await asyncio.sleep(max(0.0, due_s - monotonic_s()))
                doing.append(group.create_task(self._one(act, due_s)))
        return [took for task in doing if (took := task.result()) is not None]

    async def _command(self) -> None:
        if refusal := await refusal_of(self._sca.Command(commands(1))):
            raise Unavailable(refusal)

    async def _one(self, act: Callable[[], Awaitable[Any]], due_s: float) -> float | None:
        try:
            async with asyncio.timeout(LIMIT_S):
                await act()
        except (UTupleError, TimeoutError) as error:
            self._refused.append(f"{type(error).__name__}: {error}")
            return None
        return monotonic_s() - due_s


async def main(stop: asyncio.Event) -> None:
    given = settings()
    OWN.set(OwnCredentials(os.environ["UTUPLE_CREDENTIALS"]))
    async with utuple.connect(*given["managers"]) as space, open_channel(given["sca"]) as sca:
        await answer_questions({"work": Client(space, sca).work}, stop)


if __name__ == "__main__":
    sys.exit(run_program("client", main))
