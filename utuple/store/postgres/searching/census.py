"""What sections hold, at a price that hardly grows with what is stored.

A small table is counted. Of a large one some pages are counted, drawn anew each time, and stand for the
rest. That estimates rows and draws a key; but what is not on the drawn pages may still be there, so where
they leave a question open the index by family answers it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Integer,
    Table,
    bindparam,
    func,
    literal_column,
    select,
    tablesample,
    true,
)

from utuple.model.section import Section
from utuple.store.contract import Census
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.families import key_from, section_ends
from utuple.store.postgres.origins import is_visible
from utuple.store.postgres.statements import compiled, rows
from utuple.store.postgres.tables import devices, events, families

COUNTED_PAGES_MAX = 5_000
"""Of 8 KiB, for some 250,000 rows: they are counted in a tenth of a second."""
DRAWN_PAGES = 250
"""For some 10,000 rows."""
ALL = 100.0
"""Per cent."""

_PAGES = """
    SELECT coalesce(sum(pg_relation_size(oid)) / current_setting('block_size')::int, 0)
    FROM (SELECT %(table)s::regclass::oid UNION ALL
          SELECT inhrelid FROM pg_inherits WHERE inhparent = %(table)s::regclass) AS parts(oid)
"""
_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off"
"""Where a family is looked for that may not be there, a planner that hopes to meet it soon reads all."""


@dataclass(slots=True)
class _Drawn:
    """What was counted, by key."""

    is_all: bool = True
    visible: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Rows these stand for."""
    present: set[int] = field(default_factory=set)
    """Hidden ones too."""


async def take_census(
    connection: Connection, sections: Sequence[Section], now_us: int
) -> list[Census]:
    async with connection.transaction():
        await connection.execute(_ONE_SNAPSHOT)
        drawn = _Drawn()
        for table in (events, devices):
            await _draw(connection, table, now_us, drawn)
        counted = _by_section(sections, drawn)
        if drawn.is_all:
            return counted
        open_ones = [number for number, one in enumerate(counted) if not one.is_splittable]
        await connection.execute(_BY_INDEX)
        return await _settled(connection, sections, counted, open_ones, now_us)


async def _draw(connection: Connection, table: Table, now_us: int, drawn: _Drawn) -> None:
    (pages,) = await (await connection.execute(_PAGES, {"table": table.name})).fetchall()
    percent = ALL if pages[0] <= COUNTED_PAGES_MAX else ALL * DRAWN_PAGES / float(pages[0])
    asked = {"percent": percent, "now_us": now_us}
    for stored, is_shown, count in await (await connection.execute(draw(table), asked)).fetchall():
        key = key_from(stored)
        drawn.present.add(key)
        if is_shown:
            drawn.visible[key] += count * ALL / percent
    drawn.is_all = drawn.is_all and percent == ALL


def _by_section(sections: Sequence[Section], drawn: _Drawn) -> list[Census]:
    present, visible = sorted(drawn.present), sorted(drawn.visible)
    counted: list[Census] = []
    for section in sections:
        keys = _inside(section, visible)
        weights = [drawn.visible[key] for key in keys]
        counted.append(
            Census(
                round(sum(weights)),
                not _inside(section, present),
                len(keys) > 1,
                random.choices(keys, weights)[0] if keys else None,
            )
        )
    return counted


def _inside(section: Section, keys: list[int]) -> list[int]:
    return keys[bisect_left(keys, section.start) : bisect_left(keys, section.end)]


async def _settled(
    connection: Connection,
    sections: Sequence[Section],
    counted: list[Census],
    open_ones: list[int],
    now_us: int,
) -> list[Census]:
    """Look for a second key where only one was drawn, and for any where none was."""
    settled = list(counted)
    shown = await _look(connection, sections, open_ones, now_us, is_shown=True)
    without = [number for number in open_ones if not shown[number] and counted[number].is_empty]
    hidden = await _look(connection, sections, without, now_us, is_shown=False)
    for number in open_ones:
        one, keys = counted[number], shown[number]
        some_key = one.some_key if one.some_key is not None else next(iter(keys), None)
        settled[number] = Census(
            max(one.rows, len(keys)),
            one.is_empty and not keys and not hidden[number],
            len(keys | {some_key} - {None}) > 1,
            some_key,
        )
    return settled


async def _look(
    connection: Connection,
    sections: Sequence[Section],
    numbers: Sequence[int],
    now_us: int,
    *,
    is_shown: bool,
) -> defaultdict[int, set[int]]:
    """Up to two keys of each table in each of these sections."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    ends = [section_ends(sections[number]) for number in numbers]
    asked = {
        "number": list(numbers),
        "start": [one["start"] for one in ends],
        "last": [one["last"] for one in ends],
        "now_us": now_us,
    }
    for table in (events, devices) if numbers else ():
        for number, stored in await (
            await connection.execute(look(table, is_shown=is_shown), asked, prepare=False)
        ).fetchall():
            found[number].add(key_from(stored))
    return found


@cache
def draw(table: Table) -> bytes:
    drawn = tablesample(table, func.system(bindparam("percent", type_=Double)), name="drawn")
    is_shown = is_visible(drawn.c.origin).label("is_shown")
    return compiled(
        select(families.c.key, is_shown, func.count())
        .join_from(drawn, families, families.c.id == drawn.c.family)
        .where(drawn.c.expires_us > bindparam("now_us", type_=BigInteger))
        .group_by(families.c.key, is_shown)
    ).text


@cache
def look(table: Table, *, is_shown: bool) -> bytes:
    """Family by family, in no order that repeats, until two are found that have a row."""
    given = rows(
        [Column("number", Integer), Column("start", BigInteger), Column("last", BigInteger)]
    )
    key = families.c.key
    tried = (
        select(families.c.id, key)
        .where(key >= given.c.start, key <= given.c.last)
        .order_by(func.random())
        .correlate(given)
        .subquery("tried")
    )
    held = (
        select(literal_column("1"))
        .select_from(table)
        .where(
            table.c.family == tried.c.id,
            table.c.expires_us > bindparam("now_us", type_=BigInteger),
            is_visible(table.c.origin) if is_shown else true(),
        )
        .limit(literal_column("1"))
        .lateral("held")
    )
    found = (
        select(tried.c.key)
        .select_from(tried.join(held, true()))
        .limit(literal_column("2"))
        .correlate(given)
        .lateral("found")
    )
    return compiled(select(given.c.number, found.c.key).select_from(given.join(found, true()))).text
