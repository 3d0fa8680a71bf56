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

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from utuple.cluster.dimension import (
    Bound,
    Point,
    Spans,
    check_bound,
    check_dimension,
    in_order,
    spans_of,
    value_of,
)
from utuple.errors import InvalidInput
from utuple.model.utuple import UTuple

MAX_AXES = 8
"""Each costs every EF a copy more; BlueDove tries four."""
MAX_SEGMENTS = 1_024
"""Of one axis: a line is sent with every refusal, so it stays small."""


class Candidate(NamedTuple):
    """Where an EA may go: a member, and the axis it is taken there by."""

    member: str
    axis: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension, cut at `cuts`: segment i holds the values from cut i-1, included, up to cut i."""

    dimension: str
    cuts: tuple[Bound, ...]
    owners: tuple[tuple[str, ...], ...]
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

    def overlapped(self, spans: Spans) -> Sequence[int]:
        """The segments in which an EF with these spans is kept, ascending."""
        every = range(len(self.owners))
        if spans is None:
            return every
        return [at for at in every if any(span.meets(*self.bounds(at)) for span in spans)]

    def owners_of(self, point: Point | None) -> tuple[str, ...]:
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


NO_LAYOUT = Layout()
