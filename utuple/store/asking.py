"""Questions that are asked again and again, in PostgreSQL's own words: a statement that a connection prepares once, and
parameters as bytes. psycopg would look at each value to find out what it is, and into the text to find out where it goes
(decision 94)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from psycopg import generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.rows import TupleRow

from utuple.store.connection import Connection
from utuple.store.statements import Statement

MOST_PREPARED = 64
"""Statements PostgreSQL keeps for a connection: there are not so many usual shapes of EFs."""

_NAMED = re.compile(rb"%\((\w+)\)s")
_NUMBER, _BIG, _DOUBLE = (Struct(code).pack for code in (">i", ">q", ">d"))
_AS_BYTES: Mapping[str, Callable[[Any], bytes]] = {
    **dict.fromkeys(("family", "first_bucket", "last_bucket"), _NUMBER),
    **dict.fromkeys(("after", "upto", "now_us", "since_us", "until_us"), _BIG),
    **dict.fromkeys(("south", "north", "west", "east"), _DOUBLE),
    "address": str.encode,
}
"""The parameters `sql.question` names, each as what it is compared with takes it."""


class _Numbered(NamedTuple):
    """A statement whose parameters have numbers for names."""

    text: bytes
    names: Sequence[str]


@lru_cache(maxsize=MOST_PREPARED)
def _numbered(text: bytes) -> _Numbered:
    names = list(dict.fromkeys(name.decode() for name in _NAMED.findall(text)))
    places = {name.encode(): b"$%d" % place for place, name in enumerate(names, 1)}
    return _Numbered(_NAMED.sub(lambda found: places[found[1]], text), names)


async def rows_of(connection: Connection, statement: Statement) -> list[TupleRow]:
    """All at once, each value as psycopg reads it. What is not usual is planned for its parameters, each time."""
    if not statement.is_usual:
        async with connection.cursor(binary=True) as cursor:
            await cursor.execute(statement.text, statement.parameters, prepare=False)
            return await cursor.fetchall()
    numbered = _numbered(statement.text)
    given = statement.parameters
    values = [_AS_BYTES[name](given[name]) for name in numbered.names]
    name = await _prepared(connection, numbered.text)
    formats = [Format.BINARY] * len(values)
    connection.pgconn.send_query_prepared(name, values, formats, Format.BINARY)
    result = (await connection.wait(generators.execute(connection.pgconn)))[-1]
    if result.status != ExecStatus.TUPLES_OK:
        raise error_from_result(result)
    values_of = connection.values_of
    values_of.set_pgresult(result, format=Format.BINARY)
    rows = values_of.load_rows(0, result.ntuples, tuple)
    values_of.set_pgresult(None)
    return rows


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
