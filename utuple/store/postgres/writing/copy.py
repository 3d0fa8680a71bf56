"""EAs as the bytes of PostgreSQL's binary COPY: the fixed part of every row by numpy, the rest by join.

A row is its count of fields, then each field as its length and its bytes, all big-endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utuple.model.utuple import ID_BYTES, Family
from utuple.store.contract import Batch, Transaction
from utuple.store.postgres.origins import OWN_NUMBER, Origin, origin_of
from utuple.store.postgres.partitions import Leaf, place

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"

SLICE_ROWS = 1_000
"""What PostgreSQL works on while the next slice is made: about as much as a socket holds."""

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


@dataclass(frozen=True, slots=True)
class LeafCopy:
    """What to COPY where."""

    leaf: Leaf
    rows: int
    slices: Iterator[bytes]
    """Made while the ones before are on their way."""


class CopyEncoder:
    """The EAs of one transaction, in numpy's columns: this server's own, or with the number of each
    batch's origin (see `origins.py`) those of others."""

    def __init__(
        self,
        batches: Sequence[Batch],
        family_ids: Mapping[Family, int],
        origins: Sequence[int] | None = None,
    ) -> None:
        parts = [batch.columns for batch in batches]
        self._addresses = _encoded([address for part in parts for address in part.addresses])
        self._payloads = [payload for part in parts for payload in part.payloads]
        self._lifetime_us = _column([part.lifetimes_us for part in parts], "=i8")
        self._expires_us = _column([batch.expires_us for batch in batches], "=i8")
        self._family = _families(batches, family_ids)
        self._heads = self._fixed(
            seq=_column([batch.seqs for batch in batches], "=u8"),
            time_us=_column([part.times_us for part in parts], "=i8"),
            expires_us=self._expires_us,
            lat=_column([part.lats for part in parts], "=f8"),
            lon=_column([part.lons for part in parts], "=f8"),
            id=_column([part.ids for part in parts], f"V{ID_BYTES}"),
            family=self._family,
            origin=OWN_NUMBER if origins is None else np.repeat(origins, [*map(len, batches)]),
        )
        self._is_moved = origins is not None
        self._sizes = np.array(list(map(len, self._payloads)), ">i4").view("V4")

    def by_leaf(self, now_us: int) -> list[LeafCopy]:
        """Rows of a family go in together: they meet in the same pages of the indexes, which saves
        PostgreSQL a quarter of its time. What was moved has no lifetime but what is left of it; `now_us`
        may be a little late, since that only chooses a leaf."""
        order = np.argsort(self._family, kind="stable")
        lifetime_us, expires_us = self._lifetime_us[order], self._expires_us[order]
        if self._is_moved:
            lifetime_us = np.maximum(expires_us - now_us, 0)
        pieces: list[LeafCopy] = []
        for leaf, chosen in place(lifetime_us, expires_us, is_moved=self._is_moved):
            rows = order if chosen is None else order[chosen]
            pieces.append(LeafCopy(leaf, len(rows), self._slices(rows)))
        return pieces

    def _fixed(self, **columns: NDArray[Any] | int) -> NDArray[np.uint8]:
        """The fixed part of each row, as its bytes."""
        rows = np.empty(len(self._addresses), _ROW)
        rows["fields"] = _FIELDS
        for name, kind in _FIXED:
            rows[f"{name}_bytes"] = np.dtype(kind).itemsize
            rows[name] = columns[name]
        rows["address_bytes"] = list(map(len, self._addresses))
        return rows.view(np.uint8).reshape(len(rows), _ROW.itemsize)

    def _slices(self, rows: NDArray[np.intp]) -> Iterator[bytes]:
        for start in range(0, len(rows), SLICE_ROWS):
            some = rows[start : start + SLICE_ROWS]
            head = HEADER if start == 0 else b""
            tail = TRAILER if start + SLICE_ROWS >= len(rows) else b""
            yield b"".join([head, *self._pieces(some), tail])

    def _pieces(self, rows: NDArray[np.intp]) -> list[bytes]:
        """Head, address, size, payload, row by row. Viewed as void, numpy hands out plain bytes."""
        pieces: list[bytes] = [b""] * (4 * len(rows))
        pieces[0::4] = self._heads[rows].view(f"V{_ROW.itemsize}").ravel().tolist()
        pieces[2::4] = self._sizes[rows].tolist()
        if (rows[1:] - rows[:-1] == 1).all():  # of one family they are as they came
            first, end = int(rows[0]), int(rows[-1]) + 1
            pieces[1::4], pieces[3::4] = self._addresses[first:end], self._payloads[first:end]
        else:
            numbers = rows.tolist()
            pieces[1::4] = [self._addresses[row] for row in numbers]
            pieces[3::4] = [self._payloads[row] for row in numbers]
        return pieces


def _encoded(texts: Sequence[str]) -> list[bytes]:
    """All at once, unless one holds U+0000: that is for PostgreSQL to refuse."""
    encoded = "\0".join(texts).encode().split(b"\0")
    return encoded if len(encoded) == len(texts) else [text.encode() for text in texts]


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


def copies_of(
    transaction: Transaction,
    ids: Mapping[Family, int],
    numbers: Mapping[Origin, int],
    now_us: int,
) -> list[LeafCopy]:
    """Of all EAs of a transaction."""
    own = [batch for batch in transaction.events if batch and not batch.origin]
    assert not any(batch.shadow for batch in own), "no move brings a server its own EAs"
    moved = [batch for batch in transaction.events if batch and batch.origin]
    pieces = CopyEncoder(own, ids).by_leaf(now_us) if own else []
    if moved:
        of_each = [numbers[origin_of(batch)] for batch in moved]
        pieces += CopyEncoder(moved, ids, of_each).by_leaf(now_us)
    return pieces
