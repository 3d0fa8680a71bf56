"""EAs as the bytes of PostgreSQL's binary COPY: the fixed part of every row by numpy, the rest by join.

A row is its count of fields, then each field as its length and its bytes, all big-endian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utuple.model.utuple import ID_BYTES, Family
from utuple.store.contract import Batch
from utuple.store.leaves import Leaf, place

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_OWN_ORIGIN = 0

COLUMNS = "seq, time_us, expires_us, lat, lon, id, family, origin, address, data"
_FIELDS = 10
_FIXED = (
    ("seq", ">i8"),
    ("time_us", ">i8"),
    ("expires_us", ">i8"),
    ("lat", ">f8"),
    ("lon", ">f8"),
    ("id", f"V{ID_BYTES}"),
    ("family", ">i4"),
    ("origin", ">i2"),
)
_ROW = np.dtype(
    [
        ("fields", ">i2"),
        *(part for name, kind in _FIXED for part in ((f"{name}_bytes", ">i4"), (name, kind))),
        ("address_bytes", ">i4"),
    ]
)


class Piece(NamedTuple):
    """What to COPY where."""

    leaf: Leaf
    rows: int
    content: bytes


class Rows:
    """The EAs of one transaction, in numpy's columns."""

    def __init__(self, batches: Sequence[Batch], family_ids: Mapping[Family, int]) -> None:
        parts = [batch.columns for batch in batches]
        self.addresses = [address.encode() for part in parts for address in part.addresses]
        self.payloads = [payload for part in parts for payload in part.payloads]
        self.seq = _column([batch.seqs for batch in batches], "=u8").astype(np.int64)
        self.expires_us = _column([batch.expires_us for batch in batches], "=i8")
        self.time_us = _column([part.times_us for part in parts], "=i8")
        self.lifetime_us = _column([part.lifetimes_us for part in parts], "=i8")
        self.lat = _column([part.lats for part in parts], "=f8")
        self.lon = _column([part.lons for part in parts], "=f8")
        self.id = _column([part.ids for part in parts], f"V{ID_BYTES}")
        self.family = _families(batches, family_ids)

    def by_leaf(self) -> list[Piece]:
        fixed = self._fixed()
        sizes = np.array([len(payload) for payload in self.payloads], ">i4")
        return [
            Piece(leaf, len(rows), self._content(rows, fixed, sizes))
            for leaf, rows in self._places()
        ]

    def _places(self) -> list[tuple[Leaf, NDArray[np.intp]]]:
        """Rows of a family go in together: they meet in the same pages of the indexes, which saves
        PostgreSQL a quarter of its time."""
        order = np.argsort(self.family, kind="stable")
        return [
            (leaf, order if rows is None else order[rows])
            for leaf, rows in place(self.lifetime_us[order], self.expires_us[order])
        ]

    def _content(
        self, rows: NDArray[np.intp], fixed: NDArray[np.void], sizes: NDArray[np.generic]
    ) -> bytes:
        chosen = rows.tolist()
        addresses = [self.addresses[row] for row in chosen]
        payloads = [self.payloads[row] for row in chosen]
        return _joined(fixed[rows], addresses, sizes[rows], payloads)

    def _fixed(self) -> NDArray[np.void]:
        rows = np.empty(len(self.seq), _ROW)
        rows["fields"] = _FIELDS
        for name, kind in _FIXED:
            rows[f"{name}_bytes"] = np.dtype(kind).itemsize
            rows[name] = _OWN_ORIGIN if name == "origin" else getattr(self, name)
        rows["address_bytes"] = [len(address) for address in self.addresses]
        return rows


def _column(parts: Sequence[object], kind: str) -> NDArray[Any]:
    """One array of all parts: joining bytes first costs little even for a thousand parts of one row."""
    return np.frombuffer(b"".join(parts), kind)  # type: ignore[arg-type]


def _families(batches: Sequence[Batch], ids: Mapping[Family, int]) -> NDArray[np.int64]:
    """Each batch numbers its own families: lay the numberings end to end, then look up once."""
    parts = [batch.columns for batch in batches]
    sizes = [len(part.families) for part in parts]
    first = np.repeat(np.cumsum([0, *sizes[:-1]]), [len(part) for part in parts])
    table = np.array([ids[family] for part in parts for family in part.families], np.int64)
    found: NDArray[np.int64] = table[_column([part.family for part in parts], "=u4") + first]
    return found


def _joined(
    fixed: NDArray[np.void],
    addresses: Sequence[bytes],
    sizes: NDArray[np.generic],
    payloads: Sequence[bytes],
) -> bytes:
    count, width = len(fixed), _ROW.itemsize
    heads, lengths = fixed.tobytes(), sizes.tobytes()
    pieces: list[bytes] = [b""] * (4 * count + 2)
    pieces[0], pieces[-1] = _HEADER, _TRAILER
    pieces[1:-1:4] = [heads[at : at + width] for at in range(0, count * width, width)]
    pieces[2:-1:4] = addresses
    pieces[3:-1:4] = [lengths[at : at + 4] for at in range(0, count * 4, 4)]
    pieces[4:-1:4] = payloads
    return b"".join(pieces)
