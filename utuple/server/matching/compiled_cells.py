"""The loops of `cells`, compiled by numba; see there for what lies where. Imported with the other compiled kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from utuple.server.matching.compiled import compiled
from utuple.server.matching.kernels import Ints

Words = NDArray[np.uint64]
Text = NDArray[np.uint8]
State = NDArray[np.int64]

KEY_WORDS = 5
LONGEST = 8 * KEY_WORDS - 1
"""Bytes of an address; the last byte of a key is its length."""
ID, LINK, KEY = 0, 2, 3
"""Where in a cell."""
CELL_WORDS = KEY + KEY_WORDS
BUCKETS, USED, FREE = 0, 1, 2
"""Where in the state."""
_ROOM = 2
"""Buckets a cell: most hold one or none."""
_BLOCK = 512
"""Rows whose cells are fetched together: they stay in the first cache until they are looked at."""
_NEXT = 0xFFFF_FFFF
_MIX = 0x9E37_79B9_7F4A_7C15


@compiled
def _spell(text: Text, keys: Words) -> None:
    """Texts with a NUL between them as keys. One that is too long has a length nobody has."""
    at = 0
    for row in range(len(keys)):
        size = 0
        for part in range(KEY_WORDS):
            keys[row, part] = 0
        while at < len(text) and text[at]:
            if size < LONGEST:
                keys[row, size >> 3] |= np.uint64(text[at]) << np.uint64((size & 7) << 3)
            size += 1
            at += 1
        at += 1
        keys[row, KEY_WORDS - 1] |= np.uint64(min(size, 255)) << np.uint64(56)


@compiled
def _hashed(key: Words, seed: int) -> np.uint64:
    value = np.uint64(seed)
    for part in range(KEY_WORDS):
        value = (value ^ key[part]) * np.uint64(_MIX)
        value ^= value >> np.uint64(29)
    return value


@compiled
def _bucket(hashed: np.uint64, buckets: int) -> int:
    """Linear hashing: buckets are added one by one, and each new one takes from one other."""
    mask = 1
    while mask < buckets:
        mask <<= 1
    at: int = np.int64(hashed & np.uint64(mask - 1))  # type: ignore[assignment]
    return at if at < buckets else at - (mask >> 1)


@compiled
def _is_key(cell: Words, key: Words) -> bool:
    alike = True
    for part in range(KEY_WORDS):
        alike &= cell[KEY + part] == key[part]
    return alike


@compiled
def _split(heads: Ints, cells: Words, state: State, seed: int) -> None:
    new = state[BUCKETS]
    state[BUCKETS] = new + 1
    half = 1
    while 2 * half <= new:
        half <<= 1
    at, stay, go = heads[new - half], 0, 0
    while at:
        cell = cells[at - 1]
        after = np.int32(cell[LINK])
        if _bucket(_hashed(cell[KEY:], seed), new + 1) == new:
            cell[LINK] = go
            go = at
        else:
            cell[LINK] = stay
            stay = at
        at = after
    heads[new - half], heads[new] = stay, go


@compiled
def put(text: Text, ids: Words, heads: Ints, cells: Words, state: State, seed: int) -> None:
    """There is room for them, and none is there yet."""
    keys = np.empty((len(ids), KEY_WORDS), dtype=np.uint64)
    _spell(text, keys)
    for row in range(len(ids)):
        at = state[FREE]
        if at:
            state[FREE] = np.int64(cells[at - 1, LINK])
        else:
            state[USED] += 1
            at = state[USED]
        while state[BUCKETS] < _ROOM * state[USED] and state[BUCKETS] < len(heads):
            _split(heads, cells, state, seed)
        bucket = _bucket(_hashed(keys[row], seed), state[BUCKETS])
        cell = cells[at - 1]
        cell[ID], cell[ID + 1] = ids[row, 0], ids[row, 1]
        cell[LINK] = np.uint64(heads[bucket])
        cell[KEY:] = keys[row]
        heads[bucket] = at


@compiled
def drop(text: Text, ids: Words, heads: Ints, cells: Words, state: State, seed: int) -> None:
    keys = np.empty((len(ids), KEY_WORDS), dtype=np.uint64)
    _spell(text, keys)
    for row in range(len(ids)):
        bucket = _bucket(_hashed(keys[row], seed), state[BUCKETS])
        before, at = 0, heads[bucket]
        while at:
            cell = cells[at - 1]
            after = np.int32(cell[LINK])
            if cell[ID] == ids[row, 0] and cell[ID + 1] == ids[row, 1]:
                if before:
                    cells[before - 1, LINK] = np.uint64(after)
                else:
                    heads[bucket] = after
                cell[LINK] = np.uint64(state[FREE])
                state[FREE] = at
                break
            before, at = at, after


@compiled
def find(
    text: Text, rows: int, heads: Ints, cells: Words, state: State, seed: int
) -> tuple[Words, State, Ints]:
    """The ids that are met, where the rows of each begin, and the rows id by id, in their order."""
    keys = np.empty((rows, KEY_WORDS), dtype=np.uint64)
    _spell(text, keys)
    first, alike = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.bool_)
    met = np.empty(rows, dtype=np.int32)  # cells
    group_of, row_of = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
    groups, pairs = 0, 0
    for begin in range(0, rows, _BLOCK):
        end = min(begin + _BLOCK, rows)
        for row in range(begin, end):
            first[row] = heads[_bucket(_hashed(keys[row], seed), state[BUCKETS])]
        for row in range(begin, end):  # without a branch: their cells are fetched side by side
            alike[row] = _is_key(cells[max(first[row] - 1, 0)], keys[row])
        for row in range(begin, end):
            at, is_met = np.int64(first[row]), alike[row]
            while at:
                cell = cells[at - 1]
                if is_met:
                    group: int = np.int64(cell[LINK] >> np.uint64(32))  # type: ignore[assignment]
                    if not group:
                        if groups == len(met):
                            met = np.concatenate((met, np.empty_like(met)))
                        met[groups] = at
                        groups += 1
                        group = groups
                        cell[LINK] |= np.uint64(group) << np.uint64(32)
                    if pairs == len(row_of):
                        group_of = np.concatenate((group_of, np.empty_like(group_of)))
                        row_of = np.concatenate((row_of, np.empty_like(row_of)))
                    group_of[pairs], row_of[pairs] = group - 1, row
                    pairs += 1
                at = np.int64(cell[LINK] & np.uint64(_NEXT))
                is_met = at > 0 and _is_key(cells[at - 1], keys[row])
    starts = np.zeros(groups + 1, dtype=np.int64)
    ids = np.empty((groups, 2), dtype=np.uint64)
    for pair in range(pairs):
        starts[group_of[pair] + 1] += 1
    for group in range(groups):
        starts[group + 1] += starts[group]
        cell = cells[met[group] - 1]
        ids[group, 0], ids[group, 1] = cell[ID], cell[ID + 1]
        cell[LINK] &= np.uint64(_NEXT)
    grouped, filled = np.empty(pairs, dtype=np.int32), starts[:-1].copy()
    for pair in range(pairs):
        group = group_of[pair]
        grouped[filled[group]] = row_of[pair]
        filled[group] += 1
    return ids, starts, grouped


def warm_up() -> None:
    """Compiles, or loads, each for the types it is used with."""
    heads, cells = np.zeros(2, dtype=np.int32), np.zeros((1, CELL_WORDS), dtype=np.uint64)
    state = np.array([1, 0, 0], dtype=np.int64)
    text = np.frombuffer(b"a", dtype=np.uint8)
    ids = np.frombuffer(bytes(16), dtype=np.uint64).reshape(1, 2)
    put(text, ids, heads, cells, state, 0)
    find(text, 1, heads, cells, state, 0)
    drop(text, ids, heads, cells, state, 0)
