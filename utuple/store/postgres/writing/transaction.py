"""What one transaction writes, statement by statement. The caller begins and commits.

The order is the writer's own (`utuple/server/writing/writer.py`): what is cancelled goes first, so that an id
cancelled and registered again in one transaction is there afterwards. What a move takes away has gone
before (`removal.py`), and what it reveals comes last, with all that this transaction brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from psycopg import generators
from psycopg.abc import PQGen
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.waiting import Wait
from sqlalchemy import Table, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from utuple.cluster.line import Line, ServerInfo
from utuple.model.utuple import Family
from utuple.store.contract import Batch, FormalPosition, Transaction
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.origins import (
    OWN_NUMBER,
    Origin,
    is_hidden,
    is_visible,
    origin_of,
    reveal,
)
from utuple.store.postgres.statements import any_of, compiled, rows, upsert, upsert_over
from utuple.store.postgres.tables import (
    SET_COMMITTED,
    devices,
    encode_members,
    lines,
    notes,
    positions,
    servers,
    templates,
)
from utuple.store.postgres.writing.copy import COLUMNS, LeafCopy
from utuple.store.postgres.writing.templates import literal, write_templates


async def copy_events(writer: Connection, pieces: Iterable[LeafCopy], *, begins: bool) -> None:
    """With `begins` the transaction begins with the first of them, without a round trip of its own."""
    before = b"BEGIN; " if begins else b""
    for piece in pieces:
        copy = f"COPY {piece.leaf.name} ({COLUMNS}) FROM STDIN (FORMAT BINARY)".encode()
        await _copy(writer, before + copy, piece.slices)
        before = b""


async def _copy(writer: Connection, statement: bytes, slices: Iterable[bytes]) -> None:
    """As psycopg's own copy does, but that it goes on while the socket takes what it is given: psycopg lets others
    have their turn after each slice, and PostgreSQL would wait for them."""
    pgconn = writer.pgconn
    pgconn.send_query(statement)
    for result in await writer.wait(generators.execute(pgconn)):
        if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.COPY_IN):
            raise error_from_result(result)
    for part in slices:
        pgconn.put_copy_data(part)
        if pgconn.flush():
            await writer.wait(_flushed(writer))
    await writer.wait(generators.copy_end(pgconn, None))


def _flushed(writer: Connection) -> PQGen[None]:
    """What does not fit into the socket is taken by and by."""
    while True:
        yield Wait.W
        if not writer.pgconn.flush():
            return


async def write_rest(
    writer: Connection,
    transaction: Transaction,
    family_ids: Mapping[Family, int],
    numbers: Mapping[Origin, int],
) -> None:
    """Everything but the EAs and the seq."""
    if transaction.cancelled:
        await _cancel(writer, transaction.cancelled)
    own = [batch for batch in transaction.devices if not batch.shadow]
    if own:
        await writer.execute(upsert(devices), _device_rows(own, family_ids, numbers))
    shadows = [batch for batch in transaction.devices if batch.shadow]
    if shadows:
        await _hide_devices(writer, _device_rows(shadows, family_ids, numbers))
    if transaction.templates:
        await write_templates(writer, transaction.templates, family_ids)
    if transaction.renewed:
        await _renew(writer, dict(transaction.renewed))
    if transaction.positions:
        await writer.execute(advance_positions(), _position_rows(transaction.positions))
    if transaction.lines is not None:
        await _replace(writer, lines, _line_rows(transaction.lines))
    if transaction.servers is not None:
        await _replace(writer, servers, _server_rows(transaction.servers))
    if transaction.notes:
        await _note(writer, transaction.notes)
    if transaction.revealed:
        await reveal(writer, transaction.revealed)


def note_seq(seq: int) -> bytes:
    """As text, so that it can travel with COMMIT in one message."""
    return f"SELECT {SET_COMMITTED.format(seq)}".encode()


async def _cancel(writer: Connection, ids: Sequence[bytes]) -> None:
    asked = {"ids": literal(id_.hex() for id_ in ids)}
    for statement in cancels():
        await writer.execute(statement, asked)


@cache
def cancels() -> tuple[bytes, ...]:
    keys = (positions.c.formal, templates.c.id, devices.c.id)
    return tuple(compiled(delete(key.table).where(any_of(key, "ids"))).text for key in keys)


async def _renew(writer: Connection, expiries: Mapping[bytes, int]) -> None:
    asked = {"id": [id_.hex() for id_ in expiries], "expires_us": list(expiries.values())}
    for statement in renewals():
        await writer.execute(statement, asked)


@cache
def renewals() -> tuple[bytes, ...]:
    return tuple(_renewal(table) for table in (templates, devices))


def _renewal(table: Table) -> bytes:
    given = rows([table.c.id, table.c.expires_us])
    return compiled(
        update(table).values(expires_us=given.c.expires_us).where(table.c.id == given.c.id)
    ).text


@cache
def advance_positions() -> bytes:
    """Positions only grow, and only of formals that are there."""
    given = rows([positions.c.formal, positions.c.origin, positions.c.seq])
    is_kept = or_(
        exists().where(templates.c.id == given.c.formal),
        exists().where(devices.c.id == given.c.formal),
    )
    adding = insert(positions).from_select(
        ["formal", "origin", "seq"], select(*given.columns).where(is_kept)
    )
    return compiled(
        adding.on_conflict_do_update(
            index_elements=[positions.c.formal, positions.c.origin],
            set_={"seq": func.greatest(positions.c.seq, adding.excluded.seq)},
        )
    ).text


async def _hide_devices(writer: Connection, content: dict[str, list[Any]]) -> None:
    """A CF that is visible here stays; but if it was renewed where the shadow comes from, it lives on."""
    await writer.execute(
        prolong_devices(), {"id": content["id"], "expires_us": content["expires_us"]}
    )
    await writer.execute(hide_devices(), content)


@cache
def prolong_devices() -> bytes:
    given = rows([devices.c.id, devices.c.expires_us])
    later = update(devices).values(expires_us=given.c.expires_us)
    return compiled(
        later.where(
            devices.c.id == given.c.id,
            devices.c.expires_us < given.c.expires_us,
            is_visible(devices.c.origin),
        )
    ).text


@cache
def hide_devices() -> bytes:
    return upsert_over(devices, is_hidden(devices.c.origin))


async def _note(writer: Connection, given: Mapping[str, bytes | None]) -> None:
    gone = [name for name, body in given.items() if body is None]
    kept = {name: body for name, body in given.items() if body is not None}
    await writer.execute(forget_notes(), {"names": gone})
    await writer.execute(upsert(notes), {"name": list(kept), "body": list(kept.values())})


@cache
def forget_notes() -> bytes:
    return compiled(delete(notes).where(any_of(notes.c.name, "names"))).text


async def _replace(writer: Connection, table: Table, content: dict[str, list[Any]]) -> None:
    await writer.execute(compiled(delete(table)).text)
    await writer.execute(upsert(table), content)


# --- rows, a list per column ---------------------------------------------------------------------


def _device_rows(
    batches: Sequence[Batch], family_ids: Mapping[Family, int], numbers: Mapping[Origin, int]
) -> dict[str, list[Any]]:
    last = {
        batch.columns.id_at(row): (batch, row) for batch in batches for row in range(len(batch))
    }
    chosen = [(id_, batch, batch.columns, row) for id_, (batch, row) in last.items()]
    return {
        "id": [id_.hex() for id_, _, _, _ in chosen],
        "seq": [batch.seqs[row] for _, batch, _, row in chosen],
        "expires_us": [batch.expires_us[row] for _, batch, _, row in chosen],
        "time_us": [columns.times_us[row] for _, _, columns, row in chosen],
        "lifetime_us": [columns.lifetimes_us[row] for _, _, columns, row in chosen],
        "lat": [columns.lats[row] for _, _, columns, row in chosen],
        "lon": [columns.lons[row] for _, _, columns, row in chosen],
        "family": [family_ids[c.families[c.family[row]]] for _, _, c, row in chosen],
        "address": [columns.addresses[row] for _, _, columns, row in chosen],
        "reader": [c.readers[row] if c.readers else "" for _, _, c, row in chosen],
        "wanted": [columns.payloads[row].decode() for _, _, columns, row in chosen],
        "origin": [numbers[origin_of(b)] if b.shadow else OWN_NUMBER for _, b, _, _ in chosen],
    }


def _position_rows(given: Sequence[FormalPosition]) -> dict[str, list[Any]]:
    furthest: dict[tuple[bytes, str], int] = {}
    for one in given:
        at = (one.formal, one.origin)
        furthest[at] = max(one.seq, furthest.get(at, 0))
    return {
        "formal": [formal.hex() for formal, _ in furthest],
        "origin": [origin for _, origin in furthest],
        "seq": list(furthest.values()),
    }


def _line_rows(given: Sequence[Line]) -> dict[str, list[Any]]:
    return {
        "start_key": [line.section.start for line in given],
        "end_key": [line.section.end for line in given],
        "epoch": [line.epoch for line in given],
        "members": [encode_members(line) for line in given],
    }


def _server_rows(given: Sequence[ServerInfo]) -> dict[str, list[Any]]:
    return {
        "name": [server.name for server in given],
        "address": [server.address for server in given],
        "role": [server.role for server in given],
        "since_us": [server.since_us for server in given],
    }
