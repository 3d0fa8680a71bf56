"""`matches` once more, written from what each condition means and nothing else: slow, plain, and sharing
no code with utuple/model. Numbers are compared as the decimals JSON writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from utuple.model.area import EARTH_RADIUS_M, Box, Circle
from utuple.model.condition import Absent, Equal, OneOf, Prefix, Present, Range, TypeIs
from utuple.model.utuple import Exact, Template, UTuple

GONE = object()


def number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(json.dumps(value))


def canonical(value: Any) -> Any:
    """A form in which equal values are equal, and others are not."""
    as_number = number(value)
    if as_number is not None:
        return ("number", as_number)
    if isinstance(value, list | tuple):
        return ("list", [canonical(item) for item in value])
    if isinstance(value, dict):
        return ("mapping", sorted((name, canonical(item)) for name, item in value.items()))
    return (type(value).__name__, value)


def in_range(low: Any, high: Any, value: Any) -> bool:
    if isinstance(low if low is not None else high, str):
        if not isinstance(value, str):
            return False
        points = [list(map(ord, text)) if text is not None else None for text in (low, value, high)]
        start, at, end = points
        return (start is None or start <= at) and (end is None or at < end)  # type: ignore[operator]
    here, bottom, top = number(value), number(low), number(high)
    if here is None:
        return False
    return (bottom is None or bottom <= here) and (top is None or here < top)


def kind_of_value(value: Any) -> str:
    names = {
        bool: "bool",
        str: "text",
        bytes: "bytes",
        list: "list",
        tuple: "list",
        dict: "mapping",
    }
    if value is None:
        return "null"
    return "number" if number(value) is not None else names[type(value)]


def satisfies(asked: object, value: Any) -> bool:
    if isinstance(asked, Absent):
        return value is GONE
    if value is GONE:
        return False
    match asked:
        case Present():
            return True
        case Equal(wanted):
            return bool(canonical(wanted) == canonical(value))
        case OneOf(alternatives):
            return any(canonical(wanted) == canonical(value) for wanted in alternatives)
        case Range(low, high):
            return in_range(low, high, value)
        case TypeIs(name):
            return kind_of_value(value) == name
        case Prefix(text):
            return isinstance(value, str) and value[: len(text)] == text
    raise AssertionError(asked)


def on_the_sphere(lat: float, lon: float) -> tuple[float, float, float]:
    phi, lam = math.radians(lat), math.radians(lon)
    return (math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi))


def angle_between(one: tuple[float, float], other: tuple[float, float]) -> float:
    """By vectors: atan2(|a × b|, a · b), good at every angle."""
    a, b = on_the_sphere(*one), on_the_sphere(*other)
    cross = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    return math.atan2(math.hypot(*cross), sum(x * y for x, y in zip(a, b, strict=True)))


def distance_from_edge_m(circle: Circle, position: tuple[float, float]) -> float:
    """Negative inside."""
    angle = angle_between((circle.lat, circle.lon), position)
    return angle * EARTH_RADIUS_M - circle.radius_m


def inside(area: Box | Circle, position: tuple[float, float]) -> bool:
    if isinstance(area, Circle):
        return distance_from_edge_m(area, position) <= 0
    lat, lon = position
    if lat < area.south or lat > area.north:
        return False
    if area.west <= area.east:
        return area.west <= lon <= area.east
    return not area.east < lon < area.west


def fits(template: Template, exact: Exact) -> bool:
    if not satisfies(template.address, exact.address):
        return False
    if template.since_us is not None and exact.time_us < template.since_us:
        return False
    if template.until_us is not None and not exact.time_us < template.until_us:
        return False
    if template.area is None:
        return True
    return exact.position is not None and inside(template.area, exact.position)


def data_fits(where: Mapping[str, object], data: Mapping[str, Any]) -> bool:
    return all(satisfies(asked, data.get(name, GONE)) for name, asked in where.items())


def naive_matches(actual: UTuple, formal: UTuple) -> bool:
    if actual.data is None or formal.where is None or actual.family != formal.family:
        return False
    sides = (actual.metadata, formal.metadata)
    if isinstance(sides[0], Exact) and isinstance(sides[1], Template):
        meets = fits(sides[1], sides[0])
    elif isinstance(sides[0], Template) and isinstance(sides[1], Exact):
        meets = fits(sides[0], sides[1])
    else:
        return False
    return meets and data_fits(formal.where, actual.data)


def too_close_to_tell(actual: UTuple, formal: UTuple) -> bool:
    """Two formulas for a distance agree to some decimetres; on the very edge of a circle they may not."""
    exact, template = actual.metadata, formal.metadata
    if isinstance(exact, Template):
        exact, template = template, exact
    if not isinstance(exact, Exact) or not isinstance(template, Template):
        return False
    if exact.position is None or not isinstance(template.area, Circle):
        return False
    return abs(distance_from_edge_m(template.area, exact.position)) < 1.0
