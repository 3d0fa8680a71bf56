"""The newest of what was heard, point by point of the hash space.

Whatever order things are heard in, and however often, each key ends with the highest epoch heard for
it: older ones are cut where a newer one lies over them, and only there. Plain sorted lists, because a
lookup is one bisection and changes are rare.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, Self, TypeVar

from utuple.model.section import Section


class Versioned(Protocol):
    @property
    def section(self) -> Section: ...

    @property
    def epoch(self) -> int: ...

    def within(self, section: Section) -> Self:
        """The same on another section."""


T = TypeVar("T", bound=Versioned)


class Newest(Generic[T]):
    def __init__(self, items: Iterable[T] = ()) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.items: list[T] = []
        """Three columns of the same rows, in the order of the hash space. To be read, not written."""
        for item in items:
            self.hear(item)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self.items))

    def __len__(self) -> int:
        return len(self.items)

    def find(self, key: int) -> T | None:
        at = bisect_right(self.starts, key) - 1
        return self.items[at] if at >= 0 and key < self.ends[at] else None

    def overlapping(self, section: Section) -> list[T]:
        low, high = self._span(section)
        return self.items[low:high]

    def hear(self, item: T) -> bool:
        """Take what is news in it; False if nothing is."""
        low, high = self._span(item.section)
        known = self.items[low:high]
        if known == [item]:
            return False
        fresh, parts = [], [item.section]
        for other in known:
            if _gives_way(other, item):
                fresh += [other.within(rest) for rest in other.section.without(item.section)]
            else:
                fresh.append(other)
                parts = [rest for part in parts for rest in part.without(other.section)]
        fresh += [item.within(part) for part in parts]
        fresh.sort(key=_start)
        if fresh == known:
            return False
        self._put(low, high, fresh)
        return True

    def cut(self, section: Section, below_epoch: int) -> bool:
        """Forget what is older than that epoch in this section; False if nothing is."""
        low, high = self._span(section)
        fresh: list[T] = []
        for known in self.items[low:high]:
            if known.epoch >= below_epoch:
                fresh.append(known)
            else:
                fresh += [known.within(rest) for rest in known.section.without(section)]
        if fresh == self.items[low:high]:
            return False
        self._put(low, high, fresh)
        return True

    def holes(self, section: Section) -> list[Section]:
        """The parts of a section nothing is known of."""
        parts = [section]
        for known in self.overlapping(section):
            parts = [rest for part in parts for rest in part.without(known.section)]
        return parts

    def _span(self, section: Section) -> tuple[int, int]:
        low = bisect_right(self.ends, section.start)
        return low, max(low, bisect_left(self.starts, section.end))

    def _put(self, low: int, high: int, fresh: list[T]) -> None:
        self.starts[low:high] = [item.section.start for item in fresh]
        self.ends[low:high] = [item.section.end for item in fresh]
        self.items[low:high] = fresh


def _start(item: Versioned) -> int:
    return item.section.start


def _gives_way(known: T, item: T) -> bool:
    """To a newer one; and a part that a cut left over gives way to the whole it was cut from."""
    if known.epoch != item.epoch:
        return known.epoch < item.epoch
    inside = item.section.start <= known.section.start and known.section.end <= item.section.end
    return inside and known.within(item.section) == item
