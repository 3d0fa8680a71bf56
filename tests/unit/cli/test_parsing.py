"""What people write on the command line: areas, times, conditions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.cli.verbs.parsing import (
    parse_address,
    parse_area,
    parse_duration_s,
    parse_position,
    parse_time,
    parse_value,
    parse_where,
)
from utuple.errors import InvalidInput
from utuple.model.area import Box, Circle
from utuple.model.condition import ABSENT, ANY, Equal, OneOf, Prefix, Range, TypeIs

NOW = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "area"),
    [
        ("35.5,139.5,35.9,140.0", Box(35.5, 139.5, 35.9, 140.0)),
        ("box:35.5, 139.5, 35.9, 140.0", Box(35.5, 139.5, 35.9, 140.0)),
        ("-25,170,-10,-170", Box(-25, 170, -10, -170)),
        ("35.68,139.76,500", Circle(35.68, 139.76, 500)),
        ("circle:35.68,139.76,500m", Circle(35.68, 139.76, 500)),
        ("Circle: 35.68, 139.76, 2km", Circle(35.68, 139.76, 2000)),
        ("0,0,1e3", Circle(0, 0, 1000)),
    ],
)
def test_an_area_is_a_box_of_four_or_a_circle_of_three_numbers(text: str, area: object) -> None:
    assert parse_area(text) == area


@given(some.boxes())
def test_a_box_comes_back_from_its_numbers(box: Box) -> None:
    assert parse_area(f"{box.south},{box.west},{box.north},{box.east}") == box


@given(some.circles)
def test_a_circle_comes_back_from_its_numbers(circle: Circle) -> None:
    assert parse_area(f"{circle.lat},{circle.lon},{circle.radius_m}") == circle


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1,2",
        "1,2,3,4,5",
        "box:1,2,3",
        "circle:1,2,3,4",
        "hexagon:1,2,3",
        "a,b,c",
        "1,2,km",
    ],
)
def test_what_is_no_area_is_refused_as_area(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_area(text)
    assert refused.value.field == "--area"


def test_an_area_off_the_map_is_refused_by_the_model() -> None:
    with pytest.raises(InvalidInput, match=r"area\.north"):
        parse_area("0,0,91,0")
    with pytest.raises(InvalidInput, match="nan"):
        parse_area("nan,0,1,0")


def test_a_position_is_two_numbers() -> None:
    assert parse_position("35.68, 139.76") == (35.68, 139.76)
    for wrong in ("35.68", "1,2,3", "a,b", "91,0"):
        with pytest.raises(InvalidInput, match="--position"):
            parse_position(wrong)


# --- times


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", NOW),
        ("90s", NOW - timedelta(seconds=90)),
        ("15m", NOW - timedelta(minutes=15)),
        ("1.5h", NOW - timedelta(hours=1.5)),
        ("2d", NOW - timedelta(days=2)),
        ("1w", NOW - timedelta(weeks=1)),
        ("2026-01-31T08:00:00Z", datetime(2026, 1, 31, 8, tzinfo=UTC)),
        ("2026-01-31T08:00:00.25+09:00", datetime(2026, 1, 30, 23, 0, 0, 250_000, tzinfo=UTC)),
    ],
)
def test_a_time_is_an_instant_or_how_long_ago(text: str, instant: datetime) -> None:
    assert parse_time("--since", text, NOW) == instant


@pytest.mark.parametrize(
    "text", ["", "60", "yesterday", "1y", "-1h", "2026-13-01", "9e9d", "99999999999d"]
)
def test_what_is_no_time_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_time("--since", text, NOW)
    assert refused.value.field == "--since"


def test_a_time_without_a_zone_means_another_instant_on_another_machine() -> None:
    with pytest.raises(InvalidInput, match="zone"):
        parse_time("--until", "2026-01-31T08:00:00", NOW)


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=offsets))
def test_an_iso_time_comes_back(instant: datetime) -> None:
    assume(2 < instant.year < 9998)
    assert parse_time("--since", instant.isoformat(), NOW) == instant


def test_a_lifetime_is_seconds_or_has_a_unit() -> None:
    assert [parse_duration_s("--lifetime", text) for text in ("0", "30", "0.5", "1m", "7d")] == [
        0,
        30,
        0.5,
        60,
        604_800,
    ]
    for wrong in ("", "-1", "1y", "soon", "inf", "nan"):
        with pytest.raises(InvalidInput, match="--lifetime"):
            parse_duration_s("--lifetime", wrong)


# --- conditions


@pytest.mark.parametrize(
    ("texts", "where"),
    [
        ([], {}),
        (["kg>=1000"], {"kg": Range(1000, None)}),
        (["kg < 5"], {"kg": Range(None, 5)}),
        (["kg>=1 kg<5"], {"kg": Range(1, 5)}),
        (["kg<5 and kg>=1"], {"kg": Range(1, 5)}),
        (["kg>=1", "kg<5"], {"kg": Range(1, 5)}),
        (["kg<5", "kg>=1"], {"kg": Range(1, 5)}),
        (["kg=1", "on==true"], {"kg": Equal(1), "on": Equal(True)}),
        (["a=1 b=2"], {"a": Equal(1), "b": Equal(2)}),
        (["state=idle"], {"state": Equal("idle")}),
        (["city=New York"], {"city": Equal("New York")}),
        (['code="17"'], {"code": Equal("17")}),
        (["x=null"], {"x": Equal(None)}),
        (["x=[1,2]"], {"x": Equal([1, 2])}),
        (["x="], {"x": Equal("")}),
        (["formula=a=b"], {"formula": Equal("a=b")}),
        (["name>=m"], {"name": Range("m", None)}),
        (["state in idle,busy"], {"state": OneOf(("idle", "busy"))}),
        (["n in 1, 2.5, x"], {"n": OneOf((1, 2.5, "x"))}),
        (['s in ["a,b", "c"]'], {"s": OneOf(("a,b", "c"))}),
        (["on is bool"], {"on": TypeIs("bool")}),
        (["on is float"], {"on": TypeIs("number")}),
        (["kg exists"], {"kg": ANY}),
        (["kg absent"], {"kg": ABSENT}),
        (["温度>=-3.5"], {"温度": Range(-3.5, None)}),
        (["a.b=1"], {"a.b": Equal(1)}),
    ],
)
def test_conditions_are_written_as_people_write_them(
    texts: list[str], where: dict[str, Any]
) -> None:
    assert repr(parse_where(texts)) == repr(where)


@pytest.mark.parametrize(
    "texts",
    [
        [""],
        ["kg"],
        ["kg>5"],
        ["kg<=5"],
        ["kg!=5"],
        ["kg=>5"],
        [">=5"],
        ["on is boolean"],
        ["kg=1", "kg=2"],
        ["kg>=1", "kg>=2"],
        ["kg exists", "kg>=2"],
    ],
)
def test_a_condition_that_cannot_be_read_is_refused_and_shown(texts: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_where(texts)
    assert refused.value.field == "--where"


@pytest.mark.parametrize("texts", [["kg>=5 kg<1"], ["kg>=true"], ["kg>=1 kg<a"]])
def test_a_condition_nothing_can_meet_is_refused_by_the_model(texts: list[str]) -> None:
    with pytest.raises(InvalidInput):
        parse_where(texts)


def test_a_value_is_json_where_it_is_json() -> None:
    texts = ("1", "1.0", "true", "null", '"1"', "idle", "1 kg", "NaN")
    assert [parse_value(text) for text in texts] == [1, 1.0, True, None, "1", "idle", "1 kg", "NaN"]


def test_an_address_is_one_several_a_prefix_or_any() -> None:
    assert parse_address([], None) == ANY
    assert parse_address(["a,b"], None) == Equal("a,b")
    assert parse_address(["a", "b"], None) == OneOf(("a", "b"))
    assert parse_address([], "truck-") == Prefix("truck-")
    with pytest.raises(InvalidInput, match="not both"):
        parse_address(["a"], "truck-")


@pytest.mark.parametrize("text", ["777777d", "0001-01-01T00:00:00+09:00"])
def test_a_time_before_all_calendars_is_refused(text: str) -> None:
    """Found by fuzzing: an OverflowError."""
    with pytest.raises(InvalidInput, match="years 1 to 9999"):
        parse_time("--since", text, NOW)
