"""A section's EAs, read out for a drain.

A drain reads for minutes, and sorting all of a section first would take as long again and as much disk. So
EAs are asked for in windows of their origin's seqs, each a short statement of its own: nothing is held
while the consumer stalls. Windows widen where seqs are sparse and narrow where they are dense.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from psycopg.rows import TupleRow
from sqlalchemy import bindparam, select

from utuple.model.section import Section
from utuple.store.contract import OWN_ORIGIN
from utuple.store.families import is_in_section, section_ends
from utuple.store.origins import event_is_of, furthest
from utuple.store.reading import FIRST_ROWS, SEQ_COLUMN, Readers, rows_in_piece
from utuple.store.session import Connection
from utuple.store.sql import event_columns
from utuple.store.statements import Parameters, Statement, compiled
from utuple.store.tables import events, families, meta

CHUNK_ROWS = 2_000
FIRST_WINDOW_SEQS = 4_000
LEAST_WINDOW_SEQS = 1_000
"""Narrower ones would read the same pages again."""


async def read_events(
    readers: Readers, section: Section, origin: str, after: int, now_us: int
) -> AsyncGenerator[list[TupleRow]]:
    """In seq order, up to what is there when the reading begins; each with the names of its family."""
    async with readers.lent() as connection:
        upto = await _last_seq(connection, origin)
    statement = window(section, origin, now_us)
    width, most = FIRST_WINDOW_SEQS, FIRST_ROWS
    while after < upto:
        end = min(after + width, upto)
        asked = {**statement.parameters, "after": after, "upto": end, "most": most}
        async with readers.lent() as connection:
            rows = await _fetch(connection, statement.text, asked)
        if rows:
            yield rows
        if len(rows) == most:
            after, width = rows[-1][SEQ_COLUMN], max(LEAST_WINDOW_SEQS, width // 2)
        else:
            after, width = end, 2 * width
        if rows:
            most = min(CHUNK_ROWS, 2 * most, rows_in_piece(rows))


def window(section: Section, origin: str, now_us: int) -> Statement:
    """Then `after`, `upto` and `most` are to be given."""
    c = events.c
    made = compiled(
        select(*event_columns(), families.c.subject, families.c.type)
        .join(families, families.c.id == c.family)
        .where(
            is_in_section(),
            event_is_of(origin),
            c.seq > bindparam("after", type_=c.seq.type),
            c.seq <= bindparam("upto", type_=c.seq.type),
            c.expires_us > now_us,
        )
        .order_by(c.seq)
        .limit(bindparam("most"))
    )
    return Statement(made.text, {**made.parameters, **section_ends(section)})


async def _last_seq(connection: Connection, origin: str) -> int:
    if origin != OWN_ORIGIN:
        return (await furthest(connection)).get(origin, 0)
    (found,) = await (await connection.execute(compiled(select(meta.c.seq)).text)).fetchall()
    return int(found[0])


async def _fetch(connection: Connection, text: bytes, parameters: Parameters) -> list[TupleRow]:
    """Planned each time, for these seqs: which leaves to read, and how, depends on them."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(text, parameters, prepare=False)
        return await cursor.fetchall()
