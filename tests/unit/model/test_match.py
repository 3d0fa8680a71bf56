"""`matches` against the naive version, with hits and near misses."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from tests import strategies as some
from tests.unit.model.naive import naive_matches, too_close_to_tell
from utuple.model.area import Box
from utuple.model.condition import ANY
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple

ID = bytes(16)
TRUCK = Family("truck", "load")


@given(some.utuples(), some.utuples())
def test_matches_is_what_the_naive_version_says(one: UTuple, other: UTuple) -> None:
    assume(not too_close_to_tell(one, other))
    assert matches(one, other) == naive_matches(one, other)


@given(st.data())
def test_matches_is_what_the_naive_version_says_of_events_and_templates_around_them(
    draw: st.DataObject,
) -> None:
    event = draw.draw(some.event_actuals())
    formal = draw.draw(some.formal_near(event))
    assume(not too_close_to_tell(event, formal))
    assert matches(event, formal) == naive_matches(event, formal)


@given(st.data())
def test_matches_is_what_the_naive_version_says_of_devices_and_commands_around_them(
    draw: st.DataObject,
) -> None:
    device = draw.draw(some.command_formals())
    command = draw.draw(some.command_near(device))
    assume(not too_close_to_tell(command, device))
    assert matches(command, device) == naive_matches(command, device)


@given(some.utuples(), some.utuples())
def test_only_events_meet_event_formals_and_only_commands_meet_devices(
    one: UTuple, other: UTuple
) -> None:
    if (one.kind, other.kind) not in ((Kind.EA, Kind.EF), (Kind.CA, Kind.CF)):
        assert not matches(one, other)


@given(some.event_actuals())
def test_the_empty_template_of_its_family_accepts_every_event(event: UTuple) -> None:
    assert matches(event, UTuple(ID, event.family, Template(), None, {}, 1.0))


@given(some.event_actuals(), some.families)
def test_another_family_never_matches(event: UTuple, family: Family) -> None:
    assume(family != event.family)
    assert not matches(event, UTuple(ID, family, Template(), None, {}, 1.0))


def test_an_event_without_a_position_meets_only_any_position() -> None:
    nowhere = UTuple(ID, TRUCK, Exact("a", 0), {}, None, 1.0)
    everywhere = Template(area=Box(-90, -180, 90, 180))
    assert not matches(nowhere, UTuple(ID, TRUCK, everywhere, None, {}, 1.0))
    assert matches(nowhere, UTuple(ID, TRUCK, Template(), None, {}, 1.0))


def test_a_time_range_is_half_open() -> None:
    def met(time_us: int) -> bool:
        return Template(since_us=10, until_us=20).accepts(Exact("a", time_us))

    assert [met(at) for at in (9, 10, 19, 20)] == [False, True, True, False]


def test_fields_the_template_does_not_name_are_ignored() -> None:
    event = UTuple(ID, TRUCK, Exact("a", 0), {"kg": 1, "driver": "x"}, None, 1.0)
    assert matches(event, UTuple(ID, TRUCK, Template(), None, {"kg": ANY}, 1.0))
    assert not matches(event, UTuple(ID, TRUCK, Template(), None, {"litres": ANY}, 1.0))
