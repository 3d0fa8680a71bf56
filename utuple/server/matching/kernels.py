"""The inner loops of the index: in NumPy, and compiled by numba. Both give the same, and are tested so. Pure.

A server begins with NumPy's, since importing numba takes half a second and compiling several. `on_wanted` is
called once there are templates enough for the compiled ones to pay; the server then calls `load` beside its
work, and everything goes over to them. Where numba is not installed, it stays with NumPy's.

    match   one segment with bitmaps: which slots accept which rows (half-open boxes), as pairs, row by row
    put     bits of some slots, and of those beside them, set anew
    group   pairs, from row by row to slot by slot
    cells   only compiled: see there. A dictionary does the same
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

WORD = 64
BUCKETS = 256
_HALF = BUCKETS // 2

Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Counts = NDArray[np.int64]
Spans = NDArray[np.uint8]
"""First and last bucket of each box, as its ends lie in it."""


class Match(Protocol):
    def __call__(
        self,
        live: Bits,
        bits: Bits,
        edges: Floats,
        boxes: Floats,
        values: Floats,
        first: int,
        rows: Ints,
        slots: Ints,
    ) -> tuple[int, int]:
        """Fills `rows` and `slots` from row `first` of `values` on, as long as a whole row is sure to fit.
        Gives the number of pairs and the row it came to."""


class Kernels:
    def __init__(self) -> None:
        self.is_compiled = False
        self.on_wanted: Callable[[], None] = _nothing
        self._is_wanted = False
        self.match: Match = match
        self.put: Callable[[Bits, Spans, Floats, Floats, Bits, Ints], None] = put
        self.group: Callable[[Ints, Ints, int], tuple[Ints, Counts, Ints]] = group
        self.cells: Any = None

    def want(self) -> None:
        if not self._is_wanted:
            self._is_wanted = True
            self.on_wanted()

    def load(self) -> bool:
        """Takes half a second, or several where nothing was compiled before; in a thread it stops nobody."""
        try:
            compiled: Any = import_module("utuple.server.matching.compiled")
            cells: Any = import_module("utuple.server.matching.compiled_cells")
        except ImportError:
            return False
        compiled.warm_up()
        cells.warm_up()
        self.match, self.put, self.group = compiled.match, compiled.put, compiled.group
        self.cells = cells
        self.is_compiled = True
        return True


def _nothing() -> None:
    """Nobody brings them."""


def match(
    live: Bits,
    bits: Bits,
    edges: Floats,
    boxes: Floats,
    values: Floats,
    first: int,
    rows: Ints,
    slots: Ints,
) -> tuple[int, int]:
    dimensions, capacity = len(bits), len(boxes)
    lows, highs = boxes[:, 0::2], boxes[:, 1::2]
    mine = values[:, : lows.shape[1]]
    at = [np.searchsorted(edges[d], mine[:, d], side="right").tolist() for d in range(dimensions)]
    count = 0
    for row in range(first, len(values)):
        if count + capacity > len(rows):
            return count, row
        left = live
        for d in range(dimensions):
            left = left & bits[d, at[d][row]]
        found = slots_of(left)
        inside = ((lows[found] <= mine[row]) & (mine[row] < highs[found])).all(axis=1)
        found = found[inside]
        rows[count : count + len(found)] = row
        slots[count : count + len(found)] = found
        count += len(found)
    return count, len(values)


def put(bits: Bits, spans: Spans, edges: Floats, boxes: Floats, live: Bits, slots: Ints) -> None:
    """A slot's bit is toggled at the ends of its span, and everything between follows from the bucket before.
    Done for whole words, since that costs no more than one bit."""
    for end in range(boxes.shape[1]):
        spans[slots, end] = np.searchsorted(edges[end // 2], boxes[slots, end], side="right")
    words = np.unique(slots // WORD)
    of = np.zeros_like(live)
    of[words] = live[words]
    used = slots_of(of)
    at = np.searchsorted(words, used // WORD)
    masks = np.left_shift(np.uint64(1), (used % WORD).astype(np.uint64))
    for d in range(len(bits)):
        toggled = np.zeros((BUCKETS + 1, len(words)), dtype=np.uint64)
        for end in (0, 1):
            bucket = spans[used, 2 * d + end].astype(np.intp) + end
            np.bitwise_xor.at(toggled, (bucket, at), masks)
        bits[d][:, words] = np.bitwise_xor.accumulate(toggled, axis=0)[:BUCKETS]


def group(rows: Ints, slots: Ints, capacity: int) -> tuple[Ints, Counts, Ints]:
    """Slots that have rows, how many each, and the rows slot by slot, in the order they came."""
    counts = np.bincount(slots, minlength=capacity)
    having = np.flatnonzero(counts).astype(np.int32)
    order = np.argsort(slots, kind="stable")
    return having, counts[having], rows[order]


def slots_of(left: Bits) -> NDArray[np.intp]:
    words = np.flatnonzero(left)
    if not len(words):
        return words
    bits = np.unpackbits(left[words].view(np.uint8), bitorder="little").reshape(len(words), WORD)
    at, bit = np.nonzero(bits)
    slots: NDArray[np.intp] = words[at] * WORD + bit
    return slots
