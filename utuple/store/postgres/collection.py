"""Deleting dead CFs, EFs and CAs, beside the writer and never in its way.

In small pieces that skip what the writer has locked, so that the two can never wait for each other. EAs
are not deleted: their leaves are dropped (`partitions.py`).
"""

from __future__ import annotations

from functools import cache

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

from utuple.store.postgres.connection import Connection
from utuple.store.postgres.statements import compiled
from utuple.store.postgres.tables import devices, positions, templates

PIECE_ROWS = 2_000


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
