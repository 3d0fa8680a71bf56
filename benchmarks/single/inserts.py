"""python -m benchmarks.single.inserts SETTINGS: one process with many connections, each of which commits the same
readings, a row at a time, into the same form of table: prepared INSERTs of psycopg, without any check."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any
from uuid import UUID

import orjson
import psycopg
from psycopg.sql import SQL, Composed

from benchmarks import trucks
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.store import COLUMNS, largest_leaf, make_like
from benchmarks.timed import timed
from utuple.client.sending.rows import ids_of
from utuple.model.columns import MICROSECONDS
from utuple.model.utuple import ID_BYTES
from utuple.runtime.clock import now_us
from utuple.runtime.program import run_program

FAMILY, OWN = 1, 0

Row = tuple[int, int, int, float, float, UUID, int, int, str, str]


class Inserts:
    def __init__(self, database: str) -> None:
        self._database = database
        self._connections: list[psycopg.AsyncConnection[Any]] = []
        self._statement: Composed = SQL("").format()
        self._seqs = count(1)
        self._lifetime_us = trucks.LIFETIME_S * MICROSECONDS

    async def open(self, question: Mapping[str, Any]) -> Answer:
        with psycopg.connect(self._database, autocommit=True) as connection:
            table = make_like(connection, largest_leaf(connection), 1)
        values = SQL(", ").join(SQL("%s") for _ in range(10))
        self._statement = SQL("INSERT INTO {} ({}) VALUES ({})").format(table, COLUMNS, values)
        for _ in range(question["at_once"]):
            one = await psycopg.AsyncConnection.connect(self._database, autocommit=True)
            self._connections.append(one)
        return {}

    async def insert(self, question: Mapping[str, Any]) -> Answer:
        left = iter(trucks.events(question["count"], question["seed"]))
        return await timed(self._each(connection, left) for connection in self._connections)

    async def _each(
        self, connection: psycopg.AsyncConnection[Any], left: Iterator[dict[str, Any]]
    ) -> None:
        statement = self._statement.as_string(connection).encode()
        for event in left:
            await connection.execute(statement, self._row(event), prepare=True)

    def _row(self, event: Mapping[str, Any]) -> Row:
        time_us, seq = now_us(), next(self._seqs)
        lat, lon = event["position"]
        return (
            *(seq, time_us, time_us + self._lifetime_us, lat, lon),
            UUID(bytes=ids_of(time_us, seq, 1)[:ID_BYTES]),
            *(FAMILY, OWN, event["address"], orjson.dumps(event["data"]).decode()),
        )

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


async def main(stop: asyncio.Event) -> None:
    inserts = Inserts(settings()["database"])
    try:
        await answer_questions({"open": inserts.open, "insert": inserts.insert}, stop)
    finally:
        await inserts.close()


if __name__ == "__main__":
    sys.exit(run_program("inserts", main))
