"""What a starting server has back, read by the writer's connection once it holds the lock."""

from __future__ import annotations

from typing import Any

from psycopg.rows import TupleRow
from sqlalchemy import or_, select

from utuple.cluster.line import Line, ServerInfo
from utuple.model.columns import NEVER_US
from utuple.model.packed import packed_columns
from utuple.model.utuple import Family, Kind
from utuple.store.contract import FormalPosition, Recovered, StoredTemplate, stored_templates
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.origins import furthest
from utuple.store.postgres.statements import Statement, compiled, raw_text
from utuple.store.postgres.tables import (
    COMMITTED,
    decode_line,
    devices,
    families,
    lines,
    notes,
    positions,
    servers,
    templates,
)

CHUNK_ROWS = 10_000
SHARED_MOST = 10_000
"""Names of readers and data templates are mostly few: equal ones are kept once."""


async def recover(writer: Connection, now_us: int) -> Recovered:
    seq = await (await writer.execute(COMMITTED.encode())).fetchall()
    of_lines = compiled(select(*lines.columns).order_by(lines.c.start_key))
    of_servers = compiled(select(*servers.columns).order_by(servers.c.name))
    of_notes = compiled(select(*notes.columns).order_by(notes.c.name))
    return Recovered(
        seq[0][0],
        tuple([_line(row) for row in await _all(writer, of_lines)]),
        tuple([ServerInfo(*row) for row in await _all(writer, of_servers)]),
        tuple(await _templates(writer, now_us)),
        tuple([FormalPosition(*row) for row in await _all(writer, _living_positions(now_us))]),
        {name: bytes(body) for name, body in await _all(writer, of_notes)},
        await furthest(writer),
        dict(await _all(writer, _held_devices())),
    )


def _line(row: TupleRow) -> Line:
    start, end, epoch, members = row
    return decode_line(int(start), int(end), epoch, members)


async def _templates(writer: Connection, now_us: int) -> list[StoredTemplate]:
    """In the order of their seqs. There may be a million: they are read in chunks, by columns, and PostgreSQL
    is not asked to sort them, since they lie nearly in that order."""
    named = await _all(writer, compiled(select(families.c.id, families.c.subject, families.c.type)))
    family_of = {id_: Family(subject, type_) for id_, subject, type_ in named}
    kind_of = {kind.value: kind for kind in (Kind.EF, Kind.CA)}
    shared: dict[Any, Any] = {}
    found: list[StoredTemplate] = []
    asked = _living_templates(now_us)
    async with writer.transaction(), writer.cursor("templates", binary=True) as cursor:
        await cursor.execute(asked.text, asked.parameters)
        while rows := await cursor.fetchmany(CHUNK_ROWS):
            ids, numbers, kinds, metadata, payloads, lifetimes, readers, terms, *order = zip(
                *rows, strict=True
            )
            halves = packed_columns(
                ids=ids,
                families=map(family_of.__getitem__, numbers),
                kinds=map(kind_of.__getitem__, kinds),
                metadata=metadata,
                payloads=[shared.setdefault(payload, payload) for payload in payloads],
                lifetimes_s=lifetimes,
                readers=[shared.setdefault(reader, reader) or "" for reader in readers],
                terms=[shared.setdefault(said, said) for said in terms],
            )
            found += stored_templates(halves, *order)
            if len(shared) > SHARED_MOST:
                shared.clear()
    found.sort(key=lambda stored: (stored.seq, stored.packed.id))
    return found


async def _all(writer: Connection, statement: Statement) -> list[TupleRow]:
    async with writer.cursor(binary=True) as cursor:
        await cursor.execute(statement.text, statement.parameters)
        return await cursor.fetchall()


def _living_templates(now_us: int) -> Statement:
    t = templates.c
    return compiled(
        select(
            t.id,
            t.family,
            t.kind,
            raw_text(t.metadata),
            raw_text(t.payload),
            t.lifetime_s,
            t.reader,
            raw_text(t.terms),
            t.seq,
            t.expires_us,
        ).where(t.expires_us > now_us)
    )


def _held_devices() -> Statement:
    d = devices.c
    return compiled(select(d.id, d.lifetime_us).where(d.expires_us == NEVER_US))


def _living_positions(now_us: int) -> Statement:
    formals = [
        select(table.c.id).where(table.c.expires_us > now_us) for table in (templates, devices)
    ]
    p = positions.c
    return compiled(
        select(p.formal, p.origin, p.seq)
        .where(or_(*(p.formal.in_(living) for living in formals)))
        .order_by(p.formal, p.origin)
    )
