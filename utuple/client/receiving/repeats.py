"""What the watches and devices of a space were given, to drop repeats by: one memory for all of them. Pure.

A uTuple may come again after a reconnect or a change of epoch, from another server it was registered at too, and even
from the same one under another seq (a first attempt that came behind its own retry is stored twice). So positions do
not tell a repeat, ids do. An event that a hundred watches are given is remembered once, with a bit for each of them.

There are two generations: when the younger has used half of the limit, the older is forgotten. So at least half of
the limit is always remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

ENTRY_BYTES = 200
"""An id, its place in a dictionary and a number with some bits."""


class Seen:
    def __init__(self, limit_bytes: int) -> None:
        self._half_bytes = max(1, limit_bytes // 2)
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}
        self._young_bytes = 0
        self._old_bytes = 0
        self._last: tuple[Sequence[bytes], int] = ((), 0)
        """Ids that have the same bits and no others, in the younger generation: those that were added last."""
        self._next = 0
        self._free: list[int] = []
        self._left: tuple[list[int], list[int]] = ([], [])
        """Numbers of those who left in this generation, and in the one before: ids may still have their bits."""

    @property
    def size_bytes(self) -> int:
        return self._young_bytes + self._old_bytes

    def enter(self) -> int:
        """The number of a new watch or device."""
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def leave(self, number: int) -> None:
        """It is given nothing more."""
        self._left[0].append(number)

    def add_all(self, number: int, ids: Sequence[bytes]) -> list[int] | None:
        """Where those stand that are new to it; None: all of them are, the usual case."""
        young, count, bit = self._young, len(ids), 1 << number
        last, bits = self._last
        if (
            last and last == ids and not bits & bit
        ):  # the same events, for one watch after the other
            young.update(dict.fromkeys(ids, bits | bit))
            self._last = (ids, bits | bit)
            self._spend(count * (max(0, number - bits.bit_length()) // 8))
            return None
        self._last = ((), 0)
        if young.keys().isdisjoint(ids) and self._old.keys().isdisjoint(ids):
            before = len(young)
            young.update(dict.fromkeys(ids, bit))
            added = len(young) - before
            if added == count:
                self._last = (ids, bit)
            self._spend(added * (ENTRY_BYTES + number // 8))
            if added == count:
                return None
            first = {id_: at for at, id_ in reversed([*enumerate(ids)])}
            return sorted(first.values())
        new = [at for at, id_ in enumerate(ids) if self._add(id_, number, bit)]
        return None if len(new) == count else new

    def _add(self, id_: bytes, number: int, bit: int) -> bool:
        """A bit is set in the younger generation only: so nobody's bits outlive him by more than two."""
        known = self._young.get(id_)
        if (known or 0) & bit or self._old.get(id_, 0) & bit:
            return False
        self._young[id_] = (known or 0) | bit
        if known is None:
            self._spend(ENTRY_BYTES + number // 8)
        else:
            self._spend(max(0, number - known.bit_length()) // 8)
        return True

    def _spend(self, size_bytes: int) -> None:
        self._young_bytes += size_bytes
        if self._young_bytes >= self._half_bytes:
            self._old, self._young = self._young, {}
            self._last = ((), 0)
            self._old_bytes, self._young_bytes = self._young_bytes, 0
            self._free += self._left[1]
            self._left = ([], self._left[0])
