"""When templates expire, by the second, so that finding those whose time has come does not mean looking at a million
others. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import islice

from utuple.model.columns import MICROSECONDS


class Expiries:
    def __init__(self) -> None:
        self._due: dict[int, dict[bytes, int]] = {}
        self._seconds: list[int] = []
        """A heap of those in `_due`, and of some that are not any more."""

    def note(self, id_: bytes, expires_us: int) -> None:
        self._due_in(expires_us // MICROSECONDS)[id_] = expires_us

    def note_all(self, given: Mapping[bytes, int]) -> None:
        """Those that came together mostly expire together."""
        last, due = None, {}
        for id_, expires_us in given.items():
            second = expires_us // MICROSECONDS
            if second != last:
                last, due = second, self._due_in(second)
            due[id_] = expires_us

    def _due_in(self, second: int) -> dict[bytes, int]:
        due = self._due.get(second)
        if due is None:
            due = self._due[second] = {}
            heapq.heappush(self._seconds, second)
        return due

    def strike(self, id_: bytes, expires_us: int) -> None:
        second = expires_us // MICROSECONDS
        due = self._due.get(second)
        if due is not None and due.pop(id_, None) is not None and not due:
            del self._due[second]

    def is_any_due(self, now_us: int) -> bool:
        """False is sure: nobody has expired."""
        return bool(self._seconds) and self._seconds[0] * MICROSECONDS <= now_us

    def expired(self, now_us: int, most: int) -> list[bytes]:
        """At most so many, which stay noted; the rest is found the next time."""
        found: list[bytes] = []
        current: list[int] = []
        while self.is_any_due(now_us) and len(found) < most:
            second = heapq.heappop(self._seconds)
            due = self._due.get(second)
            if due is not None:
                current.append(second)
                some = islice(due.items(), most - len(found))
                found += [id_ for id_, expires_us in some if expires_us <= now_us]
        for second in current:
            heapq.heappush(self._seconds, second)
        return found
