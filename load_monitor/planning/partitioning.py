"""Help or partition: what a section with many EFs costs its members either way, and where to cut it. Pure.

Dynamic help copies every EF to every member; a layout (utuple/cluster/layout.py) gives each member the EFs of its segments
only, for one copy more an axis. Which is cheaper is computed from what servers measure:

    help         L   = A/N (a + x c + b n) + F e
    partitioned  L_j = sum over axes i of A_ij (a + x c + b n_ij) + F e h_j

with A EAs and F EFs a second, n EFs, N members and x matches an EA; a seconds for an EA, c for a match, b for an EF that is
looked at, e for registering an EF. Of the layout, A_ij EAs come to member j by axis i, where it keeps n_ij EFs; it keeps the
share h_j of all. EAs are shared out among their candidates so that the busiest member has least, as clients do.

Two thresholds, one to partition and a higher one to go back, because a single one would be crossed by noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import sqrt

from utuple.cluster.dimension import Bound
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.errors import InvalidInput

PARTITION_BELOW = 0.8
"""Of the load under help: a partition must gain a fifth before load is moved for it."""
HELP_ABOVE = 0.95
"""Of the load under help: beyond that a partition is not worth the copies of its axes."""
AXIS_GAIN = 0.05
"""A further axis costs each EF a copy more: the busiest member must have this much less to do."""
_SHARED_OUT = 2_000
"""EAs shared out to see what members get: loads differ by less than a hundredth beyond that."""
_STEPS = tuple(sqrt(prime) % 1.0 for prime in (2, 3, 5, 7, 11, 13, 17, 19))
"""A step for each axis, such that EAs are spread evenly over all axes together without dice."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a server, as calibration measures them."""

    ea_s: float
    ef_looked_at_s: float
    match_s: float
    ef_registered_s: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 <= getattr(self, name) < float("inf"):
                raise InvalidInput(name, getattr(self, name), "must be at least 0, and finite")


