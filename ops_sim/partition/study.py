"""What partitioning gains, as BlueDove measures it: the highest rate of EAs that no member falls behind. Pure.

A member scans the EFs it keeps on the axis an EA came by, so an EA costs their number; where an EA goes is its client's
choice. A stream of EAs is shared out, and the member with the most work decides: the rate all can sustain is what goes
through while that one works all the time. Rates are compared, so that the unit of work does not matter.

    adaptive       the candidate that is done first: the work it has and the EFs it would scan (section III-B.2)
    fewest EFs     the candidate with the fewest EFs on that axis (III-B.1)
    random         any candidate
    one dimension  a DHT over the first dimension alone: one candidate (the paper's P2P)
    replication    every member keeps every EF: dynamic help as the uTupleSpace paper has it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ops_sim.partition.workload import Counts, Workload

EAS = 60_000
"""Shared out for each figure: loads differ by less than a hundredth beyond that."""
_POINT = 1e-9
"""A predicate of this width asks for one value."""

_DHT, _COPIES, _POINTS = "over one dimension", "over replication", "over replication, points"
_RANDOM, _FEWEST = "over random", "over fewest EFs"
_BY_AXES = {1: 1.0, 4: 5.5}
"""What figure 11(a) says in words."""

Loads = NDArray[np.float64]
Segments = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Gain:
    """One figure, beside what the paper prints (None: nothing)."""

    name: str
    members: int
    value: float
    paper: float | None = None


@dataclass(frozen=True, slots=True)
class Study:
    gains: tuple[Gain, ...]
    deviation: float
    """Of the members' loads under the adaptive choice, against their mean; the paper prints 0.14."""

    def of(self, name: str, members: int) -> float:
        return next(g.value for g in self.gains if (g.name, g.members) == (name, members))


def study(workload: Workload, few: int = 5, many: int = 20, eas: int = EAS) -> Study:
    """The paper's comparisons, for its two sizes."""
    counts, segments = workload.counts(many), workload.segments(eas, many)
    loads = adaptive(counts, segments)
    gains = (
        *_against_others(workload, few, eas, {_DHT: 3.5, _COPIES: 14.0, _POINTS: 14.0}),
        *_against_others(
            workload,
            many,
            eas,
            {_DHT: 4.2, _COPIES: 67.0, _POINTS: 67.0, _RANDOM: 3.5, _FEWEST: 1.2},
        ),
        *_by_axes(counts, segments),
    )
    return Study(gains, float(loads.std() / loads.mean()))


def _against_others(
    workload: Workload, members: int, eas: int, printed: Mapping[str, float]
) -> Iterator[Gain]:
    counts, segments = workload.counts(members), workload.segments(eas, members)
    points = replace(workload, width=_POINT).counts(members)
    best = _busiest(adaptive(counts, segments))
    copies = workload.efs * eas / members
    found = {
        _DHT: _busiest(adaptive(counts[:1], segments)) / best,
        _COPIES: copies / best,
        _POINTS: copies / _busiest(adaptive(points, segments)),
        _RANDOM: _busiest(at_random(counts, segments, workload.seed)) / best,
        _FEWEST: _busiest(fewest(counts, segments)) / best,
    }
    for name, value in found.items():
        yield Gain(name, members, value, printed.get(name))


def _by_axes(counts: Counts, segments: Segments) -> Iterator[Gain]:
    """Figure 11(a): the rate with the first axes alone, against that of one."""
    one = _busiest(adaptive(counts[:1], segments))
    for axes in range(1, len(counts) + 1):
        gain = one / _busiest(adaptive(counts[:axes], segments))
        yield Gain(f"{axes} of {len(counts)} axes", counts.shape[1], gain, _BY_AXES.get(axes))


def adaptive(counts: Counts, segments: Segments) -> Loads:
    """The work of each member when every EA goes where it is done first."""
    costs, loads = _lists(counts), [0.0] * counts.shape[1]
    axes = range(len(costs))
    for event in segments.tolist():
        done, member = min(
            (loads[event[axis]] + costs[axis][event[axis]], event[axis]) for axis in axes
        )
        loads[member] = done
    return np.array(loads)


def fewest(counts: Counts, segments: Segments) -> Loads:
    axes = np.arange(len(counts))
    costs = counts[axes, segments[:, : len(counts)]]
    return _summed(costs, segments, costs.argmin(axis=1), counts.shape[1])


def at_random(counts: Counts, segments: Segments, seed: int) -> Loads:
    axes = np.arange(len(counts))
    costs = counts[axes, segments[:, : len(counts)]]
    chosen = np.random.default_rng(seed).integers(0, len(counts), len(segments))
    return _summed(costs, segments, chosen, counts.shape[1])


def _summed(costs: Counts, segments: Segments, chosen: NDArray[np.int64], members: int) -> Loads:
    rows = np.arange(len(segments))
    work = costs[rows, chosen].astype(np.float64)
    return np.bincount(segments[rows, chosen], weights=work, minlength=members).astype(np.float64)


def _busiest(loads: Loads) -> float:
    return float(loads.max())


def _lists(counts: Counts) -> Sequence[Sequence[float]]:
    """Python's lists are faster than NumPy's arrays, element by element."""
    return [[float(count) for count in row] for row in counts.tolist()]
