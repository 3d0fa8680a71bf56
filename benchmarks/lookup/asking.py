"""python -m benchmarks.lookup.asking SETTINGS: one client process that looks up keys, at a manager and in a table of PostgreSQL,
and registers events while its lookups are counted."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from psycopg import AsyncConnection

from benchmarks.child import Answer, answer_questions, settings
from benchmarks.lookup.table import SqlTable, sql_call
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


Calls = list[list[int]]
"""The keys of each call."""
Found = list[list[int]]
"""Call by call, where the line of each key begins."""


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
        self._database: str = given["database"]
        self._transport = CountingTransport()
        self._space = Space(
            put_together(
                given["managers"], Config(), self._transport, random.SystemRandom(), now_us
            )
        )

    async def look_up(self, question: Mapping[str, Any]) -> Answer:
        """Keys drawn from the whole hash space, in calls of so many, some calls on their way at once; first at the manager, then
        in PostgreSQL's table. Both must find the same."""
        dice, size = random.Random(question["seed"]), question["call_keys"]
        calls = [
            [dice.getrandbits(KEY_BITS) for _ in range(size)] for _ in range(question["calls"])
        ]
        took_s, starts, found = await self._at_the_manager(calls)
        sql_took_s, sql_found = await self._in_the_table(calls, starts)
        if found != sql_found:
            raise UTupleError("the manager and the table do not find the same lines")
        count = size * len(calls)
        return {"per_s": count / took_s, "sql_per_s": count / sql_took_s}

    async def _at_the_manager(self, calls: Calls) -> tuple[float, list[int], Found]:
        """Seconds, where each line begins, and for each key where its line begins."""
        requests = [pb.LookupRequest(keys=keys) for keys in calls]
        began_s = monotonic_s()
        parts = (requests[n::IN_FLIGHT] for n in range(IN_FLIGHT))
        answers = await asyncio.gather(*map(self._each, parts))
        took_s = monotonic_s() - began_s
        starts = sorted(
            {line.start for part in answers for answer in part for line in answer.lines}
        )
        each = (answers[at % IN_FLIGHT][at // IN_FLIGHT] for at in range(len(calls)))
        return took_s, starts, [_starts_of(answer) for answer in each]

    async def _each(self, requests: list[pb.LookupRequest]) -> list[pb.LookupAnswer]:
        return [
            await self._transport.lookup(self._manager, request, LIMIT_S) for request in requests
        ]

    async def _in_the_table(self, calls: Calls, starts: list[int]) -> tuple[float, Found]:
        async with AsyncExitStack() as stack:
            connections = [
                await stack.enter_async_context(
                    await AsyncConnection.connect(self._database, autocommit=True)
                )
                for _ in range(IN_FLIGHT)
            ]
            table = SqlTable(connections)
            await table.fill(starts)
            asked = [sql_call(keys) for keys in calls]
            began_s = monotonic_s()
            found = await table.ask(asked)
            took_s = monotonic_s() - began_s
        return took_s, [[starts[line - 1] for line in lines] for lines in found]

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


def _starts_of(answer: pb.LookupAnswer) -> list[int]:
    if not all(answer.line):
        raise UTupleError("a key has no line")
    starts = [line.start for line in answer.lines]
    return [starts[number - 1] for number in answer.line]


async def main(stop: asyncio.Event) -> None:
    asking = Asking(settings())
    try:
        await answer_questions({"look_up": asking.look_up, "register": asking.register}, stop)
    finally:
        await asking.close()


if __name__ == "__main__":
    sys.exit(run_program("asking", main))
