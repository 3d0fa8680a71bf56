"""Which managers hold which peer: consistent hashing, so that a manager that comes or goes moves only
its own share. Every manager computes the same ring from the same names. Pure."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable

COPIES = 2
"""Managers that keep a line beside its host: two may die at once and every line is still answered."""

TOKENS = 128
"""Points of each manager on the ring: the shares then differ by about a tenth."""


class Ring:
    def __init__(self, managers: Iterable[str], tokens: int = TOKENS) -> None:
        self.managers = frozenset(managers)
        points = sorted(
            (_point(name, count), name) for name in self.managers for count in range(tokens)
        )
        self._points = [point for point, _ in points]
        self._names = [name for _, name in points]
        self._holders: dict[int, tuple[str, ...]] = {}

    def holders(self, start: int) -> tuple[str, ...]:
        """Of the peer whose section starts there: its host, the first manager clockwise, then those
        that keep a copy."""
        if not self._points:
            return ()
        at = bisect_left(self._points, start) % len(self._points)
        found = self._holders.get(at)
        if found is None:
            found = self._holders[at] = self._clockwise(at)
        return found

    def host(self, start: int) -> str | None:
        return next(iter(self.holders(start)), None)

    def _clockwise(self, at: int) -> tuple[str, ...]:
        distinct: dict[str, None] = {}
        for step in range(len(self._names)):
            distinct[self._names[(at + step) % len(self._names)]] = None
            if len(distinct) > COPIES:
                break
        return tuple(distinct)


def _point(name: str, count: int) -> int:
    return int.from_bytes(
        hashlib.blake2b(f"{name}\x00{count}".encode(), digest_size=8).digest(), "big"
    )
