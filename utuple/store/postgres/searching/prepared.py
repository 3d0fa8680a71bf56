"""Questions that are asked again and again, in PostgreSQL's own words: a statement that a connection prepares once, and
parameters as bytes. psycopg would look at each value to find out what it is, and into the text to find out where it goes
(decision 11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from psycopg import capabilities, generators
from psycopg.abc import PQGen
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

from utuple.store.postgres.connection import Connection
from utuple.store.postgres.statements import Statement

IN_PIECES = capabilities.has_stream_chunked()
"""libpq before its 17th version gives rows one by one, or all at once."""
PIECE_ROWS = 32
"""PostgreSQL sends 8 kB at a time: some seventy rows."""

MOST_PREPARED = 64
"""Statements PostgreSQL keeps for a connection: there are not so many usual shapes of EFs."""

ByColumn = Sequence[Sequence[Any]]
"""Rows that are no rows any more; of none there is no column either."""

_ROWS = {ExecStatus.TUPLES_OK, ExecStatus.TUPLES_CHUNK}
_NAMED = re.compile(rb"%\((\w+)\)s")
_NUMBER, _BIG, _DOUBLE = (Struct(code).pack for code in (">i", ">q", ">d"))
_AS_BYTES: Mapping[str, Callable[[Any], bytes]] = {
    **dict.fromkeys(("family", "first_bucket", "last_bucket"), _NUMBER),
    **dict.fromkeys(("after", "upto", "now_us", "since_us", "until_us"), _BIG),
    **dict.fromkeys(("south", "north", "west", "east"), _DOUBLE),
    "address": str.encode,
}
"""The parameters `conditions.question` names, each as what it is compared with takes it."""


class _Numbered(NamedTuple):
    """A statement whose parameters have numbers for names."""

    text: bytes
    names: Sequence[str]


@lru_cache(maxsize=MOST_PREPARED)
def _numbered(text: bytes) -> _Numbered:
    names = list(dict.fromkeys(name.decode() for name in _NAMED.findall(text)))
    places = {name.encode(): b"$%d" % place for place, name in enumerate(names, 1)}
    return _Numbered(_NAMED.sub(lambda found: places[found[1]], text), names)


async def columns_of(connection: Connection, statement: Statement) -> ByColumn:
    """Each value as psycopg reads it. What is not usual is planned for its parameters, each time."""
    if not statement.is_usual:
        async with connection.cursor(binary=True) as cursor:
            await cursor.execute(statement.text, statement.parameters, prepare=False)
            return by_column(await cursor.fetchall())
    numbered = _numbered(statement.text)
    given = statement.parameters
    values = [_AS_BYTES[name](given[name]) for name in numbered.names]
    name = await _prepared(connection, numbered.text)
    formats = [Format.BINARY] * len(values)
    connection.pgconn.send_query_prepared(name, values, formats, Format.BINARY)
    if IN_PIECES:
        connection.pgconn.set_chunked_rows_mode(PIECE_ROWS)
    return await connection.wait(_heard(connection))


def _heard(connection: Connection) -> PQGen[ByColumn]:
    """What is here is read while PostgreSQL looks for the rest."""
    pgconn, values_of = connection.pgconn, connection.values_of
    yield from generators.send(pgconn)
    columns: list[list[Any]] = []
    failed: PGresult | None = None
    while result := (yield from generators.fetch(pgconn)):
        if result.status not in _ROWS:
            failed = result
        elif result.ntuples:
            values_of.set_pgresult(result, format=Format.BINARY)
            piece = by_column(values_of.load_rows(0, result.ntuples, tuple))
            if not columns:
                columns = [[] for _ in piece]
            for column, more in zip(columns, piece, strict=True):
                column += more
    values_of.set_pgresult(None)
    if failed is not None:
        raise error_from_result(failed)
    return columns


def by_column(rows: list[TupleRow]) -> ByColumn:
    return list(zip(*rows, strict=True))


async def _prepared(connection: Connection, text: bytes) -> bytes:
    """Its name there."""
    known = connection.prepared
    name = known.get(text)
    if name is None:
        if len(known) >= MOST_PREPARED:
            await connection.execute(b"DEALLOCATE " + known.pop(next(iter(known))))
        connection.last_prepared += 1
        name = b"question_%d" % connection.last_prepared
        await connection.execute(b"PREPARE " + name + b" AS " + text, prepare=False)
        known[text] = name
    return name
