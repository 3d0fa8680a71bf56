"""Sections: half-open slices of the hash space, and the sets of them that tile it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE


@dataclass(frozen=True, slots=True, order=True)
class Section:
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= HASH_SPACE:
            raise InvalidInput(
                "section", (self.start, self.end), f"must be 0 <= start < end <= {HASH_SPACE}"
            )

    def __contains__(self, key: int) -> bool:
        return self.start <= key < self.end

    def overlaps(self, other: Section) -> bool:
        return self.start < other.end and other.start < self.end

    def split_at(self, key: int) -> tuple[Section, Section]:
        """Two halves; the second begins at `key`."""
        if not self.start < key < self.end:
            raise InvalidInput("split", key, f"must lie inside {self} and not at its start")
        return Section(self.start, key), Section(key, self.end)

    def without(self, other: Section) -> list[Section]:
        """What is left of this section when the other is cut out."""
        if not self.overlaps(other):
            return [self]
        left = [Section(self.start, other.start)] if self.start < other.start else []
        right = [Section(other.end, self.end)] if other.end < self.end else []
        return left + right

    def __str__(self) -> str:
        return f"[{self.start:016x}, {self.end:016x})"


def equal_sections(count: int) -> list[Section]:
    """The hash space cut into `count` sections, as even as whole numbers allow."""
    edges = [HASH_SPACE * position // count for position in range(count + 1)]
    return [Section(start, end) for start, end in pairwise(edges)]


def tiles(sections: Iterable[Section]) -> bool:
    """Do these sections cover the hash space, each point once?"""
    reached = 0
    for section in sorted(sections):
        if section.start != reached:
            return False
        reached = section.end
    return reached == HASH_SPACE