@dataclass(frozen=True, slots=True)
class SectionLoad:
    eas_per_s: float
    efs_per_s: float
    efs: int
    matches_per_ea: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """One dimension of a section's EAs and EFs, in buckets: `cuts` are the bounds between them.

    EFs are counted by where their spans begin and end, so that those which overlap several buckets together are known:
    who has begun before they end, without those who ended before they begin.
    """

    dimension: str
    cuts: tuple[Bound, ...]
    eas: tuple[float, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    unconstrained: int = 0
    """EFs that ask nothing of this dimension: every segment keeps them."""

    def __post_init__(self) -> None:
        for name in ("eas", "begins", "ends"):
            if len(getattr(self, name)) != len(self.cuts) + 1:
                rule = f"{len(self.cuts)} bounds make {len(self.cuts) + 1} buckets"
                raise InvalidInput(name, len(getattr(self, name)), rule)

    @property
    def efs(self) -> int:
        return self.unconstrained + sum(self.begins)

    def overlapping(self, first: int, after: int) -> int:
        """EFs that overlap the buckets from `first` up to `after`."""
        return self.unconstrained + sum(self.begins[:after]) - sum(self.ends[:first])


@dataclass(frozen=True, slots=True)
class _Cut:
    """An axis, with what falls to each of its segments."""

    axis: Axis
    shares: tuple[float, ...]
    """Of the EAs."""
    kept: tuple[float, ...]
    """Of the EFs."""


@dataclass(frozen=True, slots=True)
class Choice:
    layout: Layout
    load: float
    """Of the busiest member, as a share of its time."""
    help_load: float
    most_kept: float
    """The largest share of the EFs that a member keeps, the home aside, which keeps all."""

    @property
    def ratio(self) -> float:
        return self.load / self.help_load if self.help_load > 0 else 1.0


def help_load(load: SectionLoad, costs: Costs, members: int) -> float:
    each_s = _ea_s(load, costs, float(load.efs))
    return load.eas_per_s / members * each_s + load.efs_per_s * costs.ef_registered_s


def best_layout(
    load: SectionLoad, costs: Costs, histograms: Iterable[Histogram], members: Sequence[str]
) -> Choice:
    """The axes that leave the busiest member the least, added one by one while each is worth it; no axes where none is."""
    under_help = help_load(load, costs, len(members))
    left = list(histograms)
    chosen: list[_Cut] = []
    best = Choice(NO_LAYOUT, under_help, under_help, 1.0)
    while left:
        tried = [
            (histogram, _judged([*chosen, _cut(histogram, load, costs, members, len(chosen))], load, costs, members))
            for histogram in left
        ]  # fmt: skip
        histogram, found = min(tried, key=lambda one: one[1].load)
        if found.load > (1 - AXIS_GAIN) * best.load:
            break
        chosen.append(_cut(histogram, load, costs, members, len(chosen)))
        left.remove(histogram)
        best = found
    return best


def is_partition_wanted(choice: Choice, *, help_fits: bool = True, fits: bool = True) -> bool:
    """For a section under help: the gain is worth a move, or the EFs of all do not fit into the members' memory."""
    if not choice.layout.axes:
        return False
    return choice.ratio <= PARTITION_BELOW or (fits and not help_fits)


def is_help_wanted(choice: Choice, *, help_fits: bool = True) -> bool:
    """For a section that is partitioned: what would be gained is gone."""
    return help_fits and choice.ratio >= HELP_ABOVE


def _ea_s(load: SectionLoad, costs: Costs, efs: float) -> float:
    return costs.ea_s + load.matches_per_ea * costs.match_s + costs.ef_looked_at_s * efs


def _cut(
    histogram: Histogram, load: SectionLoad, costs: Costs, members: Sequence[str], at: int
) -> _Cut:
    """One segment a member, at the quantiles of the work. Owners are turned from axis to axis, so that a member which has
    a crowded segment on one has another on the next."""
    edges = _quantiles(histogram, load, costs, len(members))
    spans = list(pairwise(edges))
    total = sum(histogram.eas) or 1.0
    efs = histogram.efs or 1
    shares = tuple(sum(histogram.eas[first:after]) / total for first, after in spans)
    kept = tuple(histogram.overlapping(first, after) / efs for first, after in spans)
    axis = Axis(
        histogram.dimension,
        tuple(histogram.cuts[edge - 1] for edge in edges[1:-1]),
        _owners(shares, kept, [*members[at:], *members[:at]]),
    )
    return _Cut(axis, shares, kept)


def _owners(
    shares: Sequence[float], kept: Sequence[float], members: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """One a segment; where there are fewer segments than members, the others help where there is most to do for each."""
    owners = [[name] for name in members[: len(shares)]]
    for name in members[len(shares) :]:
        most = max(range(len(shares)), key=lambda at: shares[at] * kept[at] / len(owners[at]))
        owners[most].append(name)
    return tuple(map(tuple, owners))


def _quantiles(histogram: Histogram, load: SectionLoad, costs: Costs, parts: int) -> list[int]:
    """Bucket edges, from the first to the last; fewer parts where a bucket that cannot be cut has the work of several."""
    buckets = len(histogram.eas)
    scale = load.efs / (histogram.efs or 1)
    work = [
        eas * _ea_s(load, costs, scale * histogram.overlapping(at, at + 1))
        for at, eas in enumerate(histogram.eas)
    ]
    done = [0.0, *accumulate(work)]
    if done[-1] <= 0:
        return [0, buckets]
    wanted = [done[-1] * part / parts for part in range(1, parts)]
    inner = {min(range(1, buckets + 1), key=lambda edge: abs(done[edge] - goal)) for goal in wanted}
    return [0, *sorted(inner - {buckets}), buckets]


def _judged(
    cuts: Sequence[_Cut], load: SectionLoad, costs: Costs, members: Sequence[str]
) -> Choice:
    missing = dict.fromkeys(members, 1.0)  # the share of the EFs that a member keeps by no axis
    for cut in cuts:
        for owners, share in zip(cut.axis.owners, cut.kept, strict=True):
            for name in owners:
                missing[name] *= 1 - min(share, 1.0)
    stored = {name: 1 - share for name, share in missing.items()}
    stored[members[0]] = 1.0  # the home keeps every EF (decision 28)
    busy = {name: load.efs_per_s * costs.ef_registered_s * share for name, share in stored.items()}
    portion = load.eas_per_s / _SHARED_OUT
    for number in range(_SHARED_OUT):
        best, where = float("inf"), ""
        for at, cut in enumerate(cuts):
            segment = _at(cut.shares, number * _STEPS[at] % 1.0)
            each = portion * _ea_s(load, costs, load.efs * cut.kept[segment])
            for name in cut.axis.owners[segment]:
                if busy[name] + each < best:
                    best, where = busy[name] + each, name
        busy[where] = best
    layout = Layout(tuple(cut.axis for cut in cuts))
    most = max((stored[name] for name in members[1:]), default=1.0)
    return Choice(layout, max(busy.values()), help_load(load, costs, len(members)), most)


def _at(shares: Sequence[float], point: float) -> int:
    """The segment in which this point of [0, 1) lies, by the EAs' shares."""
    for segment, share in enumerate(shares):
        point -= share
        if point < 0:
            return segment
    return len(shares) - 1
