"""A few EAs and nothing else, as one statement that is a transaction by itself: with BEGIN, COPY and COMMIT a lonely
event would wait for four round trips, and so would those behind it.

Its parameters are arrays in PostgreSQL's binary form, written here: psycopg would look at every value of every list to
find out what it is, which takes longer than all the rest. An array is its dimensions (1), whether it has NULLs (0), its
type, its length and its first number (1), then each value as its length and its bytes, all big-endian.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct, calcsize
from typing import Any

from psycopg import generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from utuple.model.columns import concatenate
from utuple.model.utuple import Family
from utuple.store.contract import Transaction
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.origins import OWN_NUMBER
from utuple.store.postgres.partitions import Leaf, leaf_of
from utuple.store.postgres.tables import SET_COMMITTED
from utuple.store.postgres.writing.copy import COLUMNS

MOST_ROWS = 32
"""Between 16 rows, which cost the writer less this way than by COPY, and 64, which cost more (decision 7)."""
MOST_PREPARED = 32
"""Statements PostgreSQL keeps for us, one a leaf: more leaves than are written to at a time."""

_TYPES = {
    "seq": "bigint",
    "time_us": "bigint",
    "expires_us": "bigint",
    "lat": "double precision",
    "lon": "double precision",
    "id": "uuid",
    "family": "integer",
    "address": "text",
    "data": "text",
}
_OIDS = {"bigint": 20, "double precision": 701, "uuid": 2950, "integer": 23, "text": 25}
_CODES = {"bigint": "q", "double precision": "d", "integer": "i", "uuid": "16s"}
_HEAD = Struct(">iiIii")
_FIRST_VALUE = 6
"""Among what an array is packed from: the head has five numbers, and its size stands before each value."""
_SIZE = Struct(">i")
_INTEGER = Struct(">q")
_FORMATS = [Format.BINARY] * (1 + len(_TYPES))


@dataclass(frozen=True, slots=True)
class SmallInsert:
    """Own EAs that go into one leaf, and the seq after them."""

    leaf: Leaf
    rows: int
    parameters: Sequence[bytes]


class Inserter:
    """On the writer's connection: who uses it sees to it that nobody else does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prepared: dict[Leaf, bytes] = {}

    async def prepare(self, leaf: Leaf, limit_s: float) -> None:
        """Once for each leaf; nothing is committed by it."""
        if leaf in self._prepared:
            return
        name = f"few_{leaf.name}".encode()
        async with asyncio.timeout(limit_s):
            if len(self._prepared) >= MOST_PREPARED:
                oldest = next(iter(self._prepared))
                await self._connection.execute(b"DEALLOCATE " + self._prepared.pop(oldest))
            await self._connection.execute(b"PREPARE " + name + _insert(leaf), prepare=False)
        self._prepared[leaf] = name

    async def insert(self, few: SmallInsert, limit_s: float) -> None:
        """Committed when it returns; on its way when it first waits. It was prepared."""
        connection = self._connection
        name = self._prepared[few.leaf]
        connection.pgconn.send_query_prepared(name, few.parameters, param_formats=_FORMATS)
        async with asyncio.timeout(limit_s):
            results = await connection.wait(generators.execute(connection.pgconn))
        for result in results:
            if result.status != ExecStatus.COMMAND_OK:
                raise error_from_result(result)


def small_insert_of(transaction: Transaction, ids: Mapping[Family, int]) -> SmallInsert | None:
    """None if there is more to it: other rows, other leaves, families that are not known yet."""
    batches = transaction.events
    count = sum(map(len, batches))
    if not 0 < count <= MOST_ROWS or not transaction.is_only_events:
        return None
    for batch in batches:
        if batch.origin or not all(map(ids.__contains__, batch.columns.families)):
            return None
    columns = concatenate([batch.columns for batch in batches])
    expires_us = [at_us for batch in batches for at_us in batch.expires_us]
    leaf, *others = {*map(leaf_of, columns.lifetimes_us, expires_us)}
    if others:
        return None
    parameters = [
        _INTEGER.pack(transaction.seq),
        _fixed("bigint", [seq for batch in batches for seq in batch.seqs]),
        _fixed("bigint", columns.times_us),
        _fixed("bigint", expires_us),
        _fixed("double precision", columns.lats),
        _fixed("double precision", columns.lons),
        _fixed("uuid", list(columns.each_id())),
        _fixed("integer", [ids[columns.families[number]] for number in columns.family]),
        _texts([address.encode() for address in columns.addresses]),
        _texts(columns.payloads),
    ]
    return SmallInsert(leaf, count, parameters)


def _fixed(kind: str, values: Sequence[float] | Sequence[bytes]) -> bytes:
    """An array of values that are all of the same size."""
    form, empty = _form(kind, len(values))
    parts = empty.copy()
    parts[_FIRST_VALUE::2] = values
    return form.pack(*parts)


@cache
def _form(kind: str, count: int) -> tuple[Struct, list[Any]]:
    """How such an array is packed, and what with, where only the values are missing. There are few: no array is longer
    than MOST_ROWS."""
    code = _CODES[kind]
    parts = [*_head(kind, count), *(calcsize(code), None) * count]
    return Struct(_HEAD.format + f"i{code}" * count), parts


def _texts(values: Sequence[bytes]) -> bytes:
    head = _HEAD.pack(*_head("text", len(values)))
    return head + b"".join([part for value in values for part in (_SIZE.pack(len(value)), value)])


def _head(kind: str, count: int) -> tuple[int, ...]:
    return 1, 0, _OIDS[kind], count, 1


def _insert(leaf: Leaf) -> bytes:
    """What follows the name of its PREPARE. Whoever selects from `noted` notes the seq, in the same transaction."""
    types = ", ".join(f"{type_}[]" for type_ in _TYPES.values())
    given = ", ".join(f"${place}" for place in range(2, len(_TYPES) + 2))
    values = COLUMNS.replace("origin", str(OWN_NUMBER))
    return (
        f" (bigint, {types}) AS WITH noted AS MATERIALIZED (SELECT {SET_COMMITTED.format('$1')}) "
        f"INSERT INTO {leaf.name} ({COLUMNS}) SELECT {values} "
        f"FROM noted, unnest({given}) AS given ({', '.join(_TYPES)})"
    ).encode()
