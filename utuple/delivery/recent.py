"""Ids last heard of: at least so many, and at most twice as many. Pure.

Two halves, the older of which is forgotten as a whole. A dictionary from which the oldest is taken one by one
would do the same in a hundred times the time: each look for the oldest passes by all that went before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


class RecentIds:
    def __init__(self, least: int) -> None:
        self._least = least
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._young or id_ in self._old

    def among(self, ids: Sequence[bytes]) -> Collection[bytes]:
        """Those of them that are remembered: mostly none, which is soon said."""
        if self._young.isdisjoint(ids) and self._old.isdisjoint(ids):
            return ()
        return {id_ for id_ in ids if id_ in self}

    def add(self, ids: Collection[bytes]) -> None:
        if len(self._young) + len(ids) > self._least:
            self._old, self._young = self._young, set()
        self._young.update(ids)

    def discard(self, id_: bytes) -> None:
        self._young.discard(id_)
        self._old.discard(id_)
