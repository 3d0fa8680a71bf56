"""Ids by address, in arrays: what a dictionary does, where there are very many. Pure.

With a million addresses a dictionary waits for memory four times an address: for the place, the entry, the text and the
id, one after the other. Here the id lies beside its address in one cell of 64 bytes, and a compiled loop fetches the
cells of many rows at once.

    cell    id (16 bytes), link (the next cell of its bucket), address (up to 39 bytes, filled up with zeros, and
            its length)
    heads   the first cell of each bucket, counted from 1; 0 is none

Buckets are added one by one as cells are (linear hashing), and arrays grow where they lie: there is no step that takes
longer the more there are. An address of several ids has a cell for each.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utuple.model.utuple import ID_BYTES
from utuple.server.matching.matched import Matches

LONGEST = 39
"""Bytes of an address that has a place here."""
_WORDS = 8
_FIRST, _FIRST_HEADS = 1 << 20, 1 << 24
"""64 MiB each, of addresses: memory is taken as it is used. So large because what is below 32 MiB the C library copies
to let it grow, and fresh memory is slow."""
_STEP, _HEADS_STEP = 1 << 13, 1 << 17
"""By which they grow: half a megabyte, which the system hands out in a millisecond or two."""
_MOST_GONE = 1_024
_SEED = hash("an address") & (2**63 - 1)
"""Python's own secret of this process: nobody outside knows which addresses share a bucket."""


def has_place(address: str) -> bool:
    size = len(address) if address.isascii() else len(address.encode())
    return size <= LONGEST


class Cells:
    def __init__(self, loops: Any) -> None:  # what is compiled
        self._loops = loops
        self._count = 0
        self._cells: NDArray[np.uint64] = np.zeros((_FIRST, _WORDS), dtype=np.uint64)
        self._heads: NDArray[np.int32] = np.zeros(_FIRST_HEADS, dtype=np.int32)
        self._state: NDArray[np.int64] = np.array([1, 0, 0], dtype=np.int64)
        """How many buckets and cells are in use, and the first cell that was given back."""
        self._gone: list[tuple[str, bytes]] = []

    def __len__(self) -> int:
        return self._count

    def put(self, addresses: Sequence[str], ids: Sequence[bytes]) -> None:
        """None of these ids is here, and each address has a place."""
        self._drop()
        self._count += len(ids)
        while len(self._cells) < self._count:
            self._cells.resize((len(self._cells) + _STEP, _WORDS), refcheck=False)
        while len(self._heads) < 2 * len(self._cells):
            self._heads.resize(len(self._heads) + _HEADS_STEP, refcheck=False)
        self._loops.put(_text(addresses), _words(ids), *self._arrays)

    def remove(self, address: str, id_: bytes) -> None:
        """It is here. Only noted: one by one they would cost numpy's overhead each."""
        self._count -= 1
        self._gone.append((address, id_))
        if len(self._gone) >= _MOST_GONE:
            self._drop()

    def match(self, addresses: Sequence[str]) -> Matches:
        self._drop()
        if not self._count or not addresses:
            return Matches()
        ids, starts, rows = self._loops.find(_text(addresses), len(addresses), *self._arrays)
        return Matches(
            ids.view(f"V{ID_BYTES}").ravel().tolist(),  # void is handed out as plain bytes
            array("q", starts.tobytes()),
            array("i", rows.tobytes()),
        )

    def _drop(self) -> None:
        if self._gone:
            addresses, ids = zip(*self._gone, strict=True)
            self._gone = []
            self._loops.drop(_text(addresses), _words(ids), *self._arrays)

    @property
    def _arrays(self) -> tuple[object, ...]:
        return self._heads, self._cells, self._state, _SEED


def _words(ids: Sequence[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(ids), dtype=np.uint64).reshape(-1, 2)


def _text(addresses: Sequence[str]) -> NDArray[np.uint8]:
    """With a NUL between them, which no address contains."""
    return np.frombuffer("\0".join(addresses).encode(), dtype=np.uint8)
