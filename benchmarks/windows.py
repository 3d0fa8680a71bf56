"""What was seen within a window of time: gaps between deliveries, delays. Pure; times are seconds of one
clock that all processes of this machine share."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from utuple.errors import InvalidInput

BURST_S = 0.01
"""What comes without so long a gap belongs together."""


@dataclass(frozen=True, slots=True)
class Window:
    """Half-open."""

    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not self.start_s < self.end_s:
            raise InvalidInput("window", f"{self.start_s} to {self.end_s}", "must not be empty")

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def __contains__(self, at_s: float) -> bool:
        return self.start_s <= at_s < self.end_s

    def before(self, earliest_s: float) -> Window:
        """As long a window that ends where this begins; shorter if it would begin too early."""
        return Window(max(earliest_s, self.start_s - self.length_s), self.start_s)


def longest_gap_s(arrivals: Sequence[float], window: Window) -> float:
    """The longest time without an arrival. A gap belongs to the window in which it ends; one that has not
    ended counts as far as the window goes. `arrivals` in their order."""
    first = bisect_left(arrivals, window.start_s)
    last = bisect_left(arrivals, window.end_s)
    before_s = arrivals[first - 1] if first else window.start_s
    longest_s = 0.0
    for at_s in arrivals[first:last]:
        longest_s = max(longest_s, at_s - before_s)
        before_s = at_s
    return max(longest_s, window.end_s - max(before_s, window.start_s))


def rate_per_s(arrivals: Sequence[float], window: Window) -> float:
    """How many came a second. They come in bursts, a call's answer each: of bursts the first and the last are
    left out, which the window may have cut, and time is counted from the end of one to the end of another."""
    seen = arrivals[bisect_left(arrivals, window.start_s) : bisect_left(arrivals, window.end_s)]
    if len(seen) < 2 or seen[-1] == seen[0]:
        return 0.0
    ends = [at for at, (one, other) in enumerate(pairwise(seen)) if other - one > BURST_S]
    if len(ends) < 2:  # they flow
        return (len(seen) - 1) / (seen[-1] - seen[0])
    return (ends[-1] - ends[0]) / (seen[ends[-1]] - seen[ends[0]])


def waits_s(spans: Iterable[tuple[float, float]], window: Window) -> list[float]:
    """How long those took that began in the window: (began, ended) each."""
    return sorted(ended - began for began, ended in spans if began in window)


def share(ordered: Sequence[float], part: float) -> float:
    """The value below which this part of them lies; 0 if there are none."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0
