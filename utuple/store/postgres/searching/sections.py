"""A section's EAs, read out for a drain.

A drain reads for minutes, and sorting all of a section first would take as long again and as much disk. So
EAs are read in windows of their origin's seqs, one after the other, and only a window is sorted. Windows
widen where seqs are sparse and narrow where they are dense or payloads large.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import psycopg
from psycopg.rows import TupleRow
from sqlalchemy import bindparam, select

from utuple.model.section import Section
from utuple.store.contract import OWN_ORIGIN
from utuple.store.postgres.families import is_in_section, section_ends
from utuple.store.postgres.origins import event_is_of, furthest
from utuple.store.postgres.searching.conditions import event_columns
from utuple.store.postgres.searching.portals import (
    BEGIN,
    SEQ_COLUMN,
    ReaderPool,
    read_on,
    size_bytes_of,
)
from utuple.store.postgres.statements import Statement, compiled
from utuple.store.postgres.tables import events, families

CHUNK_ROWS = 2_000
FIRST_WINDOW_SEQS = 20_000
WINDOW_ROWS = 20_000
WINDOW_BYTES = 16 << 20
"""What a window should hold: enough to be worth looking into every leaf, little enough to sort at once."""
WIDEN_MOST = 4

_SUMMARIZE = """
    SELECT brin_summarize_new_values(indexrelid) FROM pg_inherits
    JOIN pg_index ON indrelid = inhrelid JOIN pg_class ON pg_class.oid = indexrelid
    JOIN pg_am ON pg_am.oid = relam
    WHERE inhparent = 'events'::regclass AND amname = 'brin'
"""
"""So that a window of seqs is found in a leaf without reading all of it."""
_BEGIN_BY_SEQ = f"{BEGIN}; SET LOCAL enable_seqscan = off"
"""A leaf that PostgreSQL has not analysed yet would be read as a whole for every window."""


async def read_events(
    readers: ReaderPool, section: Section, origin: str, after: int, upto: int, now_us: int
) -> AsyncGenerator[list[TupleRow]]:
    """In seq order, up to what is there when the reading begins (of our own: `upto`); each with the names of its
    family."""
    async with readers.connection() as connection:
        if origin != OWN_ORIGIN:
            upto = (await furthest(connection)).get(origin, 0)
        with suppress(
            psycopg.ProgrammingError, psycopg.InternalError
        ):  # a leaf was dropped meanwhile
            await connection.execute(_SUMMARIZE)
    asked = window(section, origin, now_us)
    width = FIRST_WINDOW_SEQS
    while after < upto:
        end = min(after + width, upto)

        def rest(seq: int, end: int = end) -> Statement:
            return Statement(asked.text, {**asked.parameters, "after": seq, "upto": end})

        rows = size_bytes = 0
        window_of = read_on(readers, rest, after, CHUNK_ROWS, _BEGIN_BY_SEQ, who="moves")
        async with aclosing(window_of) as pieces:
            async for piece in pieces:
                rows += len(piece)
                size_bytes += size_bytes_of(piece)
                yield piece
        after, width = end, next_width(width, rows, size_bytes)


def next_width(width: int, rows: int, size_bytes: int) -> int:
    """In seqs, going by what was in a window of this width."""
    share = max(rows / WINDOW_ROWS, size_bytes / WINDOW_BYTES, 1 / WIDEN_MOST)
    return max(1, int(width / share))


def window(section: Section, origin: str, now_us: int) -> Statement:
    """`after` and `upto` are to be given. The inner OFFSET keeps the planner from looking up the same
    window for every family."""
    c = events.c
    inside = (
        select(*event_columns(), c.expires_us, c.family)
        .where(
            event_is_of(origin),
            c.seq > bindparam("after", type_=c.seq.type),
            c.seq <= bindparam("upto", type_=c.seq.type),
            c.expires_us > now_us,
        )
        .offset(0)
        .subquery("inside")
    )
    *columns, family = inside.columns
    made = compiled(
        select(*columns, families.c.subject, families.c.type)
        .join_from(inside, families, families.c.id == family)
        .where(is_in_section())
        .order_by(columns[SEQ_COLUMN])
    )
    return Statement(made.text, {**made.parameters, **section_ends(section)})
