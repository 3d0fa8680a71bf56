"""Bitmaps over buckets: a quick, generous answer to "which templates could accept this row?". Pure.

Generous means: never leaves out a template that accepts the row. Each dimension is a number (latitude,
longitude, time, a number in the data) cut at quantiles of the templates' own ends, or a text in the data
cut by hash. Bucket 0 holds what has no such value. Ends are compared as doubles; rounding is monotonic,
and both ends count as inside, so rounding never leaves anything out.

Templates that are added are only noted, and put into the bitmaps together when someone asks or there are many:
one by one they cost numpy's overhead each, and a server that starts or learns adds 100,000 at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from utuple.model.area import Box, Circle
from utuple.model.columns import Columns
from utuple.model.condition import DataCondition, Equal, OneOf, Range
from utuple.model.utuple import Template
from utuple.model.value import Value, is_number

_BUCKETS = 256
_MAX_DIMENSIONS = 12
"""Further fields are left to verification; each dimension costs buckets x templates bits."""
_FIRST_CAPACITY = 64
_WORD = 64
_BULK = 512
"""So many noted templates are put into the bitmaps though nobody asks: that takes about a millisecond."""
_FEW = 4
"""So few are put in one by one."""
_SAMPLE = 8_192
"""Of the templates' ends, to cut a dimension by: enough for so few buckets."""

Bits = NDArray[np.uint64]
Span = tuple[float, float]
"""Closed; what a template may accept. For texts both ends are the bucket's number."""
_ALL: Span = (-np.inf, np.inf)


