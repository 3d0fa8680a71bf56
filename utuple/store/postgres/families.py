"""Families in the database: a row keeps a small number instead of two names.

The number stands for the names themselves and not for their 64-bit key: two families may share a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from sqlalchemy import ColumnElement, and_, bindparam, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.statements import compiled, rows
from utuple.store.postgres.tables import families

CACHED_MAX = 100_000
_SIGNED = 1 << 63
"""A key is unsigned; PostgreSQL's bigint is not."""


def key_from(stored: int) -> int:
    return stored + _SIGNED


def is_in_section() -> ColumnElement[bool]:
    """The family's key lies in the section given by `section_ends`."""
    start, last = (bindparam(name, type_=families.c.key.type) for name in ("start", "last"))
    return and_(families.c.key >= start, families.c.key <= last)


def section_ends(section: Section) -> dict[str, int]:
    """As parameters. The last key, since the end of the hash space is no bigint."""
    return {"start": section.start - _SIGNED, "last": section.end - 1 - _SIGNED}


class Families:
    """The numbers of families known to be committed."""

    def __init__(self) -> None:
        self._ids: dict[Family, int] = {}

    @property
    def known(self) -> Mapping[Family, int]:
        return self._ids

    def remember(self, ids: Mapping[Family, int]) -> None:
        if len(self._ids) + len(ids) > CACHED_MAX:
            self._ids.clear()
        self._ids.update(ids)

    async def find(self, connection: Connection, asked: Iterable[Family]) -> dict[Family, int]:
        """Those of these that exist."""
        known = {family: self._ids[family] for family in asked if family in self._ids}
        missing = [family for family in asked if family not in known]
        if missing:
            found = await _ask(connection, missing)
            self.remember(found)
            known.update(found)
        return known

    async def find_or_add(self, writer: Connection, asked: set[Family]) -> dict[Family, int]:
        """All of these, inside the writer's transaction: `remember` them once it is committed."""
        ids = {family: self._ids[family] for family in asked if family in self._ids}
        missing = [family for family in asked if family not in ids]
        if missing:
            ids.update(await _ask(writer, missing))
        new = [family for family in missing if family not in ids]
        if new:
            await writer.execute(
                _add(),
                {
                    "key": [key_of(*family) - _SIGNED for family in new],
                    "subject": [family.subject for family in new],
                    "type": [family.type for family in new],
                },
            )
            ids.update(await _ask(writer, new))
        return ids


async def _ask(connection: Connection, asked: list[Family]) -> dict[Family, int]:
    wanted = {
        "subject": [family.subject for family in asked],
        "type": [family.type for family in asked],
    }
    found = await (await connection.execute(_find(), wanted)).fetchall()
    return {Family(subject, type_): id_ for id_, subject, type_ in found}


@cache
def _find() -> bytes:
    given = rows([families.c.subject, families.c.type])
    pair = tuple_(families.c.subject, families.c.type)
    return compiled(
        select(families.c.id, families.c.subject, families.c.type).where(
            pair.in_(select(given.c.subject, given.c.type))
        )
    ).text


@cache
def _add() -> bytes:
    given = rows([families.c.key, families.c.subject, families.c.type])
    adding = insert(families).from_select(["key", "subject", "type"], select(*given.columns))
    return compiled(adding).text
