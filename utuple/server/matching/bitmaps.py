"""A segment: some templates as boxes, with bitmaps over buckets that say quickly which could accept a row. Pure.

Each dimension is cut into buckets at quantiles of the boxes' own ends; each bucket has one bit per slot whose
span reaches into it. The bitmaps of a row's buckets are ANDed, and what is left is compared with the box. A
segment is small enough to be built anew in a few milliseconds: it grows so, and its edges follow its templates.
The first few templates have no bitmaps at all: there every box is compared with every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from utuple.server.matching.boxes import NOWHERE
from utuple.server.matching.kernels import (
    BUCKETS,
    WORD,
    Bits,
    Counts,
    Floats,
    Ints,
    Kernels,
    Spans,
    slots_of,
)

_T = TypeVar("_T", bound=np.generic)

FIRST_SLOTS = WORD
_GROWTH = 4
_SAMPLE = 4_096
"""Of the boxes' ends, to cut a dimension by: enough for so few buckets."""
_FIRST_PAIRS = 1 << 16


class PairBuffer:
    """Room for the pairs of one segment and batch; grows, and is used again."""

    def __init__(self) -> None:
        self.rows: Ints = np.empty(_FIRST_PAIRS, dtype=np.int32)
        self.slots: Ints = np.empty(_FIRST_PAIRS, dtype=np.int32)

    def grow(self) -> None:
        self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        self.slots = np.concatenate([self.slots, np.empty_like(self.slots)])


