"""The kernels compiled by numba; see `kernels` for what each does. Imported only when there are templates enough.

Compiled code is kept beside this file, or in the user's cache folder; where neither can be written, it is
compiled by each process anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from utuple.server.matching.kernels import BUCKETS, WORD, Bits, Counts, Floats, Ints, Spans


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache
        return numba.njit(nogil=True)(function)


_BIT_OF = np.zeros(WORD, dtype=np.int32)
_DE_BRUIJN = 0x03F79D71B4CB0A89
for _bit in range(WORD):
    _BIT_OF[((_DE_BRUIJN << _bit) & (2**WORD - 1)) >> 58] = _bit
"""The place of a lone bit, by six bits of its product with a number that has all of them once."""


@compiled
def _bucket(edges: Floats, value: float) -> int:
    """How many edges are not above it."""
    at = 0
    step = BUCKETS // 2
    while step:
        if edges[at + step - 1] <= value:
            at += step
        step //= 2
    return at


@compiled
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
    dimensions = bits.shape[0]
    words = len(live)
    left = np.empty(words, dtype=np.uint64)
    one = np.uint64(1)
    count = 0
    for row in range(first, len(values)):
        if count + len(boxes) > len(rows):
            return count, row
        left[:] = live
        for d in range(0, dimensions - 1, 2):  # two at a time: half the passes
            line = bits[d, _bucket(edges[d], values[row, d])]
            other = bits[d + 1, _bucket(edges[d + 1], values[row, d + 1])]
            for word in range(words):
                left[word] &= line[word] & other[word]
        if dimensions % 2:
            line = bits[-1, _bucket(edges[-1], values[row, dimensions - 1])]
            for word in range(words):
                left[word] &= line[word]
        for word in range(words):
            rest = left[word]
            while rest:
                lone = rest & (~rest + one)
                rest ^= lone
                slot = word * WORD + _BIT_OF[(lone * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]
                box = boxes[slot]
                inside = True
                for d in range(dimensions):
                    inside &= (box[2 * d] <= values[row, d]) & (values[row, d] < box[2 * d + 1])
                rows[count] = row
                slots[count] = slot
                count += inside
    return count, len(values)


@compiled
def put(bits: Bits, spans: Spans, edges: Floats, boxes: Floats, live: Bits, slots: Ints) -> None:
    toggled = np.empty(BUCKETS + 1, dtype=np.uint64)
    before = -1
    for slot in slots:
        for end in range(boxes.shape[1]):
            spans[slot, end] = _bucket(edges[end // 2], boxes[slot, end])
    for slot in slots:
        word = slot // WORD
        if word == before:  # they come in order
            continue
        before = word
        for d in range(bits.shape[0]):
            toggled[:] = 0
            for bit in range(WORD):
                mask = live[word] & (np.uint64(1) << np.uint64(bit))
                beside = word * WORD + bit
                toggled[spans[beside, 2 * d]] ^= mask
                toggled[np.int64(spans[beside, 2 * d + 1]) + 1] ^= mask
            line = np.uint64(0)
            for bucket in range(BUCKETS):
                line ^= toggled[bucket]
                bits[d, bucket, word] = line


@compiled
def group(rows: Ints, slots: Ints, capacity: int) -> tuple[Ints, Counts, Ints]:
    ends = np.zeros(capacity + 1, dtype=np.int32)
    for slot in slots:
        ends[slot + 1] += 1
    having = np.empty(capacity, dtype=np.int32)
    counts = np.empty(capacity, dtype=np.int64)
    found = 0
    for slot in range(capacity):
        if ends[slot + 1]:
            having[found] = slot
            counts[found] = ends[slot + 1]
            found += 1
        ends[slot + 1] += ends[slot]
    grouped = np.empty(len(rows), dtype=np.int32)
    for at in range(len(rows)):
        slot = slots[at]
        grouped[ends[slot]] = rows[at]
        ends[slot] += 1
    return having[:found], counts[:found], grouped


def warm_up() -> None:
    """Compiles, or loads, each for the types it is used with."""
    live = np.ones(1, dtype=np.uint64)
    bits = np.ones((1, BUCKETS, 1), dtype=np.uint64)
    edges = np.zeros((1, BUCKETS - 1))
    boxes = np.zeros((WORD, 2))
    rows, slots = np.zeros(WORD, dtype=np.int32), np.zeros(WORD, dtype=np.int32)
    match(live, bits, edges, boxes, np.zeros((1, 1)), 0, rows, slots)
    put(bits, np.zeros((WORD, 2), dtype=np.uint8), edges, boxes, live, slots[:1])
    group(rows, slots, WORD)
