"""Columns: many uTuples with exact metadata (EAs, or CFs), one sequence per field.

This is how they travel, are matched and are stored; a single registration is a batch of one. Plain
arrays, so that a sensor program needs no numpy and a server can view them as numpy arrays for nothing.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from utuple.model.area import Position
from utuple.model.condition import decode_where, encode_where
from utuple.model.utuple import ID_BYTES, Exact, Family, Kind, UTuple
from utuple.model.value import decode_data, encode_data

MICROSECONDS = 1_000_000
NO_POSITION = math.nan


@dataclass(frozen=True, slots=True)
class Columns:
    families: tuple[Family, ...] = ()
    family: array[int] = field(default_factory=lambda: array("I"))
    """Per row, which of `families`."""
    ids: bytes = b""
    """16 bytes per row."""
    times_us: array[int] = field(default_factory=lambda: array("q"))
    lats: array[float] = field(default_factory=lambda: array("d"))
    lons: array[float] = field(default_factory=lambda: array("d"))
    """NaN where the uTuple has no position."""
    lifetimes_us: array[int] = field(default_factory=lambda: array("q"))
    addresses: Sequence[str] = ()
    payloads: Sequence[bytes] = ()
    """EA: data; CF: the data template; both in their one JSON encoding."""
    readers: Sequence[str] = ()
    """CF only: who gets the commands."""

    def __len__(self) -> int:
        return len(self.times_us)

    def id_at(self, row: int) -> bytes:
        return self.ids[row * ID_BYTES : (row + 1) * ID_BYTES]

    def each_id(self) -> Iterator[bytes]:
        ids = self.ids
        return (ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES))

    def position_at(self, row: int) -> Position | None:
        lat = self.lats[row]
        return None if math.isnan(lat) else (lat, self.lons[row])

    def take(self, rows: Sequence[int]) -> Columns:
        """These rows, in this order."""
        return Columns(
            self.families,
            array("I", [self.family[row] for row in rows]),
            b"".join([self.id_at(row) for row in rows]),
            array("q", [self.times_us[row] for row in rows]),
            array("d", [self.lats[row] for row in rows]),
            array("d", [self.lons[row] for row in rows]),
            array("q", [self.lifetimes_us[row] for row in rows]),
            [self.addresses[row] for row in rows],
            [self.payloads[row] for row in rows],
            [self.readers[row] for row in rows] if self.readers else (),
        )

    def utuple_at(self, row: int, kind: Kind = Kind.EA) -> UTuple:
        """One row as the uTuple it is: the slow way, for the oracle and for single matches."""
        payload = self.payloads[row]
        return UTuple(
            id=self.id_at(row),
            family=self.families[self.family[row]],
            metadata=Exact(self.addresses[row], self.times_us[row], self.position_at(row)),
            data=decode_data(payload) if kind is Kind.EA else None,
            where=decode_where(payload) if kind is Kind.CF else None,
            lifetime_s=self.lifetimes_us[row] / MICROSECONDS,
            reader=self.readers[row] if self.readers else None,
        )


def columns_of(utuples: Iterable[UTuple]) -> Columns:
    """EAs (or CFs) as columns; families are numbered in order of appearance."""
    rows = list(utuples)
    numbers: dict[Family, int] = {}
    for row in rows:
        numbers.setdefault(row.family, len(numbers))
    places = [row.metadata for row in rows]
    exacts = [place for place in places if isinstance(place, Exact)]
    assert len(exacts) == len(rows), "columns hold exact metadata only"
    positions = [exact.position or (NO_POSITION, NO_POSITION) for exact in exacts]
    return Columns(
        tuple(numbers),
        array("I", [numbers[row.family] for row in rows]),
        b"".join([row.id for row in rows]),
        array("q", [exact.time_us for exact in exacts]),
        array("d", [lat for lat, _ in positions]),
        array("d", [lon for _, lon in positions]),
        array("q", [lifetime_us(row.lifetime_s) for row in rows]),
        [exact.address for exact in exacts],
        [_payload(row) for row in rows],
        [row.reader or "" for row in rows] if any(row.reader for row in rows) else (),
    )


def _payload(row: UTuple) -> bytes:
    if row.where is not None:
        return encode_where(row.where)
    assert row.data is not None
    return encode_data(row.data)


def concatenate(parts: Sequence[Columns]) -> Columns:
    """Several batches as one, in order."""
    if len(parts) == 1:
        return parts[0]
    numbers: dict[Family, int] = {}
    family: array[int] = array("I")
    for part in parts:
        own = [numbers.setdefault(name, len(numbers)) for name in part.families]
        family.extend(
            part.family if own == list(range(len(own))) else [own[f] for f in part.family]
        )
    some_readers = any(part.readers for part in parts)
    return Columns(
        tuple(numbers),
        family,
        b"".join([part.ids for part in parts]),
        _joined("q", [part.times_us for part in parts]),
        _joined("d", [part.lats for part in parts]),
        _joined("d", [part.lons for part in parts]),
        _joined("q", [part.lifetimes_us for part in parts]),
        [address for part in parts for address in part.addresses],
        [payload for part in parts for payload in part.payloads],
        [reader for part in parts for reader in (part.readers or [""] * len(part))]
        if some_readers
        else (),
    )


def _joined(code: str, parts: Sequence[array[int]] | Sequence[array[float]]) -> array:  # type: ignore[type-arg]
    whole = array(code)
    for part in parts:
        whole.extend(part)  # type: ignore[arg-type]
    return whole


NEVER_US = 1 << 62
"""When a formal expires whose reader is attached. Its lifetime begins when the reader goes."""


def lifetime_us(lifetime_s: float) -> int:
    return round(lifetime_s * MICROSECONDS)


def left_us(lifetime_us: int, expires_us: int, now_us: int) -> int:
    """What another server is to give a formal that has this expiry here: of one that never expires, its lifetime, for
    its reader is not attached there."""
    return min(lifetime_us, max(0, expires_us - now_us))
