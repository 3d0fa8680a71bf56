"""Spread: what a section's EFs ask, and how the values of its EAs lie, as a sample of bounded size. Pure.

A server keeps a few of its latest EAs and looks at a few of its EFs when somebody asks (utuple/server/writing/sample.py). From that an
operator, or a planner, sees which dimensions EFs constrain at all, cuts them where EAs fall into equal parts, and says what
each member would keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from utuple.cluster.dimension import (
    ADDRESS,
    DATA,
    LAT,
    LON,
    TIME,
    Bound,
    Point,
    Span,
    Spans,
    in_order,
    spans_of,
    values_in,
)
from utuple.cluster.layout import MAX_AXES, Axis, Layout
from utuple.errors import InvalidInput
from utuple.model.columns import Columns
from utuple.model.utuple import UTuple
from utuple.model.value import decode_data, encode_data

Asked = Mapping[str, Spans]
"""Of one EF: the spans it asks for, in the dimensions that it constrains."""


@dataclass(frozen=True, slots=True)
class Spread:
    efs: int = 0
    """Of the section, not only of the sample."""
    formals: tuple[Asked, ...] = ()
    values: tuple[Mapping[str, Bound], ...] = ()
    """Of each EA of the sample, in the dimensions in which it has one."""

    @property
    def asked(self) -> dict[str, float]:
        """The share of the EFs that constrain each dimension, the most asked first."""
        counts = Counter(dimension for one in self.formals for dimension in one)
        return {name: count / len(self.formals) for name, count in counts.most_common(MAX_AXES)}

    def with_values_of(self, others: Iterable[Spread]) -> Spread:
        """The EFs of the home, which keeps all, and the EAs of every member."""
        more = (value for one in others for value in one.values)
        return replace(self, values=(*self.values, *more))

    def kept(self, layout: Layout, home: str) -> dict[str, float]:
        """The share of the EFs that each owner keeps."""
        counts = dict.fromkeys(sorted(layout.owners - {home}), 0)
        for one in self.formals:
            keepers = {
                name
                for axis in layout.axes
                for at in axis.overlapped(one.get(axis.dimension))
                for name in axis.owners[at]
            }
            for name in keepers & counts.keys():
                counts[name] += 1
        return {home: 1.0} | {n: c / max(1, len(self.formals)) for n, c in counts.items()}

    def taken(self, axis: Axis, home: str) -> dict[str, float]:
        """The share of the EAs that each owner beside the home takes, if this axis is what they go by, evenly among the owners."""
        shares = dict.fromkeys((name for own in axis.owners for name in own if name != home), 0.0)
        for one in self.values:
            value = one.get(axis.dimension)
            owners = [
                name
                for name in axis.owners_of(None if value is None else in_order(value))
                if name != home
            ]
            for name in owners:
                shares[name] += 1 / len(owners) / len(self.values)
        return shares


def spread_of(efs: int, formals: Iterable[UTuple], events: Sequence[Columns]) -> Spread:
    asked = tuple(_asked(formal) for formal in formals)
    some = Spread(efs, asked)
    values = []
    for columns in events:
        found = {name: values_in(name, columns, range(len(columns))) for name in some.asked}
        values += [
            {name: _plain(of[row]) for name, of in found.items() if of[row] is not None}
            for row in range(len(columns))
        ]
    return replace(some, values=tuple(values))


def _asked(formal: UTuple) -> Asked:
    fields = (f"{DATA}{name}" for name in formal.where or ())
    found = ((name, spans_of(name, formal)) for name in (ADDRESS, LAT, LON, TIME, *fields))
    return {name: spans for name, spans in found if spans is not None}


def quantile_axis(spread: Spread, dimension: str, others: Sequence[str], home: str) -> Axis:
    """One segment for each of the others, with as many EAs. Where one value has the EAs of several parts it cannot be cut:
    then there are fewer segments, and who is left over owns the fullest of them too."""
    values = [one[dimension] for one in spread.values if dimension in one]
    if not values:
        rule = f"no EA with {dimension} was seen lately: say where it is cut, as {dimension}:10:20"
        raise InvalidInput("--by", dimension, rule)
    values.sort(key=in_order)
    parts = len(others)
    wanted = [values[len(values) * part // parts] for part in range(1, parts)]
    cuts = tuple(cut for cut in dict.fromkeys(wanted) if in_order(cut) != in_order(values[0]))
    axis = Axis(dimension, cuts, tuple((name,) for name in others[: len(cuts) + 1]))
    counts = Counter(axis.segment_of(in_order(value)) for value in values)
    owners = [[name] for name in others[: len(cuts) + 1]]
    for name in others[len(cuts) + 1 :]:
        fullest = max(range(len(owners)), key=lambda at: counts[at] / len(owners[at]))
        owners[fullest].append(name)
    return replace(axis, owners=tuple((*own, home) for own in owners))


# --- as it travels ---------------------------------------------------------------------------------


def encode_spread(spread: Spread) -> bytes:
    formals = [
        {
            name: [
                [_plain(span.low), _plain(span.high), span.includes_high] for span in spans or ()
            ]
            for name, spans in one.items()
        }
        for one in spread.formals
    ]
    values = list(map(dict, spread.values))
    return encode_data({"efs": spread.efs, "formals": formals, "values": values})


def decode_spread(encoded: bytes) -> Spread:
    """Nothing, where nothing was said."""
    if not encoded:
        return Spread()
    try:
        said: Any = decode_data(encoded)
        formals = tuple(
            {str(name): tuple(_span(*span) for span in spans) for name, spans in one.items()}
            for one in said["formals"]
        )
        return Spread(int(said["efs"]), formals, tuple(map(dict, said["values"])))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InvalidInput("spread", encoded[:80], f"is none: {error}") from None


def _span(low: Any, high: Any, includes_high: Any) -> Span:
    return Span(_point(low), _point(high), bool(includes_high))


def _point(said: Any) -> Point | None:
    return None if said is None else in_order(said)


def _plain(point: Point | None) -> Any:
    """A sample need not be exact."""
    return float(point) if isinstance(point, Decimal) else point
