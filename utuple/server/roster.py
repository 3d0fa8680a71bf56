"""The roster: every template of an index under a small number, one list per thing known of it. Pure.

Lists rather than an object a template: there may be millions, and what the matching needs (who is expired, who
must still be asked) is looked up for whole batches.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from utuple.model.utuple import UTuple
from utuple.server.bitmaps import Segment

_NEVER_US = (1 << 63) - 1


class Roster:
    def __init__(self) -> None:
        self.number_of: dict[bytes, int] = {}
        self.utuples: list[UTuple | None] = []
        self.ids: list[bytes] = []
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
            self.ids[number] = utuple.id
            self._expires_us[number] = at_us
        fresh = utuples[len(again) :]
        numbers = [*again, *range(len(self.ids), len(self.ids) + len(fresh))]
        self.utuples.extend(fresh)
        self.ids.extend([utuple.id for utuple in fresh])
        self.segments.extend([None] * len(fresh))
        self.slots.extend([0] * len(fresh))
        self.is_open.extend(bytes(len(fresh)))
        self._expires_us.extend(expires_us[len(again) :])
        self.number_of.update(zip([utuple.id for utuple in utuples], numbers, strict=True))
        self._soonest_us = min(self._soonest_us, min(expires_us, default=_NEVER_US))
        return numbers

    def leave(self, number: int) -> None:
        del self.number_of[self.ids[number]]
        self.utuples[number] = self.segments[number] = None
        self.ids[number] = b""
        self._expires_us[number] = _NEVER_US
        self._free.append(number)

    def utuple(self, number: int) -> UTuple:
        utuple = self.utuples[number]
        assert utuple is not None
        return utuple

    def ids_of(self, numbers: Sequence[int]) -> Sequence[bytes]:
        if len(numbers) < 2:
            return [self.ids[number] for number in numbers]
        ids: tuple[bytes, ...] = itemgetter(*numbers)(self.ids)  # half the time of a comprehension
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
