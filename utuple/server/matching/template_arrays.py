"""Every template of an index under a small number, one list per thing known of it. Pure.

Lists rather than an object a template: there may be millions, and what the matching needs (who has expired, who
must still be asked) is looked up for whole batches.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from utuple.model.utuple import UTuple
from utuple.server.matching.bitmaps import Segment

_NEVER_US = (1 << 63) - 1
_FIRST = 64


class TemplateArrays:
    def __init__(self) -> None:
        self.number_of: dict[bytes, int] = {}
        self.utuples: list[UTuple | None] = []
        self._ids = np.empty(_FIRST, dtype=np.object_)
        """An array, since a batch asks for a million of them."""
        self.segments: list[Segment | None] = []
        """Where its box is, if it has one and it was put in."""
        self.slots: array[int] = array("i")
        self.is_open = bytearray()
        """Whether the template itself must be asked, beyond its box or address."""
        self._expires_us: array[int] = array("q")
        self._soonest_us = _NEVER_US
        """Nobody expires before."""
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.number_of)

    def enter(self, utuples: Sequence[UTuple], expires_us: Sequence[int]) -> list[int]:
        """Their numbers. None of them is in it yet."""
        again = [self._free.pop() for _ in range(min(len(self._free), len(utuples)))]
        for number, utuple, at_us in zip(again, utuples, expires_us, strict=False):
            self.utuples[number] = utuple
            self._ids[number] = utuple.id
            self._expires_us[number] = at_us
        fresh = utuples[len(again) :]
        before = len(self.utuples)
        numbers = [*again, *range(before, before + len(fresh))]
        self.utuples.extend(fresh)
        if len(self.utuples) > len(self._ids):
            longer = np.empty(2 * len(self.utuples), dtype=np.object_)
            longer[:before] = self._ids[:before]
            self._ids = longer
        self._ids[before : len(self.utuples)] = [utuple.id for utuple in fresh]
        self.segments.extend([None] * len(fresh))
        self.slots.extend([0] * len(fresh))
        self.is_open.extend(bytes(len(fresh)))
        self._expires_us.extend(expires_us[len(again) :])
        self.number_of.update(zip([utuple.id for utuple in utuples], numbers, strict=True))
        self._soonest_us = min(self._soonest_us, min(expires_us, default=_NEVER_US))
        return numbers

    def leave(self, number: int) -> None:
        del self.number_of[self._ids[number]]
        self.utuples[number] = self.segments[number] = None
        self._ids[number] = None
        self._expires_us[number] = _NEVER_US
        self._free.append(number)

    def utuple(self, number: int) -> UTuple:
        utuple = self.utuples[number]
        assert utuple is not None
        return utuple

    def ids_of(self, numbers: NDArray[np.int32]) -> Sequence[bytes]:
        ids: list[bytes] = self._ids[numbers].tolist()
        return ids

    def renew(self, number: int, expires_us: int) -> None:
        self._expires_us[number] = expires_us
        self._soonest_us = min(self._soonest_us, expires_us)

    def dead(self, numbers: NDArray[np.int32], now_us: int) -> NDArray[np.bool_] | None:
        """Which of these are expired; None if nobody is."""
        if now_us < self._soonest_us:
            return None
        expires_us = np.frombuffer(self._expires_us, dtype=np.int64)
        self._soonest_us = int(expires_us.min())
        return expires_us[numbers] <= now_us

    def asking(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these must still be asked."""
        return np.frombuffer(self.is_open, dtype=np.bool_)[numbers]
