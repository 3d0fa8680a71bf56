"""Pages: stored matches by their time, the first so many or the last.

Each piece is a statement of its own that begins after the last row of the piece before, so that nothing is held between
two pieces. PostgreSQL walks the leaves' indexes on (family, time) side by side and stops when it has enough rows.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Select, Uuid, bindparam, select, tuple_

from utuple.model.columns import Columns
from utuple.model.utuple import Kind, Template
from utuple.store.contract import Key, Page
from utuple.store.postgres.origins import is_visible
from utuple.store.postgres.searching.conditions import (
    SHAPES_MAX,
    event_columns,
    metadata_conditions,
    needs_check,
    shape_of,
    values_of,
)
from utuple.store.postgres.searching.data_conditions import DATA, with_data
from utuple.store.postgres.searching.lookup import batch_of, matching
from utuple.store.postgres.searching.portals import (
    ID_COLUMN,
    PAYLOAD_COLUMN,
    PIECE_BYTES,
    ReaderPool,
)
from utuple.store.postgres.searching.prepared import ByColumn, columns_of
from utuple.store.postgres.statements import Statement, compiled
from utuple.store.postgres.tables import events
from utuple.store.turns import Lane, limit_s

TIME_COLUMN = 4
"""Where rows hold it: see `conditions.event_columns`."""
FIRST_ROWS = 128
"""A payload may have a megabyte: pieces begin small and grow only while payloads are small."""
MOST_ROWS = 2_000


async def read_page(readers: ReaderPool, page: Page, family: int) -> AsyncGenerator[Columns, None]:
    """Where SQL finds only a superset (a circle's box), more rows are asked for than are left to give."""
    left, after, wanted = page.rows, page.after, FIRST_ROWS
    while left:
        wanted = wanted if needs_check(page.template) else min(wanted, left)
        found = await _piece(readers, page_statement(page, family, after, wanted), page)
        rows = len(found[ID_COLUMN]) if found else 0
        if rows:
            families = (page.template.family,), array("I", bytes(4 * rows))
            kept = matching(page.template, batch_of(Kind.EA, *families, found))
            if kept is not None:
                kept = kept if len(kept) <= left else kept.take(range(left))
                left -= len(kept)
                yield kept.columns
        if rows < wanted:
            return
        after = found[TIME_COLUMN][-1], found[ID_COLUMN][-1]
        size_bytes = sum(map(len, found[PAYLOAD_COLUMN]))
        wanted = max(1, min(8 * rows, PIECE_BYTES * rows // max(1, size_bytes), MOST_ROWS))


async def _piece(readers: ReaderPool, statement: Statement, page: Page) -> ByColumn:
    """What takes longer than its turn is asked again in a longer one."""
    for broken_off in count():
        lane = Lane(min(broken_off, Lane.LONG))
        async with readers.connection(lane, page.template.family) as connection:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s(broken_off)):
                    return await columns_of(connection, statement)
    raise AssertionError("turns become longer without end")


def page_statement(page: Page, family: int, after: Key | None, rows: int) -> Statement:
    """All visible origins at once: the statement looks up in its own snapshot which they are. To write it takes several
    milliseconds, so the usual shapes are written once."""
    template = page.template
    has_data, has_begun = bool(template.where), after is not None
    shape = shape_of(replace(template, where={}))
    if shape is not None:
        text = _text(shape, page.newest_first, has_data, has_begun)
        statement = Statement(text, dict(values_of(template)))
    else:
        assert isinstance(template.metadata, Template)
        statement = compiled(_asked(template.metadata, page.newest_first, has_data, has_begun))
    statement.parameters.update(family=family, now_us=page.now_us, rows=rows)
    if after is not None:
        statement.parameters.update(after_us=after[0], after_id=UUID(bytes=after[1]))
    return with_data(statement, template.where) if template.where else statement


@lru_cache(maxsize=SHAPES_MAX)
def _text(shape: Template, newest_first: bool, has_data: bool, has_begun: bool) -> bytes:
    return compiled(_asked(shape, newest_first, has_data, has_begun)).text


def _asked(metadata: Template, newest_first: bool, has_data: bool, has_begun: bool) -> Select[Any]:
    c = events.c
    asked = select(*event_columns()).where(
        c.family == bindparam("family", type_=c.family.type),
        *metadata_conditions(metadata, events),
        c.expires_us > bindparam("now_us", type_=c.expires_us.type),
        is_visible(c.origin),
        *([DATA] if has_data else []),
        *([_comes_after(newest_first=newest_first)] if has_begun else []),
    )
    order = [c.time_us.desc(), c.id.desc()] if newest_first else [c.time_us, c.id]
    return asked.order_by(*order).limit(_a_tenth_or_less())


def _a_tenth_or_less() -> ColumnElement[int]:
    """A number PostgreSQL does not see while it plans: it then plans for a tenth of what there is, and so walks an index on time
    where that is the way. Of a new leaf it has no statistics and thinks that it holds next to nothing: asked for more than
    that, it would read and sort the whole of it, for every piece."""
    return select(bindparam("rows", type_=BigInteger)).scalar_subquery()


def _comes_after(*, newest_first: bool) -> ColumnElement[bool]:
    """The index begins there by itself: of a comparison of rows it understands the first part."""
    c = events.c
    after = tuple_(bindparam("after_us", type_=c.time_us.type), bindparam("after_id", type_=Uuid()))
    row = tuple_(c.time_us, c.id)
    return row < after if newest_first else row > after
