"""What readers and retries ask of the database: statements, and rows made into batches."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from psycopg.rows import TupleRow
from sqlalchemy import Select, select

from utuple.model.columns import Columns
from utuple.model.condition import decode_where, where_meets
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind, Template, UTuple
from utuple.store.contract import OWN_ORIGIN, Batch, Known, RetryKey, Search
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.families import is_in_section, section_ends
from utuple.store.postgres.origins import is_visible
from utuple.store.postgres.searching.conditions import device_columns, needs_check
from utuple.store.postgres.searching.prepared import ByColumn, by_column
from utuple.store.postgres.statements import Statement, any_of, compiled, raw_text, rows
from utuple.store.postgres.tables import devices, events, families

_SIZES = """
    SELECT
        (SELECT greatest(reltuples, pg_stat_get_live_tuples(oid), 0)
         FROM pg_class WHERE oid = 'devices'::regclass),
        (SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)
         FROM pg_inherits WHERE inhparent = 'events'::regclass)
            + pg_total_relation_size('devices') + pg_total_relation_size('templates')
"""


def batch_of(
    kind: Kind,
    families: Sequence[Family],
    family: array[int],
    columns: Sequence[Sequence[Any]],
    origin: str = OWN_ORIGIN,
) -> Batch:
    """In the order of `conditions.event_columns` or `device_columns`, perhaps followed by the expiry; `family` is that of each
    row."""
    ids, payloads, addresses, seqs, times, lats, lons, *more = columns
    is_device = kind is Kind.CF
    return Batch(
        Columns(
            tuple(families),
            family,
            b"".join(ids),
            array("q", times),
            array("d", lats),
            array("d", lons),
            array("q", more[1] if is_device else bytes(8 * len(ids))),
            tuple(addresses),
            tuple(payloads),
            more[2] if is_device else (),
        ),
        array("Q", seqs),
        array("q", more[0] if more else ()),
        origin,
    )


def matching(template: UTuple, batch: Batch) -> Batch | None:
    """What truly matches of what was found: SQL has seen only part of what some templates ask."""
    if not needs_check(template):
        return batch
    kept = [row for row in range(len(batch)) if _meets(template, batch, row)]
    if len(kept) == len(batch):
        return batch
    return batch.take(kept) if kept else None


def batch_of_search(search: Search, found: ByColumn) -> Batch:
    family = (search.template.family,), array("I", bytes(4 * len(found[0])))
    if search.template.kind is Kind.EF:
        return batch_of(Kind.EA, *family, found, search.origin)
    return batch_of(Kind.CF, *family, found)


def _meets(template: UTuple, batch: Batch, row: int) -> bool:
    columns = batch.columns
    assert isinstance(template.metadata, Template)
    area = template.metadata.area
    if area is not None:
        position = columns.position_at(row)
        if position is None or not area.contains(position):
            return False
    return template.data is None or where_meets(decode_where(columns.payloads[row]), template.data)


# --- retries -------------------------------------------------------------------------------------


async def known_events(
    writer: Connection, keys: Sequence[RetryKey], ids: Mapping[Family, int]
) -> dict[bytes, Known]:
    asked = [key for key in keys if key.family in ids]
    parameters = {
        "family": [ids[key.family] for key in asked],
        "time_us": [key.time_us for key in asked],
        "id": [key.id.hex() for key in asked],
    }
    return await _known(writer, _known_events(), parameters) if asked else {}


async def known_devices(writer: Connection, ids: Sequence[bytes]) -> dict[bytes, Known]:
    return await _known(writer, _known_devices(), {"ids": [id_.hex() for id_ in ids]})


async def _known(
    writer: Connection, statement: bytes, parameters: Mapping[str, object]
) -> dict[bytes, Known]:
    async with writer.cursor(binary=True) as cursor:
        await cursor.execute(statement, parameters)
        return {
            id_: Known(id_, address, payload, *reader)
            for id_, address, payload, *reader in await cursor.fetchall()
        }


@cache
def _known_events() -> bytes:
    """By family and time, which are indexed, then id, which needs no index of its own."""
    given = rows([events.c.family, events.c.time_us, events.c.id])
    return compiled(
        select(events.c.id, events.c.address, raw_text(events.c.data)).join(
            given,
            (events.c.family == given.c.family)
            & (events.c.time_us == given.c.time_us)
            & (events.c.id == given.c.id),
        )
    ).text


@cache
def _known_devices() -> bytes:
    c = devices.c
    found = select(c.id, c.address, raw_text(c.wanted), c.reader)
    return compiled(found.where(any_of(c.id, "ids"))).text


# --- devices, stats ------------------------------------------------------------------------------


def living_devices(now_us: int, after: int) -> Select[Any]:
    """Not hidden, in seq order; then the names of the family."""
    c = devices.c
    return (
        select(*device_columns(), families.c.subject, families.c.type)
        .join(families, families.c.id == c.family)
        .where(c.expires_us > now_us, c.seq > after, is_visible(c.origin))
        .order_by(c.seq)
    )


def devices_with(ids: Sequence[bytes], now_us: int, after: int) -> Statement:
    asked = compiled(living_devices(now_us, after).where(any_of(devices.c.id, "ids")))
    return Statement(asked.text, {**asked.parameters, "ids": [id_.hex() for id_ in ids]})


def devices_in(section: Section, now_us: int, after: int) -> Statement:
    asked = compiled(living_devices(now_us, after).where(is_in_section()))
    return Statement(asked.text, {**asked.parameters, **section_ends(section)})


def batch_of_families(kind: Kind, found: list[TupleRow], origin: str = OWN_ORIGIN) -> Batch:
    """Of rows that end in the names of their family."""
    numbers: dict[Family, int] = {}
    family = [numbers.setdefault(Family(*row[-2:]), len(numbers)) for row in found]
    return batch_of(kind, tuple(numbers), array("I", family), by_column(found), origin)


async def devices_and_bytes(connection: Connection) -> tuple[int, int]:
    """How many CFs, by PostgreSQL's estimate, and the size of everything with its indexes."""
    found = await (await connection.execute(_SIZES)).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])
