"""The meter: arrival rate, service rate and busy share of the writer, over a sliding window. Pure.

Service rate is rows per second of work, arrival rate rows per second of time; every answer carries them. What else a
server bears is in `workload`.
"""

from __future__ import annotations

from collections import deque

from utuple.cluster.load import Load
from utuple.model.columns import MICROSECONDS

WINDOW_S = 5.0
_FULL_ROWS = 1_000
"""From here on a batch's rows outweigh its commit."""
_UNTRIED_PER_S = 10_000.0
"""The service rate of a server that has not worked yet: inviting."""


class Meter:
    """Asked with every answer: sums are kept, and never added up anew."""

    def __init__(self, now_s: float) -> None:
        self._arrivals: deque[tuple[float, int]] = deque()
        self._arrived_rows = 0
        self._work: deque[tuple[float, int, int]] = deque()
        self._busy_us = 0
        self._worked_rows = 0
        self._pauses: deque[tuple[float, float]] = deque()
        """Each shorter than the one before: of others nobody will ask."""
        self._since_s = now_s
        self._service_per_s = _UNTRIED_PER_S
        self._full_rows = 0
        self._full_us = 0

    def arrived(self, rows: int, now_s: float) -> None:
        self._arrivals.append((now_s, rows))
        self._arrived_rows += rows
        self._forget(now_s)

    def worked(self, began_s: float, rows: int, now_s: float) -> None:
        spent_us = round((now_s - began_s) * MICROSECONDS)
        self._work.append((now_s, spent_us, rows))
        self._count(spent_us, rows, 1)
        self._forget(now_s)

    def paused(self, seconds: float, now_s: float) -> None:
        """For so long nothing else could happen in this process."""
        while self._pauses and self._pauses[-1][1] <= seconds:
            self._pauses.pop()
        self._pauses.append((now_s, seconds))

    def longest_pause_s(self, now_s: float) -> float:
        """Lately."""
        while self._pauses and self._pauses[0][0] < now_s - WINDOW_S:
            self._pauses.popleft()
        return self._pauses[0][1] if self._pauses else 0.0

    def commit_s(self, now_s: float) -> float:
        """What a batch took of late, on average, until it was durable and answered."""
        self._forget(now_s)
        return self._busy_us / MICROSECONDS / len(self._work) if self._work else 0.0

    @property
    def full_rate_per_s(self) -> float | None:
        """What the writer does when it has much to do, as far as that was seen lately: small batches cost a
        commit each and say nothing about it."""
        if not self._full_rows:
            return None
        return self._full_rows / max(self._full_us, 1) * MICROSECONDS

    def load(self, queued: int, now_s: float, templates: int = 0) -> Load:
        self._forget(now_s)
        span = max(1e-3, min(WINDOW_S, now_s - self._since_s))
        busy_s = self._busy_us / MICROSECONDS
        if busy_s > 0 and self._worked_rows:
            self._service_per_s = self._worked_rows / busy_s
        arrival_per_s = self._arrived_rows / span
        busy = min(1.0, busy_s / span)
        return Load(queued, arrival_per_s, self._service_per_s, busy, templates)

    def _forget(self, now_s: float) -> None:
        while self._arrivals and self._arrivals[0][0] < now_s - WINDOW_S:
            self._arrived_rows -= self._arrivals.popleft()[1]
        while self._work and self._work[0][0] < now_s - WINDOW_S:
            _, spent_us, rows = self._work.popleft()
            self._count(spent_us, rows, -1)

    def _count(self, spent_us: int, rows: int, sign: int) -> None:
        """In whole microseconds: what is added can be taken away again, and nothing is left."""
        self._busy_us += sign * spent_us
        self._worked_rows += sign * rows
        if rows >= _FULL_ROWS:
            self._full_rows += sign * rows
            self._full_us += sign * spent_us
