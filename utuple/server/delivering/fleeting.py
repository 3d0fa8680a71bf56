"""Fleeting matches: of EAs of lifetime 0, for readers that are not here at this moment. Pure.

A reader that follows its line to a new member, or whose connection broke and is made again, was connected all
along as far as its program can tell (law 5). The store has nothing of such EAs, so what came for it in between
waits here: for a moment, in memory, and only so much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from utuple.server.delivering.cursors import Cursors
from utuple.server.matching.matched import Matches
from utuple.store.contract import Batch


class FleetingMatches:
    def __init__(self, keep_s: float, max_rows: int, max_bytes: int) -> None:
        self._keep_s = keep_s
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._rows = 0
        self._bytes = 0
        self._held: dict[bytes, list[Batch]] = {}
        self._oldest: deque[tuple[float, bytes, Batch]] = deque()

    def keep(self, formal: bytes, batch: Batch, rows: Sequence[int], now_s: float) -> None:
        """Of a fleeting batch: nothing else would find these matches."""
        held = batch.take(rows)  # the rest of a large batch must not stay for a few of it
        self._held.setdefault(formal, []).append(held)
        self._oldest.append((now_s, formal, held))
        self._rows += len(held)
        self._bytes += _bytes_of(held)
        self._evict(now_s)

    def keep_missed(
        self, events: Iterable[tuple[Batch, Matches]], cursors: Cursors, now_s: float
    ) -> None:
        """What is for readers that are neither live nor catching up just now."""
        for batch, matches in events:
            if batch.is_fleeting:
                for id_, rows in matches:
                    cursor = cursors.get(id_)
                    if cursor is None or not (cursor.is_live or cursor.is_reading):
                        self.keep(id_, batch, rows, now_s)

    def pop(self, formal: bytes, now_s: float) -> list[Batch]:
        """What waits for this EF, in the order it came. It does not wait any longer."""
        self._evict(now_s)
        return self._held.pop(formal, [])

    @property
    def _is_too_much(self) -> bool:
        return self._rows > self._max_rows or self._bytes > self._max_bytes

    def _evict(self, now_s: float) -> None:
        """Forget what has waited too long, and the oldest while there is too much. What was popped meanwhile is counted
        until its turn comes here, so that popping need not look for it."""
        oldest = self._oldest
        while oldest and (oldest[0][0] + self._keep_s < now_s or self._is_too_much):
            _, formal, batch = oldest.popleft()
            self._rows -= len(batch)
            self._bytes -= _bytes_of(batch)
            held = self._held.get(formal)
            if held and held[0] is batch:
                del held[0]
                if not held:
                    del self._held[formal]


def _bytes_of(batch: Batch) -> int:
    return sum(map(len, batch.columns.payloads))
