"""A layout: each candidate of an EA finds all its matches by itself (paper 002, section III-A)."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import SERVERS, event_actuals, event_formals, formal_near, layouts
from utuple.cluster.layout import MAX_AXES, NO_LAYOUT, Axis, Candidate, Layout
from utuple.errors import InvalidInput
from utuple.model.area import Area, Box, Circle
from utuple.model.condition import DataCondition, Equal, OneOf, Prefix, Range, TypeIs
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple

FAMILY = Family("truck", "load")
BY_LON = Axis("lon", (0.0,), (("west",), ("east",)))


def event(address: str = "t", position: tuple[float, float] | None = None, **data: Any) -> UTuple:
    return UTuple(bytes(16), FAMILY, Exact(address, 0, position), data, None, 60.0)


def formal(template: Template | None = None, **where: DataCondition) -> UTuple:
    return UTuple(bytes(16), FAMILY, template or Template(), None, where, 60.0, "reader")


def in_area(area: Area) -> UTuple:
    return formal(Template(area=area))


@given(layouts(), st.data())
def test_every_candidate_alone_finds_every_match(layout: Layout, drawn: st.DataObject) -> None:
    ea = drawn.draw(event_actuals(st.just(FAMILY)))
    efs = drawn.draw(
        st.lists(st.one_of(formal_near(ea), event_formals(st.just(FAMILY))), min_size=1, max_size=4)
    )
    candidates = layout.candidates(ea)
    assert {candidate.axis for candidate in candidates} == set(range(len(layout.axes)))
    for ef in efs:
        if matches(ea, ef):
            for member, axis in candidates:
                assert layout.keeps(member, axis, ef)
                assert member in layout.keepers(ef)


@given(layouts(), event_actuals())
def test_a_member_admits_by_an_axis_what_it_is_a_candidate_for(layout: Layout, ea: UTuple) -> None:
    admitted = {
        Candidate(member, axis)
        for member in SERVERS
        for axis in range(-1, len(layout.axes) + 1)
        if layout.admits(member, axis, ea)
    }
    assert admitted == set(layout.candidates(ea))


@given(event_actuals(), event_formals())
def test_one_segment_owned_by_all_is_help(ea: UTuple, ef: UTuple) -> None:
    layout = Layout((Axis("lat", (), (SERVERS,)),))
    assert {member for member, _ in layout.candidates(ea)} == set(SERVERS)
    assert layout.keepers(ef) == set(SERVERS)


def test_no_axes_name_nobody() -> None:
    assert NO_LAYOUT.candidates(event()) == ()
    assert NO_LAYOUT.keepers(formal()) == frozenset()
    assert not NO_LAYOUT.admits("s1", 0, event())


@pytest.mark.parametrize(
    ("area", "keepers"),
    [
        (Box(0, -20, 10, -10), {"west"}),
        (Box(0, -20, 10, 0), {"west", "east"}),  # closed: the edge is in
        (Box(0, 0, 10, 20), {"east"}),
        (Box(0, 170, 10, -170), {"east", "west"}),  # across the antimeridian
        (Circle(0, 90, 1000), {"east"}),
        (Circle(89.99, 90, 5000), {"east", "west"}),  # over the pole every longitude
    ],
)
def test_an_area_is_kept_where_it_lies(area: Area, keepers: set[str]) -> None:
    assert Layout((BY_LON,)).keepers(in_area(area)) == keepers


@pytest.mark.parametrize(
    ("asked", "keepers"),
    [
        (Range(5, None), {"high"}),
        (Range(None, 5), {"low"}),  # half-open: 5 itself is not asked for
        (Equal(5.0), {"high"}),
        (OneOf((1, 9)), {"low", "high"}),
        (OneOf((1, "text")), {"low", "high"}),  # a text lies in no segment
        (Equal("text"), {"low", "high"}),
        (TypeIs("number"), {"low", "high"}),
        (Range("a", "b"), {"low", "high"}),
    ],
)
def test_numbers_are_cut_and_everything_else_is_kept_everywhere(
    asked: DataCondition, keepers: set[str]
) -> None:
    layout = Layout((Axis("data.kg", (5,), (("low",), ("high",))),))
    assert layout.keepers(formal(kg=asked)) == keepers


def test_whole_numbers_beyond_2_to_the_53_are_cut_exactly() -> None:
    cut = 2**53 + 1
    layout = Layout((Axis("data.kg", (cut,), (("low",), ("high",))),))
    assert layout.candidates(event(kg=cut)) == (Candidate("high", 0),)
    assert layout.candidates(event(kg=cut - 1)) == (Candidate("low", 0),)
    assert layout.keepers(formal(kg=Equal(cut))) == {"high"}


def test_addresses_are_cut_in_code_point_order() -> None:
    layout = Layout((Axis("address", ("m",), (("low",), ("high",))),))
    assert layout.keepers(formal(Template(Prefix("l")))) == {"low"}
    assert layout.keepers(formal(Template(Prefix("m")))) == {"high"}
    assert layout.keepers(formal(Template(Equal("m")))) == {"high"}
    assert layout.candidates(event("truck")) == (Candidate("high", 0),)


@pytest.mark.parametrize("missing", [{}, {"kg": "heavy"}, {"kg": True}, {"kg": None}])
def test_a_value_that_is_missing_may_go_to_any_owner_of_the_axis(missing: dict[str, Any]) -> None:
    layout = Layout((Axis("data.kg", (5,), (("low", "spare"), ("high",))),))
    assert {member for member, _ in layout.candidates(event(**missing))} == {"low", "spare", "high"}


@pytest.mark.parametrize(
    ("dimension", "cuts", "owners", "field"),
    [
        ("speed", (), (("a",),), "dimension"),
        ("data.", (), (("a",),), "dimension"),
        ("lat", (nan,), (("a",), ("b",)), "bound"),
        ("lat", (inf,), (("a",), ("b",)), "bound"),
        ("lat", ("5",), (("a",), ("b",)), "bound"),
        ("lat", (True,), (("a",), ("b",)), "bound"),
        ("address", (5,), (("a",), ("b",)), "bound"),
        ("lat", (2, 1), (("a",), ("b",), ("c",)), "bounds"),
        ("lat", (1, 1.0), (("a",), ("b",), ("c",)), "bounds"),
        ("lat", (1,), (("a",),), "owners"),  # a gap
        ("lat", (1,), (("a",), ("b",), ("c",)), "owners"),  # an overlap
        ("lat", (1,), (("a",), ()), "owners"),
        ("lat", (1,), (("a",), ("b", "b")), "owners"),
        ("lat", tuple(range(2000)), (("a",),) * 2001, "bounds"),
    ],
)
def test_an_axis_that_is_wrong_is_refused_as_a_whole(
    dimension: str, cuts: Any, owners: Any, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        Axis(dimension, cuts, owners)
    assert refused.value.field == field


def test_a_layout_cuts_each_dimension_once_and_not_too_many() -> None:
    with pytest.raises(InvalidInput, match="once"):
        Layout((BY_LON, BY_LON))
    with pytest.raises(InvalidInput, match="at most"):
        Layout(tuple(Axis(f"data.f{at}", (), (("a",),)) for at in range(MAX_AXES + 1)))