@dataclass(slots=True)
class _Dimension:
    kind: str
    """lat, lon, time, number or text"""
    name: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    constrained: NDArray[np.bool_]
    """Does the template in this slot ask anything here? If not, rows without a value pass as well."""
    edges: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    bits: Bits = field(default_factory=lambda: np.zeros((1, 0), dtype=np.uint64))

    def buckets(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        found = np.searchsorted(self.edges, values, side="right") + 1
        found[np.isnan(values)] = 0
        return found

    def set_bits(self, slot: int) -> None:
        word, bit = divmod(slot, _WORD)
        mask = np.uint64(1 << bit)
        if not self.constrained[slot]:
            self.bits[:, word] |= mask
            return
        ends = self.buckets(np.array([self.low[slot], self.high[slot]]))
        self.bits[ends[0] : ends[1] + 1, word] |= mask

    def set_many(self, slots: NDArray[np.intp]) -> None:
        words, at = np.unique(slots // _WORD, return_inverse=True)
        rows = len(self.bits)
        self.bits[:, words] |= _ranges(
            *self._spans_of(slots, rows), at * _WORD + slots % _WORD, rows, len(words)
        )

    def rebuild(self, used: NDArray[np.bool_]) -> None:
        """New edges at quantiles of the ends in use, and every bit anew."""
        asked = used & self.constrained
        ends = np.concatenate([self.low[asked], self.high[asked]])
        ends = ends[np.isfinite(ends)]
        ends = ends[:: len(ends) // _SAMPLE + 1]
        if self.kind == "text":
            self.edges = np.arange(1, _BUCKETS, dtype=np.float64)
        elif len(ends):
            self.edges = np.unique(np.quantile(ends, np.linspace(0, 1, _BUCKETS)))
        rows = len(self.edges) + 2
        slots = np.flatnonzero(used)
        words = len(self.low) // _WORD
        self.bits = _ranges(*self._spans_of(slots, rows), slots, rows, words)

    def _spans_of(
        self, slots: NDArray[np.intp], rows: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and last bucket of each; all of them, also that of no value, where nothing is asked."""
        asked = self.constrained[slots]
        first = np.where(asked, self.buckets(self.low[slots]), 0)
        last = np.where(asked, self.buckets(self.high[slots]), rows - 1)
        return first, last


@dataclass(frozen=True, slots=True)
class _Noted:
    """A template that has a slot and is not in the bitmaps yet."""

    slot: int
    spans: dict[tuple[str, str], Span]
    is_inexact: bool


class Bitmaps:
    def __init__(self) -> None:
        self._slots: dict[bytes, int] = {}
        self._ids: list[bytes | None] = [None] * _FIRST_CAPACITY
        self._free = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self._used = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._live: Bits = np.zeros(_FIRST_CAPACITY // _WORD, dtype=np.uint64)
        self._inexact = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        """Templates that ask for something: they are verified. The others accept every row."""
        self._dimensions: dict[tuple[str, str], _Dimension] = {}
        self._noted: list[_Noted] = []

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, id_: bytes, template: Template, where: Mapping[str, DataCondition]) -> None:
        if not self._free:
            self._put_in()
            self._grow()
        slot = self._free.pop()
        self._slots[id_] = slot
        self._ids[slot] = id_
        spans = dict(_spans(template, where))
        is_inexact = bool(spans) or bool(where) or template != Template()
        self._noted.append(_Noted(slot, spans, is_inexact))
        if len(self._noted) >= _BULK:
            self._put_in()

    def _put_in(self) -> None:
        """What was noted is in the bitmaps from now on."""
        if not self._noted:
            return
        noted, self._noted = self._noted, []
        for key in dict.fromkeys(key for one in noted for key in one.spans):
            if key not in self._dimensions and len(self._dimensions) < _MAX_DIMENSIONS:
                self._dimensions[key] = self._new_dimension(*key)
        if len(noted) <= _FEW:
            for one in noted:
                self._put_in_one(one)
        else:
            self._put_in_many(noted)

    def _put_in_one(self, one: _Noted) -> None:
        slot = one.slot
        self._used[slot] = True
        self._inexact[slot] = one.is_inexact
        self._live[slot // _WORD] |= np.uint64(1 << slot % _WORD)
        for key, dimension in self._dimensions.items():
            span = one.spans.get(key)
            dimension.constrained[slot] = span is not None
            dimension.low[slot], dimension.high[slot] = span or _ALL
            dimension.set_bits(slot)

    def _put_in_many(self, noted: Sequence[_Noted]) -> None:
        slots = np.array([one.slot for one in noted], dtype=np.intp)
        self._used[slots] = True
        self._inexact[slots] = [one.is_inexact for one in noted]
        np.bitwise_or.at(self._live, slots // _WORD, _masks(slots))
        for key, dimension in self._dimensions.items():
            spans = [one.spans.get(key) for one in noted]
            dimension.constrained[slots] = [span is not None for span in spans]
            dimension.low[slots], dimension.high[slots] = np.array(
                [span or _ALL for span in spans]
            ).T
            dimension.set_many(slots)

    def remove(self, id_: bytes) -> None:
        self._put_in()
        slot = self._slots.pop(id_)
        self._ids[slot] = None
        self._used[slot] = False
        self._free.append(slot)
        word, bit = divmod(slot, _WORD)
        keep = ~np.uint64(1 << bit)
        self._live[word] &= keep
        for dimension in self._dimensions.values():
            dimension.bits[:, word] &= keep

    def candidates(
        self, columns: Columns, rows: NDArray[np.intp], data_at: Callable[[int], dict[str, Value]]
    ) -> Iterator[tuple[int, list[bytes], bool]]:
        """(row, template ids, whether they surely match)"""
        self._put_in()
        bitmaps = [dimension.bits for dimension in self._dimensions.values()]
        buckets = [
            dimension.buckets(_values(dimension, columns, rows, data_at)).tolist()
            for dimension in self._dimensions.values()
        ]
        for at, row in enumerate(rows.tolist()):
            left = self._live
            for bits, bucket in zip(bitmaps, buckets, strict=True):
                left = left & bits[bucket[at]]
            slots = _slots_of(left)
            if not len(slots):
                continue
            open_ones = slots[~self._inexact[slots]]
            asking = slots[self._inexact[slots]]
            if len(open_ones):
                yield row, self._named(open_ones), True
            if len(asking):
                yield row, self._named(asking), False

    def _named(self, slots: NDArray[np.intp]) -> list[bytes]:
        return [id_ for slot in slots.tolist() if (id_ := self._ids[slot]) is not None]

    def _new_dimension(self, kind: str, name: str) -> _Dimension:
        size = len(self._used)
        dimension = _Dimension(
            kind,
            name,
            np.full(size, -np.inf),
            np.full(size, np.inf),
            np.zeros(size, dtype=np.bool_),
        )
        dimension.rebuild(self._used)
        return dimension

    def _grow(self) -> None:
        size = len(self._used)
        self._free = list(range(2 * size - 1, size - 1, -1))
        self._ids.extend([None] * size)
        self._used = np.concatenate([self._used, np.zeros(size, dtype=np.bool_)])
        self._inexact = np.concatenate([self._inexact, np.zeros(size, dtype=np.bool_)])
        self._live = np.concatenate([self._live, np.zeros(size // _WORD, dtype=np.uint64)])
        for dimension in self._dimensions.values():
            dimension.low = np.concatenate([dimension.low, np.full(size, -np.inf)])
            dimension.high = np.concatenate([dimension.high, np.full(size, np.inf)])
            more = np.zeros(size, dtype=np.bool_)
            dimension.constrained = np.concatenate([dimension.constrained, more])
            dimension.rebuild(self._used)


def _masks(slots: NDArray[np.intp]) -> Bits:
    return np.left_shift(np.uint64(1), (slots % _WORD).astype(np.uint64))


def _ranges(
    first: NDArray[np.intp],
    last: NDArray[np.intp],
    slots: NDArray[np.intp],
    rows: int,
    words: int,
) -> Bits:
    """Bitmaps, one a bucket, with the bit of each slot set from its first bucket to its last: it is toggled
    at the ends, and everything between follows from the row before."""
    toggles: Bits = np.zeros((rows + 1, words), dtype=np.uint64)
    at, masks = slots // _WORD, _masks(slots)
    np.bitwise_xor.at(toggles, (first, at), masks)
    np.bitwise_xor.at(toggles, (last + 1, at), masks)
    bits: Bits = np.bitwise_xor.accumulate(toggles, axis=0)[:rows]
    return bits


def _slots_of(left: Bits) -> NDArray[np.intp]:
    words = np.flatnonzero(left)
    if not len(words):
        return words
    bits = np.unpackbits(left[words].view(np.uint8), bitorder="little").reshape(len(words), _WORD)
    at, bit = np.nonzero(bits)
    slots: NDArray[np.intp] = words[at] * _WORD + bit
    return slots


def _values(
    dimension: _Dimension,
    columns: Columns,
    rows: NDArray[np.intp],
    data_at: Callable[[int], dict[str, Value]],
) -> NDArray[np.float64]:
    match dimension.kind:
        case "lat":
            return np.frombuffer(columns.lats, dtype=np.float64)[rows]
        case "lon":
            return np.frombuffer(columns.lons, dtype=np.float64)[rows]
        case "time":
            return np.frombuffer(columns.times_us, dtype=np.int64)[rows].astype(np.float64)
        case "number":
            found = [data_at(row).get(dimension.name) for row in rows.tolist()]
            return np.array([_number(v) for v in found], dtype=np.float64)
        case _:
            found = [data_at(row).get(dimension.name) for row in rows.tolist()]
            return np.array(
                [_text_bucket(v) if isinstance(v, str) else np.nan for v in found], dtype=np.float64
            )


def _spans(
    template: Template, where: Mapping[str, DataCondition]
) -> Iterator[tuple[tuple[str, str], Span]]:
    """What a template asks, as far as dimensions can express it."""
    if template.since_us is not None or template.until_us is not None:
        low = -np.inf if template.since_us is None else float(template.since_us)
        high = np.inf if template.until_us is None else float(template.until_us)
        yield ("time", ""), (low, high)
    box = template.area.bounding_box() if isinstance(template.area, Circle) else template.area
    if isinstance(box, Box):
        yield ("lat", ""), (box.south, box.north)
        crossing = box.crosses_antimeridian
        yield ("lon", ""), ((-180.0, 180.0) if crossing else (box.west, box.east))
    for name, wanted in where.items():
        span = _data_span(wanted)
        if span is not None:
            yield (span[0], name), span[1]


def _data_span(wanted: DataCondition) -> tuple[str, Span] | None:
    match wanted:
        case Range(low, high) if wanted.of_numbers:
            bottom = -np.inf if low is None else float(low)
            return "number", (bottom, np.inf if high is None else float(high))
        case Equal(value) if is_number(value):
            return "number", (float(value), float(value))
        case OneOf(values) if all(is_number(value) for value in values):
            return "number", (float(min(values)), float(max(values)))
        case Equal(value) if isinstance(value, str):
            return "text", (_text_bucket(value), _text_bucket(value))
        case _:
            return None


def _text_bucket(text: str) -> float:
    return float(zlib.crc32(text.encode()) % _BUCKETS) + 0.5


def _number(value: Value) -> float:
    return float(value) if is_number(value) else np.nan
