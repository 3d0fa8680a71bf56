"""Dropping what has expired, beside the writer and the readers and never in their way.

A leaf is dropped only if its lock is free at once: a reader that is in it keeps it until the next
collection. Dead CFs, EFs and CAs are deleted in small pieces that skip what the writer has locked, so the
two can never wait for each other.
"""

from __future__ import annotations

from functools import cache

import psycopg
from sqlalchemy import (
    ColumnElement,
    Table,
    Text,
    bindparam,
    delete,
    exists,
    literal_column,
    or_,
    select,
)

from utuple.store.leaves import Leaf
from utuple.store.session import Connection
from utuple.store.statements import compiled
from utuple.store.tables import devices, positions, templates

DROP_LOCK_LIMIT_MS = 50
"""Searches that begin meanwhile queue behind the drop for as long as it waits."""
PIECE_ROWS = 2_000


async def drop_leaf(connection: Connection, leaf: Leaf) -> bool:
    """False if a reader is in it: the next collection tries again."""
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL lock_timeout = {DROP_LOCK_LIMIT_MS}".encode())
            await connection.execute(leaf.drop)
    except psycopg.errors.LockNotAvailable:
        return False
    return True


async def delete_dead(connection: Connection, now_us: int) -> None:
    for table in (templates, devices):
        await _delete_all(connection, delete_expired(table), now_us)
    await _delete_all(connection, delete_orphans(), now_us)


async def _delete_all(connection: Connection, statement: bytes, now_us: int) -> None:
    while True:
        done = await connection.execute(statement, {"now_us": now_us, "most": PIECE_ROWS})
        if done.rowcount < PIECE_ROWS:
            return


@cache
def delete_expired(table: Table) -> bytes:
    return _delete_piece(
        table, table.c.expires_us <= bindparam("now_us", type_=table.c.expires_us.type)
    )


@cache
def delete_orphans() -> bytes:
    """Positions whose formal is gone."""
    is_kept = or_(
        *(exists().where(table.c.id == positions.c.formal) for table in (templates, devices))
    )
    return _delete_piece(positions, ~is_kept)


def _delete_piece(table: Table, is_dead: ColumnElement[bool]) -> bytes:
    place: ColumnElement[str] = literal_column(f"{table.name}.ctid", Text)
    dead = (
        select(place)
        .select_from(table)
        .where(is_dead)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True, of=table)
    )
    return compiled(delete(table).where(place.in_(dead))).text
