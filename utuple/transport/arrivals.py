"""Which sockets a server lets in: how many there may be, of whom, and who had to be hung up on lately. Pure: `now_s` is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from utuple.transport.http2.limits import BROKEN, Budget, Limits

C = TypeVar("C", bound=Hashable)
_REMEMBERED = 10_000
"""Addresses that did something wrong: a dictionary of strangers must not grow without end."""
_SAY_AGAIN_S = 10.0
"""Between two words in the log about those that are not let in: there may be thousands a second."""


class Arrivals(Generic[C]):
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._hosts: dict[C, str] = {}
        self._per_host: Counter[str] = Counter()
        self._pending: dict[C, None] = {}
        self._blamed: dict[str, Budget] = {}
        self._untold = 0
        """Not let in since that was last said."""
        self._said_s: float | None = None

    def __len__(self) -> int:
        return len(self._hosts)

    def all(self) -> list[C]:
        return list(self._hosts)

    def refusal(self, host: str, now_s: float) -> str:
        """Why one more from there is not let in; empty if it is."""
        if len(self._hosts) >= self._limits.connections:
            return f"there are {self._limits.connections} connections already"
        most = self._limits.connections_per_address
        if self._per_host[host] >= most:
            return f"there are {most} connections from {host} already"
        blamed = self._blamed.get(host)
        if blamed is not None and blamed.left(now_s) < BROKEN:
            return f"{host} broke the protocol too often"
        return ""

    def turned_away(self, now_s: float) -> int:
        """One was not let in. How many that makes, if it is to be said now; else 0."""
        self._untold += 1
        if self._said_s is not None and now_s - self._said_s < _SAY_AGAIN_S:
            return 0
        untold, self._untold, self._said_s = self._untold, 0, now_s
        return untold

    def enter(self, connection: C, host: str) -> C | None:
        """It came, and has said nothing yet. Returns the one that has to go for it, if one has to."""
        self._hosts[connection] = host
        self._per_host[host] += 1
        self._pending[connection] = None
        if len(self._pending) <= self._limits.pending:
            return None
        oldest = next(iter(self._pending))
        del self._pending[oldest]
        return oldest

    def greeted(self, connection: C) -> None:
        """It speaks HTTP/2."""
        self._pending.pop(connection, None)

    def leave(self, connection: C) -> None:
        self._pending.pop(connection, None)
        host = self._hosts.pop(connection, None)
        if host is not None:
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]

    def blame(self, host: str, points: int, now_s: float) -> None:
        """Something from there had to be hung up on."""
        budget = self._blamed.get(host)
        if budget is None:
            self._make_room(now_s)
            budget = self._blamed[host] = Budget(self._limits.blame)
        budget.spend(now_s, min(points, budget.left(now_s)))

    def _make_room(self, now_s: float) -> None:
        if len(self._blamed) >= _REMEMBERED:
            self._blamed = {
                host: budget for host, budget in self._blamed.items() if not budget.is_full(now_s)
            }
        while len(self._blamed) >= _REMEMBERED:
            del self._blamed[next(iter(self._blamed))]
