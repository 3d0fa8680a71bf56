"""python -m benchmarks.ingest.bare_copy SETTINGS: the same rows into the same form of table by psycopg's COPY
alone, with the same durability. The rows lie ready, as PostgreSQL itself writes them in binary."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from benchmarks.child import Answer, answer_questions, settings
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

_HEADER_BYTES = 19
_TRAILER = b"\xff\xff"
_LEAF = """
    SELECT inhrelid::regclass::text FROM pg_inherits
    WHERE inhparent = 'utuple.events'::regclass
    ORDER BY pg_relation_size(inhrelid) DESC LIMIT 1
"""
_COLUMNS = SQL("seq, time_us, expires_us, lat, lon, id, family, origin, address, data")


class BareCopy:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._connection = psycopg.connect(given["database"], autocommit=True)
        self._batches: list[bytes] = []
        self._rows = 0
        self._number = 0
        self._table = Identifier("bare", "events")

    async def load(self, question: Mapping[str, Any]) -> Answer:
        """The last `count` rows the server has stored, cut into commits of `batch_rows`; and an empty table
        like theirs, with the same indexes."""
        found = self._connection.execute(_LEAF).fetchone()
        if found is None:
            raise UTupleError("the server has stored nothing yet")
        leaf = Identifier(*found[0].split("."))
        self._number += 1
        self._table = Identifier("bare", f"events_{self._number}")
        self._connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS bare"))
        made = SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(self._table, leaf)
        self._connection.execute(made)
        asked = SQL(
            "COPY (SELECT {} FROM {} WHERE seq > (SELECT max(seq) FROM {}) - {} ORDER BY seq) "
            "TO STDOUT (FORMAT BINARY)"
        ).format(_COLUMNS, leaf, leaf, question["count"])
        with self._connection.cursor().copy(asked) as copy:
            parts = [bytes(part) for part in copy]
        head, rows = parts[0][:_HEADER_BYTES], [parts[0][_HEADER_BYTES:], *parts[1:-1]]
        size = question["batch_rows"]
        self._batches = [
            b"".join([head, *rows[at : at + size], _TRAILER]) for at in range(0, len(rows), size)
        ]
        self._rows = len(rows)
        return {"rows": self._rows}

    async def copy(self, _: Mapping[str, Any]) -> Answer:
        statement = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(self._table, _COLUMNS)
        began_s = monotonic_s()
        for batch in self._batches:
            with self._connection.cursor().copy(statement) as copy:
                copy.write(batch)
        ended_s = monotonic_s()
        self._connection.execute(SQL("DROP TABLE {}").format(self._table))
        return {"began_s": began_s, "ended_s": ended_s}

    def close(self) -> None:
        self._connection.close()


async def main(stop: asyncio.Event) -> None:
    bare = BareCopy(settings())
    try:
        await answer_questions({"load": bare.load, "copy": bare.copy}, stop)
    finally:
        bare.close()


if __name__ == "__main__":
    sys.exit(run_program("bare_copy", main))