class Segment:
    def __init__(self, kernels: Kernels, slots: int, most: int) -> None:
        self._kernels = kernels
        self._most = most
        self.capacity = min(slots, most)
        self.free = list(range(self.capacity - 1, -1, -1))
        self.numbers: Ints = np.zeros(self.capacity, dtype=np.int32)
        """Which template is in each slot."""
        self._live: Bits = np.zeros(self.capacity // WORD, dtype=np.uint64)
        self._boxes: Floats = np.zeros((self.capacity, 0))
        self._edges: Floats = np.zeros((0, BUCKETS - 1))
        self._bits: Bits = np.zeros((0, 0, self.capacity // WORD), dtype=np.uint64)
        self._spans: Spans = np.zeros((0, 0), dtype=np.uint8)
        self._stale = 0
        """Boxes put in since the edges were chosen."""
        self._dense: tuple[Ints, list[tuple[int, Floats, Floats]]] | None = None
        """Of a segment without bitmaps: its templates, and for each dimension of which something is asked, where their
        boxes begin and end. None after a change, until somebody asks."""

    def __len__(self) -> int:
        return self.capacity - len(self.free)

    @property
    def size_bytes(self) -> int:
        arrays = (self.numbers, self._live, self._boxes, self._edges, self._bits, self._spans)
        return sum(array.nbytes for array in arrays)

    @property
    def room(self) -> int:
        """How many more can be put in, with growing."""
        return self._most - len(self)

    def some(self, most: int) -> list[tuple[int, list[float]]]:
        """Templates that are in it, with their boxes."""
        slots = slots_of(self._live)[:most]
        return list(zip(self.numbers[slots].tolist(), self._boxes[slots].tolist(), strict=True))

    def put(self, numbers: Sequence[int], boxes: Floats) -> list[int]:
        """Their slots. There is room."""
        is_changed = self._reshape(len(numbers), boxes.shape[1])
        slots = [self.free.pop() for _ in numbers]
        at = np.array(slots, dtype=np.int32)
        self._boxes[at, : boxes.shape[1]] = boxes
        self.numbers[at] = numbers
        masks = np.left_shift(np.uint64(1), (at % WORD).astype(np.uint64))
        np.bitwise_or.at(self._live, at // WORD, masks)
        self._stale += len(slots)
        self._dense = None
        if is_changed or 2 * self._stale >= len(self):
            self._build()
        elif self._bits.shape[1]:
            self._set_bits(np.sort(at))
        return slots

    def remove(self, slot: int) -> NDArray[np.bool_]:
        """Of which dimensions it asked something."""
        self._live[slot // WORD] &= ~np.uint64(1 << slot % WORD)
        self.free.append(slot)
        self._dense = None
        return self._boxes[slot, 0::2] > NOWHERE

    def match(self, values: Floats, found: PairBuffer) -> tuple[Ints, Counts, Ints]:
        """(templates that are met, how many rows each, the rows template by template)"""
        if not self._bits.shape[1]:
            return self._match_every_box(values)
        mine = values
        if (
            values.shape[1] != self._boxes.shape[1]
        ):  # later dimensions, of which nothing is asked here
            mine = np.ascontiguousarray(values[:, : self._boxes.shape[1]])
        arguments = (self._live, self._bits, self._edges, self._boxes, mine)
        count, row = 0, 0
        while True:
            more, row = self._kernels.match(
                *arguments, row, found.rows[count:], found.slots[count:]
            )
            count += more
            if row == len(values):
                break
            found.grow()
        slots, counts, rows = self._kernels.group(
            found.rows[:count], found.slots[:count], self.capacity
        )
        return self.numbers[slots], counts, rows

    def _match_every_box(self, values: Floats) -> tuple[Ints, Counts, Ints]:
        """One line a box and one column a row, so that what is found stands template by template already."""
        numbers, asked = self._dense or self._made_dense()
        inside = np.empty((len(numbers), len(values)), dtype=np.bool_)
        inside.fill(True)
        for dimension, low, high in asked:
            column = values[:, dimension]
            inside &= low <= column
            inside &= column < high
        boxes, rows = inside.nonzero()
        counts = np.bincount(boxes, minlength=len(numbers))
        having = counts.nonzero()[0]
        return numbers[having], counts[having], rows.astype(np.int32)

    def _made_dense(self) -> tuple[Ints, list[tuple[int, Floats, Floats]]]:
        used = slots_of(self._live)
        ends = self._boxes[used].T[:, :, np.newaxis].copy()
        spans = enumerate(zip(ends[0::2], ends[1::2], strict=True))
        asked = [(at, low, high) for at, (low, high) in spans if (low > NOWHERE).any()]
        self._dense = self.numbers[used], asked
        return self._dense

    def _reshape(self, more: int, ends: int) -> bool:
        """Room for so many more boxes with so many ends; whether that changed anything."""
        before, capacity = self._boxes.shape, self.capacity
        while capacity - len(self) < more:
            capacity = min(self._most, capacity * _GROWTH)
        shape = (capacity, max(ends, before[1]))
        if shape == before:
            return False
        boxes = np.empty(shape)
        boxes[:, 0::2], boxes[:, 1::2] = NOWHERE, np.inf
        boxes[: before[0], : before[1]] = self._boxes
        self._boxes = boxes
        if capacity > self.capacity:
            self._kernels.want()
            self.free[:0] = range(capacity - 1, self.capacity - 1, -1)
            self.capacity = capacity
            self.numbers = _longer(self.numbers, capacity)
            self._live = _longer(self._live, capacity // WORD)
        return True

    def _build(self) -> None:
        """New edges, and every bit anew."""
        used = slots_of(self._live)
        dimensions = self._boxes.shape[1] // 2
        self._stale = 0
        self._edges = np.full((dimensions, BUCKETS - 1), np.inf)
        if self.capacity <= FIRST_SLOTS:
            self._bits = np.zeros((dimensions, 0, self.capacity // WORD), dtype=np.uint64)
            return
        for d in range(dimensions):
            edges = _edges(self._boxes[used, 2 * d : 2 * d + 2])
            self._edges[d, : len(edges)] = edges
        self._bits = np.zeros((dimensions, BUCKETS, self.capacity // WORD), dtype=np.uint64)
        self._spans = np.zeros(self._boxes.shape, dtype=np.uint8)
        self._set_bits(used.astype(np.int32))

    def _set_bits(self, slots: Ints) -> None:
        self._kernels.put(self._bits, self._spans, self._edges, self._boxes, self._live, slots)


def _longer(values: NDArray[_T], length: int) -> NDArray[_T]:
    longer = np.zeros(length, dtype=values.dtype)
    longer[: len(values)] = values
    return longer


def _edges(spans: Floats) -> NDArray[np.float64]:
    ends = spans.ravel()
    ends = np.sort(ends[np.isfinite(ends)][:: ends.size // _SAMPLE + 1])
    most = BUCKETS - 1
    if len(ends) > most:
        ends = ends[np.linspace(0, len(ends) - 1, most).astype(np.intp)]
    return np.unique(ends)
