"""The workload of BlueDove's experiments (section IV-B): EFs that crowd around a hot spot in each dimension. Pure.

What the paper leaves open is read so: the hot spots of the four dimensions lie at 0, 250, 500 and 750 ("distributed evenly
along the full range"), a normal value that falls outside the range is drawn again ("cropped"), it is where the range of
the predicate begins, and each dimension is cut into segments of one width, a segment a member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utuple.errors import InvalidInput

LENGTH = 1000.0
"""Of each dimension."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Workload:
    efs: int = 40_000
    dimensions: int = 4
    width: float = 250.0
    """Of each predicate's range."""
    deviation: float = 250.0
    """Standard deviation of where ranges begin: the smaller, the more they crowd."""
    seed: int = 2

    def __post_init__(self) -> None:
        for name, least in (("efs", 1), ("dimensions", 1)):
            if getattr(self, name) < least:
                raise InvalidInput(name, getattr(self, name), f"must be at least {least}")
        if not 0 < self.width <= LENGTH:
            raise InvalidInput("width", self.width, f"must lie above 0 and up to {LENGTH:g}")
        if not 0 < self.deviation < float("inf"):
            raise InvalidInput("deviation", self.deviation, "must be above 0 and finite")

    @property
    def hot_spots(self) -> tuple[float, ...]:
        return tuple(LENGTH * at / self.dimensions for at in range(self.dimensions))

    def counts(self, members: int) -> Counts:
        """EFs of each axis (row) that overlap the segment of each member (column)."""
        dice = np.random.default_rng(self.seed)
        edges = np.linspace(0.0, LENGTH, members + 1)
        counts = np.empty((self.dimensions, members), dtype=np.int64)
        for axis, hot_spot in enumerate(self.hot_spots):
            low = np.sort(self._cropped(dice, hot_spot))
            high = low + self.width  # sorted as well
            begun = np.searchsorted(low, edges[1:], "left")
            over = np.searchsorted(high, edges[:-1], "right")
            counts[axis] = begun - over
        return counts

    def segments(self, messages: int, members: int) -> NDArray[np.int64]:
        """EAs, each with the segment its value lies in on each axis: uniform and independent."""
        dice = np.random.default_rng(self.seed + 1)
        return dice.integers(0, members, (messages, self.dimensions))

    def _cropped(self, dice: np.random.Generator, mean: float) -> NDArray[np.float64]:
        kept = np.empty(0)
        while len(kept) < self.efs:
            drawn = dice.normal(mean, self.deviation, self.efs)
            kept = np.append(kept, drawn[(drawn >= 0) & (drawn < LENGTH)])
        return kept[: self.efs]
