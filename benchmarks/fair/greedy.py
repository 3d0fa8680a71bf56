"""python -m benchmarks.fair.greedy SETTINGS: registers and commands as fast as it is answered, whatever the answer says."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from benchmarks.apart import step_back
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.fair.messages import commands, registration
from benchmarks.fair.transport import refusal_of
from utuple.runtime.channel import open_channel
from utuple.runtime.program import run_program
from utuple.security.own import OWN, OwnCredentials
from utuple.wire.utuple_pb2_grpc import ScaStub, ServerStub

STREAMS = 8
"""Of registrations; and as many calls with commands at a time."""
AT_ONCE = 16
"""Registrations of one stream that wait for their answer."""
ROWS = 100


class Greedy:
    def __init__(self, server: Any, sca: Any, epoch: int) -> None:
        self._server = ServerStub(server)
        self._sca = ScaStub(sca)
        self._epoch = epoch
        self._said: dict[str, int] = {}

    async def ask(self, question: Mapping[str, Any]) -> Answer:
        """For so long; how many rows were asked for and taken of each."""
        self._said = dict.fromkeys(
            ("registered", "not_registered", "commanded", "not_commanded"), 0
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(question["seconds"]), asyncio.TaskGroup() as group:
                for _ in range(STREAMS):
                    group.create_task(self._register())
                    group.create_task(self._command())
        return dict(self._said)

    async def _register(self) -> None:
        call: Any = self._server.Registering()
        try:
            for number in range(AT_ONCE):
                await call.write(registration(ROWS, self._epoch, number))
            async for answer in call:
                is_taken = not answer.failure and not answer.refusals
                self._said["registered" if is_taken else "not_registered"] += ROWS
                await call.write(registration(ROWS, self._epoch, answer.number))
        finally:
            call.cancel()

    async def _command(self) -> None:
        while True:
            refusal = await refusal_of(self._sca.Command(commands(ROWS)))
            self._said["not_commanded" if refusal else "commanded"] += ROWS


async def main(stop: asyncio.Event) -> None:
    step_back()
    given = settings()
    OWN.set(OwnCredentials(os.environ["UTUPLE_CREDENTIALS"]))
    async with open_channel(given["server"]) as server, open_channel(given["sca"]) as sca:
        await answer_questions({"ask": Greedy(server, sca, given["epoch"]).ask}, stop)


if __name__ == "__main__":
    sys.exit(run_program("greedy", main))
