"""EFs and CAs into the database: many by COPY, few, or those that are there already, by an upsert.

A learner is given 100,000 EFs at once, and programs register thousands in a call. Nearly always their ids are
new; COPY takes such rows in half the time of anything that looks for conflicts. It is tried inside a savepoint:
an id may be there after all, of an EF whose lifetime is over and which was not collected yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from psycopg.errors import UniqueViolation

from utuple.model.utuple import ID_BYTES, Family, Kind
from utuple.store.contract import StoredTemplate
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.statements import upsert
from utuple.store.postgres.tables import templates
from utuple.store.postgres.writing.copy import HEADER, SLICE_ROWS, TRAILER

COPIED_FROM = 100
"""Below so many, the savepoint and COPY cost more than they save."""

_COPY = (
    b"COPY templates (id, family, seq, expires_us, lifetime_s, kind, reader, metadata, payload, terms)"
    b" FROM STDIN (FORMAT BINARY)"
)
_FIELDS = 10
_FIXED = (
    ("id", f"V{ID_BYTES}"),
    ("family", ">i4"),
    ("seq", ">i8"),
    ("expires_us", ">i8"),
    ("lifetime_s", ">f8"),
    ("kind", "S2"),
)
_ROW = np.dtype(
    [
        ("fields", ">i2"),
        *(part for name, kind in _FIXED for part in ((f"{name}_bytes", ">i4"), (name, kind))),
        ("reader_bytes", ">i4"),
    ]
)
_NULL = -1


async def write_templates(
    writer: Connection, given: Sequence[StoredTemplate], family_ids: Mapping[Family, int]
) -> None:
    """One whose id is there already is replaced."""
    kept = list({one.packed.id: one for one in given}.values())
    if len(kept) < COPIED_FROM or not await _copied(writer, kept, family_ids):
        await writer.execute(upsert(templates), _literals(kept, family_ids))


async def _copied(
    writer: Connection, kept: Sequence[StoredTemplate], family_ids: Mapping[Family, int]
) -> bool:
    await writer.execute("SAVEPOINT templates")
    try:
        async with writer.cursor() as cursor, cursor.copy(_COPY) as copy:
            await copy.write(HEADER)
            for at in range(0, len(kept), SLICE_ROWS):  # PostgreSQL works on one, the next is made
                await copy.write(_rows(kept[at : at + SLICE_ROWS], family_ids))
            await copy.write(TRAILER)
    except UniqueViolation:
        await writer.execute("ROLLBACK TO SAVEPOINT templates")
        return False
    await writer.execute("RELEASE SAVEPOINT templates")
    return True


def _rows(kept: Sequence[StoredTemplate], family_ids: Mapping[Family, int]) -> bytes:
    """As the bytes of a binary COPY (see `copy.py`), between its header and its end."""
    halves, seqs, expiries = zip(*kept, strict=True)
    ids, families, kinds, metadata, payloads, lifetimes, names, terms = zip(*halves, strict=True)
    readers = [name.encode() for name in names]
    heads = np.empty(len(kept), _ROW)
    heads["fields"] = _FIELDS
    for name, kind in _FIXED:
        heads[f"{name}_bytes"] = np.dtype(kind).itemsize
    heads["id"] = np.frombuffer(b"".join(ids), f"V{ID_BYTES}")
    heads["family"] = family_ids[families[0]]
    if len(set(families)) > 1:
        heads["family"] = [family_ids[family] for family in families]
    heads["seq"], heads["expires_us"], heads["lifetime_s"] = seqs, expiries, lifetimes
    heads["kind"] = Kind.EF.value
    if Kind.CA in kinds:
        heads["kind"] = [kind.value for kind in kinds]
    heads["reader_bytes"] = [len(reader) or _NULL for reader in readers]
    pieces: list[bytes] = [b""] * (8 * len(kept))
    pieces[0::8] = heads.view(f"V{_ROW.itemsize}").tolist()
    pieces[1::8] = readers
    pieces[2::8], pieces[3::8] = _sizes(metadata), metadata
    pieces[4::8], pieces[5::8] = _sizes(payloads), payloads
    pieces[6::8], pieces[7::8] = _sizes(terms), terms
    return b"".join(pieces)


def _sizes(texts: Sequence[bytes]) -> list[bytes]:
    """Viewed as void, numpy hands out plain bytes."""
    sizes: list[bytes] = np.fromiter(map(len, texts), ">i4", len(texts)).view("V4").tolist()
    return sizes


def _literals(kept: Sequence[StoredTemplate], family_ids: Mapping[Family, int]) -> dict[str, str]:
    """As literals: psycopg spends more on lists than PostgreSQL on their rows."""
    halves = [one.packed for one in kept]
    return {
        "id": literal(half.id.hex() for half in halves),
        "family": literal(str(family_ids[half.family]) for half in halves),
        "seq": literal(str(one.seq) for one in kept),
        "expires_us": literal(str(one.expires_us) for one in kept),
        "lifetime_s": literal(repr(half.lifetime_s) for half in halves),
        "kind": literal(half.kind.value for half in halves),
        "reader": literal(_quoted(half.reader) if half.reader else "NULL" for half in halves),
        "metadata": literal(_quoted(half.metadata.decode()) for half in halves),
        "payload": literal(_quoted(half.payload.decode()) for half in halves),
        "terms": literal(_quoted(half.terms.decode()) for half in halves),
    }


def literal(items: Iterable[str]) -> str:
    """An array as PostgreSQL writes it; numbers, ids and kinds need no quotes."""
    return f"{{{','.join(items)}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
