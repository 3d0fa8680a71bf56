"""Does one condition lie within another: does everything that meets the first meet the second? Pure.

Sound, and complete where that is cheap: whatever is said to lie within does; of areas a box that only just fits into a
circle may be refused. A grant that is asked this way can be narrower than meant, never wider.
"""

from __future__ import annotations

from utuple.model.area import Area, Box, Circle, distance_m
from utuple.model.condition import AddressCondition, Equal, OneOf, Prefix, Range

Scope = Equal | Prefix | None
"""What a grant says about addresses: one, all that begin so, or any."""

_MARGIN = 1 - 1e-9
"""Of a radius: distances are rounded."""


def address_within(asked: AddressCondition, scope: Scope) -> bool:
    if scope is None:
        return True
    match asked:
        case Equal(value):
            return scope.meets(value)
        case OneOf(values):
            return all(map(scope.meets, values))
        case Prefix(text):
            return isinstance(scope, Prefix) and text.startswith(scope.text)
        case Range(low, high):
            return isinstance(scope, Prefix) and _range_within(low, high, scope)
        case _:
            return isinstance(scope, Prefix) and scope.text == ""


def _range_within(low: object, high: object, scope: Prefix) -> bool:
    """All that begins with a text lies between it and its `end`."""
    starts_inside = isinstance(low, str) and low >= scope.text
    ends_inside = scope.end is None or (isinstance(high, str) and high <= scope.end)
    return starts_inside and ends_inside


def area_within(asked: Area | None, limit: Area | None) -> bool:
    if limit is None:
        return True
    if asked is None:
        return False
    if isinstance(limit, Box):
        return _box_within(asked if isinstance(asked, Box) else asked.bounding_box(), limit)
    if isinstance(asked, Circle):
        between_m = distance_m((asked.lat, asked.lon), (limit.lat, limit.lon))
        return between_m + asked.radius_m <= limit.radius_m * _MARGIN or asked == limit
    return _box_in_circle(asked, limit)


def _box_within(asked: Box, limit: Box) -> bool:
    if not (limit.south <= asked.south and asked.north <= limit.north):
        return False
    if limit.west == -180.0 and limit.east == 180.0:
        return True
    if limit.crosses_antimeridian == asked.crosses_antimeridian:
        return limit.west <= asked.west and asked.east <= limit.east
    return limit.crosses_antimeridian and (asked.west >= limit.west or asked.east <= limit.east)


def _box_in_circle(asked: Box, limit: Circle) -> bool:
    """Cut small, a piece of the box lies within half its diagonal of its middle. Pieces that are too coarse say no."""
    width = asked.east - asked.west + (360.0 if asked.crosses_antimeridian else 0.0)
    height = asked.north - asked.south
    pieces = 16
    for row in range(pieces):
        for column in range(pieces):
            lat = asked.south + height * (row + 0.5) / pieces
            lon = asked.west + width * (column + 0.5) / pieces
            middle = (lat, lon if lon <= 180.0 else lon - 360.0)
            half_m = _half_diagonal_m(height / pieces, width / pieces)
            if distance_m(middle, (limit.lat, limit.lon)) + half_m > limit.radius_m * _MARGIN:
                return False
    return True


def _half_diagonal_m(height: float, width: float) -> float:
    """At the equator, where it is longest: half a degree north and half a degree east, one after the other."""
    return distance_m((0.0, 0.0), (height / 2, 0.0)) + distance_m(
        (0.0, 0.0), (0.0, min(width / 2, 180.0))
    )
