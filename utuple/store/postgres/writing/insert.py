"""A few EAs and nothing else, as one statement that is a transaction by itself: with BEGIN, COPY and COMMIT a lonely
event would wait for four round trips, and so would those behind it.

Its parameters are arrays in PostgreSQL's binary form, written here: psycopg would look at every value of every list to
find out what it is, which takes longer than all the rest. An array is its dimensions (1), whether it has NULLs (0), its
type, its length and its first number (1), then each value as its length and its bytes, all big-endian.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct, calcsize, pack
from typing import Any

from psycopg import generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from utuple.model.utuple import Family
from utuple.store.contract import Batch, Transaction
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
_CODES = {"bigint": "q", "double precision": "d", "integer": "i"}
_HEAD = Struct(">iiIii")
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
    lifetimes_us = chain.from_iterable(batch.columns.lifetimes_us for batch in batches)
    expires_us = chain.from_iterable(batch.expires_us for batch in batches)
    leaf, *others = {*map(leaf_of, lifetimes_us, expires_us)}
    if others:
        return None
    return SmallInsert(leaf, count, [_INTEGER.pack(transaction.seq), *_parameters(batches, ids)])


def _parameters(batches: Sequence[Batch], ids: Mapping[Family, int]) -> list[bytes]:
    parts = [batch.columns for batch in batches]
    columns: list[Iterable[Any]] = [
        chain.from_iterable(batch.seqs for batch in batches),
        chain.from_iterable(part.times_us for part in parts),
        chain.from_iterable(batch.expires_us for batch in batches),
        chain.from_iterable(part.lats for part in parts),
        chain.from_iterable(part.lons for part in parts),
        chain.from_iterable(part.each_id() for part in parts),
        [ids[part.families[number]] for part in parts for number in part.family],
        [address.encode() for part in parts for address in part.addresses],
        chain.from_iterable(part.payloads for part in parts),
    ]
    return [
        _array(kind, list(values)) for kind, values in zip(_TYPES.values(), columns, strict=True)
    ]


def _array(kind: str, values: list[Any]) -> bytes:
    head = _HEAD.pack(1, 0, _OIDS[kind], len(values), 1)
    code = _CODES.get(kind)
    if code is None:
        return head + b"".join(
            [part for value in values for part in (_SIZE.pack(len(value)), value)]
        )
    sized: list[Any] = [calcsize(f">{code}")] * (2 * len(values))
    sized[1::2] = values
    return head + pack(">" + f"i{code}" * len(values), *sized)


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
