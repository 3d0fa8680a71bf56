"""A layout: how the EFs of a line are partitioned by dimension (paper 002, section III-A). Pure.

A layout is a tuple of axes. An axis cuts one dimension into segments and says which members own each. An EF is kept by
the owners of every segment it overlaps, on every axis. An EA goes to one owner of the segment its value lies in, on any
one axis: whatever matches it has its value in one of its spans there, so that this owner keeps it. So each (member, axis)
of `candidates` finds every match by itself.

A value that is missing lies in no segment: only EFs that are unconstrained on that axis can match, and those are kept in
every segment, so that any owner will do. No axes at all is help as the uTupleSpace paper has it: every member keeps every
EF. One axis with one segment that all members own says the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from utuple.cluster.dimension import (
    Bound,
    Point,
    Spans,
    check_bound,
    check_dimension,
    in_order,
    spans_of,
    value_of,
    values_in,
)
from utuple.errors import InvalidInput
from utuple.model.columns import Columns
from utuple.model.utuple import UTuple
from utuple.model.value import decode_data, encode_data

MAX_AXES = 8
"""Each costs every EF a copy more; BlueDove tries four."""
MAX_SEGMENTS = 1_024
"""Of one axis: a line is sent with every refusal, so it stays small."""
Owners = tuple[str, ...]


class Candidate(NamedTuple):
    """Where an EA may go: a member, and the axis it is taken there by."""

    member: str
    axis: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension, cut at `cuts`: segment i holds the values from cut i-1, included, up to cut i."""

    dimension: str
    cuts: tuple[Bound, ...]
    owners: tuple[Owners, ...]
    """Of each segment: one more than there are cuts."""
    points: tuple[Point, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_dimension(self.dimension)
        if len(self.owners) != len(self.cuts) + 1:
            rule = (
                f"{len(self.cuts)} bounds make {len(self.cuts) + 1} segments, each with its owners"
            )
            raise InvalidInput("owners", self.owners, rule)
        if len(self.owners) > MAX_SEGMENTS:
            raise InvalidInput(
                "bounds", len(self.cuts), f"at most {MAX_SEGMENTS} segments on an axis"
            )
        points = tuple(in_order(check_bound(self.dimension, cut)) for cut in self.cuts)
        for at, (one, next_) in enumerate(pairwise(points)):
            if not one < next_:  # type: ignore[operator]
                raise InvalidInput("bounds", self.cuts[at : at + 2], "must ascend")
        for at, owners in enumerate(self.owners):
            if not owners or len(set(owners)) != len(owners):
                rule = f"segment {at} of {self.dimension} needs owners, each named once"
                raise InvalidInput("owners", owners, rule)
        object.__setattr__(self, "points", points)

    def segment_of(self, point: Point) -> int:
        return bisect_right(self.points, point)

    def bounds(self, segment: int) -> tuple[Point | None, Point | None]:
        low = None if segment == 0 else self.points[segment - 1]
        return low, None if segment == len(self.points) else self.points[segment]

    def touching(self, low: Point | None, high: Point | None) -> range:
        """The segments that have a value in common with the half-open [low, high), as `bounds` gives it."""
        first = 0 if low is None else bisect_right(self.points, low)
        after = len(self.owners) if high is None else bisect_left(self.points, high) + 1
        return range(first, after)

    def overlapped(self, spans: Spans) -> Sequence[int]:
        """The segments in which an EF with these spans is kept, ascending."""
        every = range(len(self.owners))
        if spans is None:
            return every
        return [at for at in every if any(span.meets(*self.bounds(at)) for span in spans)]

    def owners_of(self, point: Point | None) -> Owners:
        """The members that may take an EA with this value; any owner, where it has none."""
        if point is None:
            return tuple(dict.fromkeys(name for owners in self.owners for name in owners))
        return self.owners[self.segment_of(point)]


@dataclass(frozen=True, slots=True)
class Layout:
    axes: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        if len(self.axes) > MAX_AXES:
            raise InvalidInput("axes", len(self.axes), f"at most {MAX_AXES} axes")
        dimensions = [axis.dimension for axis in self.axes]
        if len(set(dimensions)) != len(dimensions):
            raise InvalidInput("axes", dimensions, "each dimension is cut once")

    @property
    def owners(self) -> frozenset[str]:
        return frozenset(name for axis in self.axes for owners in axis.owners for name in owners)

    def candidates(self, event: UTuple) -> tuple[Candidate, ...]:
        """Every (member, axis) that finds all matches of this EA by itself."""
        return tuple(
            Candidate(name, at)
            for at, axis in enumerate(self.axes)
            for name in axis.owners_of(value_of(axis.dimension, event))
        )

    def keepers(self, formal: UTuple) -> frozenset[str]:
        """Who keeps this EF, beside the home, which keeps every one."""
        return frozenset(
            name
            for axis in self.axes
            for at in axis.overlapped(spans_of(axis.dimension, formal))
            for name in axis.owners[at]
        )

    def keeps(self, member: str, axis: int, formal: UTuple) -> bool:
        """Whether a member finds this EF when an EA comes to it by this axis."""
        chosen = self.axes[axis]
        overlapped = chosen.overlapped(spans_of(chosen.dimension, formal))
        return any(member in chosen.owners[at] for at in overlapped)

    def admits(self, member: str, axis: int, event: UTuple) -> bool:
        """Whether a member may take this EA by this axis (law 7: what lies outside its segments is refused)."""
        if not 0 <= axis < len(self.axes):
            return False
        chosen = self.axes[axis]
        return member in chosen.owners_of(value_of(chosen.dimension, event))

    def takers(self, columns: Columns, rows: Sequence[int]) -> list[Owners]:
        """For each of these EAs the members that may take it, by whichever axis. A member keeps the EFs of all its segments on
        all axes, so it does not matter there by which one an EA came."""
        values = [values_in(axis.dimension, columns, rows) for axis in self.axes]
        known: dict[tuple[int | None, ...], Owners] = {}
        found = []
        for points in zip(*values, strict=True):
            segments = tuple(
                None if point is None else axis.segment_of(point)
                for axis, point in zip(self.axes, points, strict=True)
            )
            names = known.get(segments)
            if names is None:
                each = zip(self.axes, points, strict=True)
                owners = (name for axis, point in each for name in axis.owners_of(point))
                names = known[segments] = tuple(dict.fromkeys(owners))
            found.append(names)
        return found

    def asks_no_more_of(self, member: str, before: Layout) -> bool:
        """Who served by the layout before keeps every EF that it needs by this one."""
        if not before.axes:
            return True  # every member kept every EF
        cut_before = {axis.dimension: axis for axis in before.axes}
        return bool(self.axes) and all(
            (was := cut_before.get(axis.dimension)) is not None
            and all(member in was.owners[part] for part in was.touching(*axis.bounds(at)))
            for axis in self.axes
            for at, owners in enumerate(axis.owners)
            if member in owners
        )

    # --- another layout of the same line ---------------------------------------------------------

    def without(self, member: str) -> Layout:
        """Where it was the only owner, nobody is left, and the layout is refused."""
        return self._owned(lambda owners: tuple(name for name in owners if name != member))

    def with_beside(self, member: str, helper: str) -> Layout:
        """The helper owns what this member owns, too: help inside its segments."""
        return self._owned(
            lambda owners: (
                (*owners, helper) if member in owners and helper not in owners else owners
            )
        )

    def _owned(self, change: Callable[[Owners], Owners]) -> Layout:
        axes = (replace(axis, owners=tuple(map(change, axis.owners))) for axis in self.axes)
        return Layout(tuple(axes))

    def recuts(self, after: Layout, home: str) -> tuple[tuple[str, Layout], ...]:
        """The way from this layout to another one: whoever is asked for more learns, one after the other, and the layout by which
        it has. Meanwhile everybody else owns what it owned; the home owns every segment all the time. Where everyone only gives
        something up, one of them learns that there is nothing to learn."""
        names = sorted((self.owners | after.owners) - {home})
        if after == self:
            return ()
        learners = [name for name in names if not after.asks_no_more_of(name, self)] or names[:1]
        return tuple(
            (
                name,
                after
                if name == learners[-1]
                else _between(self, after, home, frozenset(learners[: turn + 1])),
            )
            for turn, name in enumerate(learners)
        )

    def __str__(self) -> str:
        return ", ".join(f"{axis.dimension} in {len(axis.owners)}" for axis in self.axes)


NO_LAYOUT = Layout()


def _between(before: Layout, after: Layout, home: str, learned: frozenset[str]) -> Layout:
    """These own what they will own; the others what they owned. Cut wherever one of both is, on the axes of both."""
    had = {axis.dimension: axis for axis in before.axes}
    has = {axis.dimension: axis for axis in after.axes}
    axes = []
    for dimension in {**had, **has}:
        pair = [at.get(dimension, Axis(dimension, (), ((home,),))) for at in (had, has)]
        cuts = dict(
            sorted(cut for axis in pair for cut in zip(axis.points, axis.cuts, strict=True))
        )
        lows = (None, *cuts)
        owners = []
        for low in lows:
            was, will = (axis.owners[0 if low is None else axis.segment_of(low)] for axis in pair)
            names = (
                *(name for name in will if name in learned),
                *(name for name in was if name not in learned),
                home,
            )
            owners.append(tuple(dict.fromkeys(names)))
        axes.append(Axis(dimension, tuple(cuts.values()), tuple(owners)))
    return Layout(tuple(axes))


def encode_layout(layout: Layout) -> bytes:
    """As it is stored and as it travels; nothing, where there is none."""
    return encode_data({"axes": layout_to_list(layout)}) if layout.axes else b""


def decode_layout(encoded: bytes) -> Layout:
    """Refuses whatever is no layout."""
    if not encoded:
        return NO_LAYOUT
    try:
        return layout_from_list(decode_data(encoded)["axes"])
    except InvalidInput:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidInput("layout", encoded[:80], f"is no layout: {error}") from None


def layout_to_list(layout: Layout) -> list[Any]:
    return [[axis.dimension, list(axis.cuts), list(map(list, axis.owners))] for axis in layout.axes]


def layout_from_list(axes: list[Any]) -> Layout:
    return Layout(
        tuple(
            Axis(dimension, tuple(cuts), tuple(tuple(map(str, owners)) for owners in all_owners))
            for dimension, cuts, all_owners in axes
        )
    )
