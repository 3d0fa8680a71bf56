"""The keys of a scenario: where each lies in the hash space, and how much of the load it is on a day. Pure.

Keys are kept in the order of the hash space, so that what a section bears is a sum over a slice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ops_sim.placement.scenario import HOT, ZIPF, Scenario, Skew
from ops_sim.placement.splitmix import Floats, Words, unit, words

_PLACES, _RANKS, _ZONES, _CHURN = 1, 2, 3, 1_000
_HOURS = 24


class Keys:
    def __init__(self, scenario: Scenario, weighing: Floats | None = None) -> None:
        """`weighing` as they stand on a day, else as they are before the first."""
        self._scenario = scenario
        self.hashes: Words = np.unique(words(scenario.seed, _PLACES, scenario.keys))
        """Sorted. Two of them at one place would be one key."""
        count = len(self.hashes)
        if weighing is None:
            order = np.argsort(words(scenario.seed, _RANKS, count), kind="stable")
            weighing = weights(scenario.skew, count)[order]
        self.weights: Floats = weighing
        """Each key's share of all devices: they sum to 1."""
        hour = np.floor(unit(scenario.seed, _ZONES, count) * _HOURS)
        angles = 2 * np.pi * (np.arange(scenario.looks)[:, None] / scenario.looks - hour / _HOURS)
        self._swing: Floats | None = np.cos(angles) * scenario.night if scenario.night else None
        self.mean = self.now = running(self.weights)
        """Running sums of the shares: in the mean of the day, and at the moment that is looked at."""

    def __reduce__(self) -> tuple[object, ...]:
        """Small: all else follows from the scenario."""
        return Keys, (self._scenario, self.weights if self._scenario.churn else None)

    def live(self, day: int) -> None:
        """The next day: keys vanish here and appear there, with all that belongs to them."""
        changing = round(self._scenario.churn * len(self.weights))
        if changing > 1:
            drawn = words(self._scenario.seed, _CHURN + day, changing)
            places = np.unique(drawn % np.uint64(len(self.weights))).astype(np.int64)
            self.weights[places] = np.roll(self.weights[places], 1)
            self.mean = running(self.weights)
        self.now = self.mean

    def look(self, number: int) -> None:
        """At a moment of the day: the night lowers each key's part of the load, the day lifts it."""
        if self._swing is not None:
            self.now = running(self.weights * (1.0 + self._swing[number]))

    def edges(self, starts: Words) -> NDArray[np.int64]:
        """The number of the first key of each section that starts there, and the number of keys."""
        return np.append(np.searchsorted(self.hashes, starts), len(self.hashes)).astype(np.int64)

    def drawn(self, first: int, last: int, luck: float) -> int:
        """The key of a random stored uTuple among keys `first` to `last`: the more is stored of a key, the
        likelier it is that one (section 3.6)."""
        summed = np.cumsum(self.weights[first:last])
        at = int(np.searchsorted(summed, luck * summed[-1], side="right"))
        return int(self.hashes[first + min(at, last - first - 1)])


def weights(skew: Skew, count: int) -> Floats:
    """The share of each key, the heaviest first."""
    if skew.kind == ZIPF:
        raw = np.arange(1, count + 1, dtype=np.float64) ** -skew.value
    else:
        raw = np.ones(count)
        if skew.kind == HOT and count > 1:
            raw *= (1.0 - skew.value) / (count - 1)
            raw[0] = skew.value
    shares: Floats = raw / raw.sum()
    return shares


def running(values: Floats) -> Floats:
    """The sum of all before each, and the total."""
    return np.concatenate(([0.0], np.cumsum(values)))


def between(totals: Floats, edges: NDArray[np.int64]) -> Floats:
    """What lies between neighbouring edges, by running sums; nothing where there is no key."""
    return np.maximum(0.0, np.diff(totals[edges]))
