"""A sample of the EAs that came lately, for whoever asks how their values are spread (utuple/cluster/spread.py). In memory, and of
bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from utuple.model.columns import Columns
from utuple.model.utuple import Family

_EVERY = 16
"""One EA of so many is kept."""
_OF_A_BATCH = 16
"""At most: a large batch is not held up."""
_KEPT = 2_048
"""EAs. Of a hot section it is most of them: they are sampled as they come."""
_MOST_BYTES = 2_048
"""Of the data of one that is kept: with the largest all of them take 4 MB."""


class Sample:
    def __init__(self) -> None:
        self._kept: deque[Columns] = deque(maxlen=_KEPT)
        """One row each."""
        self._passed = 0
        """EAs since the last one that was kept."""

    def note(self, columns: Columns) -> None:
        first = _EVERY - 1 - self._passed
        self._passed = (self._passed + len(columns)) % _EVERY
        step = max(_EVERY, -(-len(columns) // _OF_A_BATCH))
        for row in range(first, len(columns), step):
            if len(columns.payloads[row]) <= _MOST_BYTES:
                self._kept.append(columns.take([row]))

    def of(self, wanted: Callable[[Family], bool], most: int) -> Iterator[Columns]:
        """The latest of these families."""
        left = most
        for one in reversed(self._kept):
            if left and wanted(one.families[one.family[0]]):
                left -= 1
                yield one
