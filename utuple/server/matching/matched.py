"""What the index found for a batch, as delivery lists: each template that was met, with the rows that met it.
Columns rather than pairs, since a batch may have a million of them. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain


@dataclass(frozen=True, slots=True)
class Matches:
    ids: Sequence[bytes] = ()
    """Each template once."""
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    """Where in `rows` the list of each template begins; at the end, where the last one ends."""
    rows: array[int] = field(default_factory=lambda: array("q"))
    """Ascending within a list: the order of the batch."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[bytes, array[int]]]:
        """Template by template."""
        rows, starts = self.rows, self.starts
        for at, id_ in enumerate(self.ids):
            yield id_, rows[starts[at] : starts[at + 1]]

    def pairs(self) -> Iterator[tuple[int, bytes]]:
        return ((row, id_) for id_, rows in self for row in rows)


def matches_of(pairs: Iterable[tuple[int, bytes]]) -> Matches:
    """From pairs of row and template in any order, each pair once."""
    lists: dict[bytes, list[int]] = {}
    for row, id_ in pairs:
        lists.setdefault(id_, []).append(row)
    for found in lists.values():
        found.sort()
    return matches_of_lists(lists)


def matches_of_lists(lists: Mapping[bytes, Sequence[int]]) -> Matches:
    """From row numbers per template, in ascending order."""
    starts = array("q", accumulate(map(len, lists.values()), initial=0))
    return Matches(list(lists), starts, array("q", chain.from_iterable(lists.values())))
