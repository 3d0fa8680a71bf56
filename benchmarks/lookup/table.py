"""The yardstick of `lookup`: the assignment table as a table of PostgreSQL, asked for the same keys in calls of the same size, as
many on their way at once. What a program would do that has a database and no assignment managers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from psycopg import AsyncConnection

_HALF = 1 << 63
"""Keys have 64 bits without a sign, PostgreSQL's bigint has one: both are moved down by as much, and keep their order."""
_MAKE = "CREATE TEMPORARY TABLE assignment (start bigint PRIMARY KEY, line integer NOT NULL)"
_ASK = """
    SELECT array_agg(found.line ORDER BY asked.at)
    FROM unnest(%s::bigint[]) WITH ORDINALITY AS asked (key, at), LATERAL (
        SELECT line FROM assignment WHERE start <= asked.key ORDER BY start DESC LIMIT 1
    ) AS found
"""


class SqlTable:
    def __init__(self, connections: Sequence[AsyncConnection]) -> None:
        self._connections = connections

    async def fill(self, starts: Sequence[int]) -> None:
        """One line for each start, numbered from 1 on in the order they are given."""
        for connection in self._connections:
            await connection.execute(_MAKE)
            for number, start in enumerate(starts, 1):
                values = (start - _HALF, number)
                await connection.execute("INSERT INTO assignment VALUES (%s, %s)", values)
            await connection.execute("ANALYZE assignment")

    async def ask(self, calls: Sequence[str]) -> list[list[int]]:
        """The number of each key's line, call by call."""
        every = len(self._connections)
        parts = (calls[at::every] for at in range(every))
        answers = await asyncio.gather(*map(_each, self._connections, parts))
        return [answers[at % every][at // every] for at in range(len(calls))]


def sql_call(keys: Sequence[int]) -> str:
    """The keys as PostgreSQL reads an array."""
    return "{" + ",".join([str(key - _HALF) for key in keys]) + "}"


async def _each(connection: AsyncConnection, calls: Sequence[str]) -> list[list[int]]:
    found: list[list[int]] = []
    async with connection.cursor(binary=True) as cursor:
        for call in calls:
            await cursor.execute(_ASK, (call,), prepare=True)
            row = await cursor.fetchone()
            found.append(row[0] if row else [])
    return found
