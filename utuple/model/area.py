"""Areas: where a position must lie. Boxes and circles include their edges.

A box whose west lies east of its east crosses the antimeridian. A circle is measured along the sphere
with the Earth's mean radius, so it also works around the poles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from utuple.errors import InvalidInput
from utuple.model.limits import MAX_RADIUS_M
from utuple.model.value import plain_scalar

EARTH_RADIUS_M = 6_371_008.8

Position = tuple[float, float]
"""(latitude, longitude) in degrees."""


def check_latitude(field: str, value: object) -> float:
    return _degrees(field, value, 90.0)


def check_longitude(field: str, value: object) -> float:
    return _degrees(field, value, 180.0)


def _degrees(field: str, value: object, most: float) -> float:
    value = plain_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, value, "must be a number of degrees")
    if not -most <= value <= most:
        raise InvalidInput(field, value, f"must lie between -{most:g} and {most:g} degrees")
    return float(value)


def check_position(field: str, value: object) -> Position | None:
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(field, value, "must be a pair (latitude, longitude)")
    return (
        check_latitude(f"{field}.latitude", value[0]),
        check_longitude(f"{field}.longitude", value[1]),
    )


@dataclass(frozen=True, slots=True)
class Box:
    """An area between two latitudes and two longitudes, its edges included, in degrees.

        area=Box(35.5, 139.5, 35.9, 140.0)      # south, west, north, east

    With `west` greater than `east` it crosses the antimeridian: Box(-20, 175, -10, -175) is around Fiji. An event
    without a position lies in no area.
    """

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "south", check_latitude("area.south", self.south))
        object.__setattr__(self, "west", check_longitude("area.west", self.west))
        object.__setattr__(self, "north", check_latitude("area.north", self.north))
        object.__setattr__(self, "east", check_longitude("area.east", self.east))
        if self.south > self.north:
            raise InvalidInput(
                "area", (self.south, self.north), "south must not lie north of north"
            )

    @property
    def crosses_antimeridian(self) -> bool:
        return self.west > self.east

    def contains(self, position: Position) -> bool:
        """Does (latitude, longitude) lie in it?"""
        latitude, longitude = position
        if not self.south <= latitude <= self.north:
            return False
        if self.crosses_antimeridian:
            return longitude >= self.west or longitude <= self.east
        return self.west <= longitude <= self.east


@dataclass(frozen=True, slots=True)
class Circle:
    """All positions at most `radius_m` metres from (`lat`, `lon`), its edge included, along the Earth's surface.

        area=Circle(35.68, 139.76, 500)

    An event without a position lies in no area.
    """

    lat: float
    lon: float
    radius_m: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lat", check_latitude("area.lat", self.lat))
        object.__setattr__(self, "lon", check_longitude("area.lon", self.lon))
        radius = plain_scalar(self.radius_m)
        if isinstance(radius, bool) or not isinstance(radius, int | float):
            raise InvalidInput("area.radius_m", radius, "must be a number of metres")
        if not 0 <= radius <= MAX_RADIUS_M:
            raise InvalidInput(
                "area.radius_m", radius, f"must lie between 0 and {MAX_RADIUS_M:g} metres"
            )
        object.__setattr__(self, "radius_m", float(radius))

    def contains(self, position: Position) -> bool:
        """Does (latitude, longitude) lie in it?"""
        return distance_m((self.lat, self.lon), position) <= self.radius_m

    def bounding_box(self) -> Box:
        """A box that holds the whole circle, for indexes and SQL; `contains` has the last word."""
        angle = self.radius_m / EARTH_RADIUS_M * (1 + 1e-9) + 1e-12
        south = self.lat - math.degrees(angle)
        north = self.lat + math.degrees(angle)
        if south <= -90 or north >= 90:
            return Box(max(south, -90.0), -180.0, min(north, 90.0), 180.0)
        ratio = math.sin(angle) / math.cos(math.radians(self.lat))
        if ratio >= 1:
            return Box(south, -180.0, north, 180.0)
        half = math.degrees(math.asin(ratio)) + 1e-9
        if half >= 180:
            return Box(south, -180.0, north, 180.0)
        return _wrapped(south, self.lon - half, north, self.lon + half)


def _wrapped(south: float, west: float, north: float, east: float) -> Box:
    if west <= -180 and east >= 180:
        return Box(south, -180.0, north, 180.0)
    if west <= -180:  # the edge itself is written as -180 and as 180
        return Box(south, min(west + 360, 180.0), north, east)
    if east >= 180:
        return Box(south, west, north, max(east - 360, -180.0))
    return Box(south, west, north, east)


def distance_m(one: Position, other: Position) -> float:
    """Great-circle distance (haversine)."""
    lat_1, lat_2 = math.radians(one[0]), math.radians(other[0])
    d_lat = lat_2 - lat_1
    d_lon = math.radians(other[1] - one[1])
    half = math.sin(d_lat / 2) ** 2 + math.cos(lat_1) * math.cos(lat_2) * math.sin(d_lon / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))


Area = Box | Circle
