"""Where a uTuple goes: the table of docs/laws.md."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from utuple.client.routing.route import (
    Target,
    is_simple,
    lifetime_at,
    rendezvous,
    targets,
    untried,
)
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.past import Past
from utuple.model.area import Box
from utuple.model.condition import ANY, Equal, OneOf, Prefix, Range
from utuple.model.section import Section
from utuple.model.utuple import Family, Template, UTuple

LINE = Line(
    Section(0, 100),
    3,
    (
        Member("home", accumulatable=False),
        Member("a"),
        Member("b"),
        Member("x", False, True),
        Member("off", accumulatable=False),
    ),
)


def command(metadata: Template, lifetime_s: float = 0.0) -> UTuple:
    return UTuple(bytes(16), Family("aircon", "power"), metadata, {"on": True}, None, lifetime_s)


EF = UTuple(bytes(16), Family("truck", "load"), Template(), None, {}, 60.0, "r")
CA = command(Template())


def test_an_event_may_go_to_accumulatable_members_only() -> None:
    assert untried(LINE.accumulatable) == ("a", "b")
    assert untried(LINE.accumulatable, frozenset({"a"})) == ("b",)


def test_when_every_member_is_to_be_avoided_none_is() -> None:
    assert untried(LINE.accumulatable, frozenset({"a", "b"})) == ("a", "b")


def test_of_a_partitioned_line_an_ef_is_kept_where_it_overlaps_and_by_the_home_and_looked_for_elsewhere() -> (
    None
):
    cut = Layout((Axis("data.kg", (5,), (("h", "a"), ("h", "b"))),))
    members = (*map(Member, "hab"), Member("off", False))
    line = Line(Section(0, 100), 3, members, cut, (Past(NO_LAYOUT),))
    wanted = UTuple(
        bytes(16), Family("truck", "load"), Template(), None, {"kg": Range(7, None)}, 60.0, "r"
    )
    kept = {stop.member: stop.keeps for stop in targets(line, wanted)}
    assert kept == {"h": True, "a": False, "b": True, "off": False}
    everywhere = {stop.member: stop.keeps for stop in targets(line, CA)}
    assert everywhere == dict.fromkeys(kept, True)
    later = replace(line, past=(Past(NO_LAYOUT, (("off", 9),)),))
    assert targets(later, wanted) == (Target("h", True), Target("b", True), Target("off", False))
    assert targets(replace(line, past=()), wanted) == (Target("h", True), Target("b", True))


def test_an_ef_stops_at_every_serving_member_and_is_kept_by_those_that_are_on_and_by_the_home() -> (
    None
):
    assert targets(LINE, EF) == (
        Target("home", True),
        Target("a", True),
        Target("b", True),
        Target("off", False),
    )
    assert [lifetime_at(stop, 60.0) for stop in targets(LINE, EF)] == [60.0, 60.0, 60.0, 0.0]


def test_a_ca_stops_at_every_serving_member_and_is_kept_by_all() -> None:
    assert [stop.member for stop in targets(LINE, CA)] == ["home", "a", "b", "off"]
    assert {lifetime_at(stop, 60.0) for stop in targets(LINE, CA)} == {60.0}


@pytest.mark.parametrize(
    ("metadata", "lifetime_s", "simple"),
    [
        (Template(Equal("room-101")), 0.0, True),
        (Template(Equal("room-101")), 1.0, False),
        (Template(Equal("room-101"), since_us=1), 0.0, False),
        (Template(Equal("room-101"), until_us=1), 0.0, False),
        (Template(Equal("room-101"), area=Box(0, 0, 1, 1)), 0.0, False),
        (Template(OneOf(("room-101",))), 0.0, False),
        (Template(Prefix("room-")), 0.0, False),
        (Template(Range("a", "b")), 0.0, False),
        (Template(ANY), 0.0, False),
    ],
)
def test_a_command_is_simple_if_it_names_one_address_and_nothing_else(
    metadata: Template, lifetime_s: float, simple: bool
) -> None:
    assert is_simple(command(metadata, lifetime_s)) is simple


def test_an_event_formal_is_never_a_simple_command() -> None:
    wanted = UTuple(bytes(16), Family("a", "b"), Template(Equal("c")), None, {}, 0.0, "reader")
    assert not is_simple(wanted)


@given(strategies.ids, st.sets(strategies.names, min_size=2, max_size=6))
def test_when_a_name_goes_only_what_it_held_moves(what: bytes, names: set[str]) -> None:
    winner = rendezvous(what, sorted(names))
    for name in names - {winner}:
        assert rendezvous(what, sorted(names - {name})) == winner


@given(strategies.ids, st.permutations(["a", "b", "c", "d"]))
def test_the_order_of_names_does_not_matter(what: bytes, names: list[str]) -> None:
    assert rendezvous(what, names) == rendezvous(what, sorted(names))
