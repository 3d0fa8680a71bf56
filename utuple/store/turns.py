"""Turns: whose search gets the next connection. Pure.

Searches differ in length by a factor of a million, and nobody knows beforehand which will be long. So each begins
as a short one. What is not done within the time of its lane is broken off and comes again in the next one, with ten
times the time: no more than a ninth of the work is done in vain, and nobody waits behind a search that is a thousand
times longer than his own.

Every connection has a lane of its own, which it serves first, and helps in shorter lanes when nobody waits in it. So
long searches never keep short ones waiting, and short ones, however many, do not starve long ones. Within a lane
families take turns: who asks a hundred times waits a hundred times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Lane(IntEnum):
    SHORT = 0
    MEDIUM = 1
    LONG = 2
    CHORE = 3
    """Statistics, collection: they wait for each other, and for nobody else."""


CONNECTIONS = (Lane.SHORT, Lane.MEDIUM, Lane.LONG, Lane.LONG, Lane.CHORE)
"""The lane of each: more of them would only compete for the same disk."""
SHORT_S = 0.1
"""A hundred times what a usual search takes, and what a newcomer may have to wait for the one before."""
TIMES_LONGER = 10


def limit_s(broken_off: int) -> float:
    """How long a search may take at once that was broken off so often. In the end PostgreSQL's own limit ends it."""
    return SHORT_S * float(TIMES_LONGER**broken_off)


class Turns(Generic[T]):
    def __init__(self, connections: Sequence[Lane] = CONNECTIONS) -> None:
        self._free = sorted(connections)
        self._waiting: dict[Lane, dict[Hashable, deque[T]]] = {lane: {} for lane in Lane}

    def ask(self, lane: Lane, who: Hashable, one: T) -> None:
        self._waiting[lane].setdefault(who, deque()).append(one)

    def withdraw(self, lane: Lane, who: Hashable, one: T) -> None:
        """It does not wait any more."""
        queue = self._waiting[lane].get(who)
        if queue is not None and one in queue:
            queue.remove(one)
            if not queue:
                del self._waiting[lane][who]

    def begin(self) -> tuple[Lane, T] | None:
        """The next one that may begin, and whose connection it has: to be given back by `end`."""
        for own in self._free:
            lanes = (own,) if own is Lane.CHORE else [Lane(number) for number in range(own, -1, -1)]
            for lane in lanes:
                if self._waiting[lane]:
                    self._free.remove(own)
                    return own, self._next(lane)
        return None

    def _next(self, lane: Lane) -> T:
        families = self._waiting[lane]
        who, queue = next(iter(families.items()))
        del families[who]  # and to the end, if it has more to ask
        one = queue.popleft()
        if queue:
            families[who] = queue
        return one

    def end(self, own: Lane) -> None:
        self._free.append(own)
        self._free.sort()
