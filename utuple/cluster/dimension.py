"""Dimensions: what a family's events can be cut by, as one ordered value each. Pure.

An EA has one value in a dimension, or none. An EF has *spans* in it, such that a value it can match lies in one of them; an
EF that asks nothing there, or something that is no range (another type, absence), is unconstrained: it has no spans, and
every value, and none, may match it. So whoever cuts a dimension into segments and keeps each EF in all segments that its
spans meet, an unconstrained one in all of them, finds every match of an EA in the one segment its value lies in.

    address      texts, in code-point order
    lat, lon     degrees; an EA without a position has none
    time         microseconds
    data.FIELD   numbers; a text or a missing field is no value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from utuple.errors import InvalidInput
from utuple.model.area import Box
from utuple.model.columns import Columns
from utuple.model.condition import (
    MISSING,
    AddressCondition,
    DataCondition,
    Equal,
    OneOf,
    Prefix,
    Range,
)
from utuple.model.utuple import Exact, Template, UTuple
from utuple.model.value import check_name, check_value, decode_all, is_number, number_key

ADDRESS, LAT, LON, TIME = "address", "lat", "lon", "time"
DATA = "data."
"""What the name of a field of the data begins with."""

Bound = str | int | float
"""What a dimension is cut at."""
Point = str | int | float | Decimal
"""A bound or a value in the order of its dimension: numbers compare as JSON writes them."""


@dataclass(frozen=True, slots=True)
class Span:
    """From low, included, to high; None leaves an end open."""

    low: Point | None
    high: Point | None
    includes_high: bool = False

    def meets(self, low: Point | None, high: Point | None) -> bool:
        """Does it have a value in common with the half-open segment [low, high)?"""
        begins_before = self.low is None or high is None or self.low < high  # type: ignore[operator]
        if not begins_before or self.high is None or low is None:
            return begins_before
        return low < self.high or (self.includes_high and low == self.high)  # type: ignore[operator]


Spans = tuple[Span, ...] | None
"""None: unconstrained. No spans at all cannot be: a template that can match nothing is refused."""


def check_dimension(name: object) -> str:
    if name in (ADDRESS, LAT, LON, TIME):
        return str(name)
    if isinstance(name, str) and name.startswith(DATA) and len(name) > len(DATA):
        return check_name("dimension", name)
    raise InvalidInput("dimension", name, "must be address, lat, lon, time or data.FIELD")


def check_bound(dimension: str, bound: object) -> Bound:
    """Raises unless a dimension can be cut there."""
    if dimension == ADDRESS:
        return check_name("bound", bound)
    if not is_number(bound):
        raise InvalidInput("bound", bound, f"must be a number: {dimension} is cut there")
    check_value("bound", bound)
    assert isinstance(bound, int | float)
    return bound


def in_order(bound: Bound) -> Point:
    """A bound or value as it is compared."""
    return bound if isinstance(bound, str) else number_key(bound)


def value_of(dimension: str, event: UTuple) -> Point | None:
    """Of an EA; None if it has none there."""
    exact, data = event.metadata, event.data
    assert isinstance(exact, Exact) and data is not None
    if dimension == ADDRESS:
        return exact.address
    if dimension == TIME:
        return exact.time_us
    if dimension in (LAT, LON):
        return None if exact.position is None else exact.position[dimension == LON]
    value = data.get(dimension.removeprefix(DATA), MISSING)
    return in_order(value) if is_number(value) else None


def values_in(dimension: str, columns: Columns, rows: Sequence[int]) -> list[Point | None]:
    """The same of EAs in columns, for each of these rows."""
    if dimension == ADDRESS:
        return [columns.addresses[row] for row in rows]
    if dimension == TIME:
        return [columns.times_us[row] for row in rows]
    if dimension in (LAT, LON):
        degrees = columns.lats if dimension == LAT else columns.lons
        at = (degrees[row] for row in rows)
        return [one if one == one else None for one in at]  # NaN: it has no position
    field = dimension.removeprefix(DATA)
    found = decode_all([columns.payloads[row] for row in rows])
    values = (data.get(field, MISSING) for data in found)
    return [in_order(value) if is_number(value) else None for value in values]


def spans_of(dimension: str, formal: UTuple) -> Spans:
    """Of an EF."""
    template, where = formal.metadata, formal.where
    assert isinstance(template, Template) and where is not None
    if dimension == ADDRESS:
        return _of_texts(template.address)
    if dimension == TIME:
        is_open = template.since_us is None and template.until_us is None
        return None if is_open else (Span(template.since_us, template.until_us),)
    if dimension in (LAT, LON):
        if template.area is None:
            return None
        area = template.area
        box = area if isinstance(area, Box) else area.bounding_box()
        return (Span(box.south, box.north, True),) if dimension == LAT else _of_longitudes(box)
    wanted = where.get(dimension.removeprefix(DATA))
    return None if wanted is None else _of_numbers(wanted)


def _of_longitudes(box: Box) -> tuple[Span, ...]:
    if box.crosses_antimeridian:
        return Span(box.west, None), Span(None, box.east, True)
    return (Span(box.west, box.east, True),)


def _of_texts(wanted: AddressCondition) -> Spans:
    match wanted:
        case Equal(value):
            return (Span(value, value, True),)
        case OneOf(values):
            return tuple(Span(value, value, True) for value in values)
        case Range(low, high):
            return (Span(low, high),)
        case Prefix(text):
            return (Span(text, wanted.end),)
    return None


def _of_numbers(wanted: DataCondition) -> Spans:
    match wanted:
        case Equal(value) if is_number(value):
            return (Span(number_key(value), number_key(value), True),)
        case OneOf(values) if all(map(is_number, values)):
            return tuple(Span(number_key(value), number_key(value), True) for value in values)
        case Range(low, high) if wanted.of_numbers:
            ends = [None if end is None else in_order(end) for end in (low, high)]
            return (Span(ends[0], ends[1]),)
    return None
