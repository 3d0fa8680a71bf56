"""The roster: every template of an index under a small number, one list per thing known of it. Pure.

Lists rather than an object a template: there may be millions, and what the matching needs (who is expired, who
must still be asked) is looked up for whole batches.
"""

from __future__ import annotations

from array import array

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
        self._is_open = bytearray()
        """Whether the template itself must be asked, beyond its box or address."""
        self._expires_us: array[int] = array("q")
        self._soonest_us = _NEVER_US
        """Nobody expires before."""
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.number_of)

    def enter(self, utuple: UTuple, expires_us: int) -> int:
        if self._free:
            number = self._free.pop()
            self.utuples[number] = utuple
            self.ids[number] = utuple.id
            self._expires_us[number] = expires_us
        else:
            number = len(self.ids)
            self.utuples.append(utuple)
            self.ids.append(utuple.id)
            self.segments.append(None)
            self.slots.append(0)
            self._is_open.append(0)
            self._expires_us.append(expires_us)
        self.number_of[utuple.id] = number
        if expires_us < self._soonest_us:
            self._soonest_us = expires_us
        return number

    def leave(self, number: int) -> None:
        del self.number_of[self.ids[number]]
        self.utuples[number] = self.segments[number] = None
        self.ids[number] = b""
        self._expires_us[number] = _NEVER_US
        self._free.append(number)

    def open(self, number: int, is_open: bool) -> None:
        self._is_open[number] = is_open

    def utuple(self, number: int) -> UTuple:
        utuple = self.utuples[number]
        assert utuple is not None
        return utuple

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
        return np.frombuffer(self._is_open, dtype=np.bool_)[numbers]
