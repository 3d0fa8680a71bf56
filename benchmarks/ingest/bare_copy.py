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
from benchmarks.store import COLUMNS, largest_leaf, make_like
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

_HEADER_BYTES = 19
_TRAILER = b"\xff\xff"


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
        leaf = largest_leaf(self._connection)
        self._number += 1
        self._table = make_like(self._connection, leaf, self._number)
        asked = SQL(
            "COPY (SELECT {} FROM {} WHERE seq > (SELECT max(seq) FROM {}) - {} ORDER BY seq) "
            "TO STDOUT (FORMAT BINARY)"
        ).format(COLUMNS, leaf, leaf, question["count"])
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
        statement = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(self._table, COLUMNS)
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
