"""What a starting server has back, read by the writer's connection once it holds the lock."""

from __future__ import annotations

from psycopg.rows import TupleRow
from sqlalchemy import or_, select

from utuple.cluster.line import Line, ServerInfo
from utuple.model.packed import Packed
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind
from utuple.store.contract import FormalPosition, Recovered, StoredTemplate
from utuple.store.origins import furthest
from utuple.store.portable import decode_members
from utuple.store.session import Connection
from utuple.store.statements import Statement, compiled, raw_id, raw_text
from utuple.store.tables import (
    devices,
    families,
    lines,
    meta,
    notes,
    positions,
    servers,
    templates,
)


async def recover(writer: Connection, now_us: int) -> Recovered:
    seq = await _all(writer, compiled(select(meta.c.seq)))
    of_lines = compiled(select(*lines.columns).order_by(lines.c.start_key))
    of_servers = compiled(select(*servers.columns).order_by(servers.c.name))
    of_notes = compiled(select(*notes.columns).order_by(notes.c.name))
    return Recovered(
        seq[0][0],
        tuple([_line(row) for row in await _all(writer, of_lines)]),
        tuple([ServerInfo(*row) for row in await _all(writer, of_servers)]),
        tuple([_template(row) for row in await _all(writer, _living_templates(now_us))]),
        tuple([FormalPosition(*row) for row in await _all(writer, _living_positions(now_us))]),
        {name: bytes(body) for name, body in await _all(writer, of_notes)},
        await furthest(writer),
    )


def _line(row: TupleRow) -> Line:
    start, end, epoch, members = row
    return Line(Section(int(start), int(end)), epoch, decode_members(members))


def _template(row: TupleRow) -> StoredTemplate:
    id_, subject, type_, kind, metadata, payload, lifetime_s, reader, seq, expires_us = row
    family = Family(subject, type_)
    half = Packed(id_, family, Kind(kind), metadata, payload, lifetime_s, reader or "")
    return StoredTemplate(half, seq, expires_us)


async def _all(writer: Connection, statement: Statement) -> list[TupleRow]:
    async with writer.cursor(binary=True) as cursor:
        await cursor.execute(statement.text, statement.parameters)
        return await cursor.fetchall()


def _living_templates(now_us: int) -> Statement:
    t = templates.c
    return compiled(
        select(
            raw_id(t.id),
            families.c.subject,
            families.c.type,
            t.kind,
            raw_text(t.metadata),
            raw_text(t.payload),
            t.lifetime_s,
            t.reader,
            t.seq,
            t.expires_us,
        )
        .join(families, families.c.id == t.family)
        .where(t.expires_us > now_us)
        .order_by(t.seq, t.id)
    )


def _living_positions(now_us: int) -> Statement:
    formals = [
        select(table.c.id).where(table.c.expires_us > now_us) for table in (templates, devices)
    ]
    p = positions.c
    return compiled(
        select(raw_id(p.formal), p.origin, p.seq)
        .where(or_(*(p.formal.in_(living) for living in formals)))
        .order_by(p.formal, p.origin)
    )
