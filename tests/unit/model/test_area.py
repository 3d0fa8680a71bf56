"""Boxes and circles: edges belong to them, the antimeridian and the poles are no special places."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests import strategies as some
from tests.unit.model.naive import distance_from_edge_m, inside
from utuple.errors import InvalidInput
from utuple.model.area import (
    EARTH_RADIUS_M,
    Box,
    Circle,
    Position,
    check_position,
    distance_m,
)
from utuple.model.limits import MAX_RADIUS_M


@given(some.boxes(), some.positions)
def test_a_box_holds_what_the_naive_version_says(box: Box, position: Position) -> None:
    assert box.contains(position) == inside(box, position)


@given(some.boxes())
def test_the_corners_of_a_box_belong_to_it(box: Box) -> None:
    for lat in (box.south, box.north):
        for lon in (box.west, box.east):
            assert box.contains((lat, lon))


def test_a_box_across_the_antimeridian_holds_fiji_and_not_greenwich() -> None:
    box = Box(-25, 170, -10, -170)
    assert box.crosses_antimeridian
    assert box.contains((-17.7, 178.0)) and box.contains((-17.7, -179.0))
    assert box.contains((-17.7, 180.0)) and box.contains((-17.7, -180.0))
    assert not box.contains((-17.7, 0.0)) and not box.contains((-17.7, 169.9))


@given(some.circles, some.positions)
def test_a_circle_holds_what_the_naive_version_says(circle: Circle, position: Position) -> None:
    assume(abs(distance_from_edge_m(circle, position)) > 1.0)
    assert circle.contains(position) == inside(circle, position)


@given(some.latitudes, some.longitudes)
def test_the_centre_of_a_circle_belongs_to_it_even_with_no_radius(lat: float, lon: float) -> None:
    assert Circle(lat, lon, 0).contains((lat, lon))


@given(some.positions, some.positions)
def test_the_largest_circle_is_the_whole_earth(centre: Position, position: Position) -> None:
    assert Circle(*centre, MAX_RADIUS_M).contains(position)


@given(some.positions, some.positions)
def test_distance_is_symmetric_and_at_most_half_way_round(one: Position, other: Position) -> None:
    assert distance_m(one, other) == pytest.approx(distance_m(other, one), abs=1e-6)
    assert 0 <= distance_m(one, other) <= math.pi * EARTH_RADIUS_M


@given(some.latitudes, some.longitudes)
def test_a_pole_has_one_place_whatever_its_longitude(lat: float, lon: float) -> None:
    assert distance_m((90.0, lon), (90.0, 0.0)) < 1e-6
    assert distance_m((90.0, lon), (lat, 0.0)) == pytest.approx(
        math.radians(90 - lat) * EARTH_RADIUS_M, abs=0.5
    )


def step(circle: Circle, bearing: float, share: float) -> Position:
    """The point at this share of the radius in this direction (spherical direct problem)."""
    angle = circle.radius_m * share / EARTH_RADIUS_M
    lat, lon = math.radians(circle.lat), math.radians(circle.lon)
    sine = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing)
    to_lat = math.asin(max(-1.0, min(1.0, sine)))
    to_lon = lon + math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(lat),
        math.cos(angle) - math.sin(lat) * math.sin(to_lat),
    )
    degrees = (math.degrees(to_lon) + 180) % 360 - 180
    return math.degrees(to_lat), max(-180.0, min(180.0, degrees))


bearings = st.floats(0, 2 * math.pi)
shares = st.one_of(st.sampled_from([0.0, 0.5, 0.999999, 1.0]), st.floats(0, 1))


@given(some.circles, bearings, shares)
@example(Circle(35.68, 139.76, 500), math.pi / 2, 1.0)
@example(Circle(89.999, 0, 1_000), 0.0, 1.0)
@example(Circle(0, 179.999, 1_000), math.pi / 2, 1.0)
def test_the_bounding_box_holds_every_point_of_the_circle(
    circle: Circle, bearing: float, share: float
) -> None:
    position = step(circle, bearing, share)
    assume(circle.contains(position))
    assert circle.bounding_box().contains(position)


@given(some.circles, some.positions)
def test_the_bounding_box_holds_whatever_the_circle_holds(
    circle: Circle, position: Position
) -> None:
    if circle.contains(position):
        assert circle.bounding_box().contains(position)


@given(some.circles)
def test_both_ways_to_write_the_antimeridian_are_inside_when_one_is(circle: Circle) -> None:
    box = circle.bounding_box()
    for lat in (box.south, (box.south + box.north) / 2, box.north):
        for lon in (-180.0, 180.0):
            if circle.contains((lat, lon)):
                assert box.contains((lat, 180.0)) and box.contains((lat, -180.0))


def test_the_bounding_box_of_a_small_circle_is_small() -> None:
    box = Circle(35.68, 139.76, 500).bounding_box()
    assert box.north - box.south < 0.01 and box.east - box.west < 0.012


BAD: list[tuple[Any, str]] = [
    (lambda: Box(91, 0, 91, 0), "area.south"),
    (lambda: Box(0, -181, 1, 0), "area.west"),
    (lambda: Box(0, 0, float("nan"), 0), "area.north"),
    (lambda: Box(0, 0, 1, float("inf")), "area.east"),
    (lambda: Box(2, 0, 1, 1), "area"),
    (lambda: Box("0", 0, 1, 1), "area.south"),  # type: ignore[arg-type]
    (lambda: Box(True, 0, 1, 1), "area.south"),
    (lambda: Circle(-91, 0, 1), "area.lat"),
    (lambda: Circle(0, 180.1, 1), "area.lon"),
    (lambda: Circle(0, 0, -1), "area.radius_m"),
    (lambda: Circle(0, 0, float("nan")), "area.radius_m"),
    (lambda: Circle(0, 0, float("inf")), "area.radius_m"),
    (lambda: Circle(0, 0, None), "area.radius_m"),  # type: ignore[arg-type]
    (lambda: check_position("position", (91, 0)), "position.latitude"),
    (lambda: check_position("position", (0, float("nan"))), "position.longitude"),
    (lambda: check_position("position", (0,)), "position"),
    (lambda: check_position("position", "0,0"), "position"),
]


@pytest.mark.parametrize(("build", "field"), BAD)
def test_what_lies_nowhere_is_refused_by_field_value_and_rule(build: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build()
    assert refused.value.field == field
    assert refused.value.rule
