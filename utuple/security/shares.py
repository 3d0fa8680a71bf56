"""Fair shares: how much of each thing one identity may use. Pure: the time is an argument.

A rate is a bucket that fills steadily: what is spent at once is limited by its size, what is spent in the long run by its rate.
Who is over is told when to come again, and with which limit's name; nobody else notices.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from utuple.errors import InvalidInput, Overloaded

AGAIN_S = 10.0
"""When to come again for what others give back by cancelling, closing or expiring: nobody knows when that will be."""


def over_share(who: str, name: str, limit: float, wait_s: float) -> Overloaded:
    """What whoever is over is told: the limit's name, and when to come again."""
    said = f"{who} is over its share: {name} is {limit:,.0f}; try again after {wait_s:.3g} s"
    return Overloaded(said, retry_after_s=wait_s)


def check_above_0(limits: Any) -> None:
    """Every limit of such a dataclass."""
    for field in fields(limits):
        if not getattr(limits, field.name) > 0:
            raise InvalidInput(field.name, getattr(limits, field.name), "must be above 0")


@dataclass(frozen=True, slots=True)
class Rate:
    name: str
    """As the knob is called."""
    per_s: float
    burst: float
    """Spent at once at the most. A single request beyond that could never be served, so it is let through when the bucket
    is full, and then paid for."""

    def __post_init__(self) -> None:
        if not self.per_s > 0 or not self.burst > 0:
            raise InvalidInput(self.name, (self.per_s, self.burst), "must be above 0")


class Shares:
    """One bucket an identity. Buckets that are full again are forgotten, oldest first, beyond `most`."""

    def __init__(self, rate: Rate, most: int) -> None:
        self._rate = rate
        self._most = most
        self._owed: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By identity: what it has spent and not got back, and as of when."""

    def spend(self, who: str, amount: float, now_s: float) -> float:
        """0, and it is spent; or the seconds to wait, and nothing is."""
        if (wait_s := self.wait_s(who, amount, now_s)) > 0:
            return wait_s
        self._owed[who] = (self._left(who, now_s) + amount, now_s)
        self._owed.move_to_end(who)
        self._forget(now_s)
        return 0.0

    def wait_s(self, who: str, amount: float, now_s: float) -> float:
        """Until so much may be spent; 0 mostly. Nothing is."""
        owed = self._left(who, now_s) if who in self._owed else 0.0
        return max(0.0, min(owed, owed + amount - self._rate.burst)) / self._rate.per_s

    def _left(self, who: str, now_s: float) -> float:
        owed, as_of_s = self._owed.get(who, (0.0, now_s))
        return max(0.0, owed - max(0.0, now_s - as_of_s) * self._rate.per_s)

    def _forget(self, now_s: float) -> None:
        """Who owes nothing any more is like one who never came. Who still owes is kept, or it could spend anew."""
        while self._owed:
            who = next(iter(self._owed))
            if self._left(who, now_s) > 0 and len(self._owed) <= self._most:
                return
            del self._owed[who]

    def __len__(self) -> int:
        return len(self._owed)


class AtOnce:
    """So many of something at a time, for each identity."""

    def __init__(self, name: str, most: int) -> None:
        """`name`: as the knob is called."""
        self._name = name
        self._most = most
        self._used: Counter[str] = Counter()

    @contextmanager
    def use(self, who: str, amount: int = 1) -> Iterator[None]:
        """So many more, for as long as this lasts. A request that alone is beyond the limit is let through when nothing else is in use."""
        used = self._used[who]
        if used and used + amount > self._most:
            raise over_share(who, self._name, self._most, AGAIN_S)
        self._used[who] += amount
        try:
            yield
        finally:
            self._used[who] -= amount
            if not self._used[who]:
                del self._used[who]
