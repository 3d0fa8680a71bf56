"""Filters match as MQTT 5, section 4.7 says, and the space is never asked for less than that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from utuple.doors.mqtt.__main__ import read_mapping
from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.mapped.mapping import Addresses, Command, Event, Family

MAPPING = read_mapping("")
levels = st.sampled_from(["a", "b", "", "$s", "cmd", "mqtt", "ab"])
topics = st.lists(levels, min_size=1, max_size=5).map("/".join).filter(bool)
filters = (
    st.tuples(st.lists(levels | st.just("+"), max_size=4), st.sampled_from([[], ["#"]]))
    .map(lambda parts: "/".join(parts[0] + parts[1]))
    .filter(names.is_filter)
)


@pytest.mark.parametrize(
    ("pattern", "topic", "does"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "a/b", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/monitor", False),
        ("+/monitor", "$SYS/monitor", False),
        ("$SYS/#", "$SYS/monitor", True),
        ("a/b", "a/b/c", False),
    ],
)
def test_a_filter_matches_as_the_standard_says(pattern: str, topic: str, does: bool) -> None:
    assert names.matches(pattern, topic) is does


@pytest.mark.parametrize("pattern", ["", "a#", "a/#/b", "#/a", "a+", "a/b+", "+a/b", "a/##"])
def test_what_is_no_filter_is_refused(pattern: str) -> None:
    assert not names.is_filter(pattern)


@given(filters, topics)
def test_the_fixed_prefix_begins_every_name_that_matches(pattern: str, topic: str) -> None:
    if names.matches(pattern, topic):
        assert topic.startswith(names.fixed_prefix(pattern))


def _asks(addresses: Addresses, address: str) -> bool:
    return address in addresses.some if addresses.some else address.startswith(addresses.prefix)


@given(filters, topics)
@example("a/b/#", "a/b")
@example("a/b/+", "a/b/")
@example("#", "a/b/c")
def test_whatever_a_filter_matches_the_space_is_asked_for(pattern: str, topic: str) -> None:
    place = MAPPING.place(topic)
    wanted = MAPPING.wanted(pattern)
    if wanted is None or not names.matches(pattern, topic):
        return
    if isinstance(place, Command):
        # Devices have exact names; filters with wildcards are for messages and events.
        assert wanted.device == place if not names.has_wildcard(pattern) else True
        return
    assert isinstance(place, Event)
    asked = [addresses for family, addresses in wanted.families if family == place.family]
    if wanted.several and (fitting := MAPPING.fits(pattern, place.family)) is not None:
        asked.append(fitting)
    assert any(_asks(addresses, place.address) for addresses in asked)


@given(topics)
def test_an_event_comes_out_under_the_name_it_came_in(topic: str) -> None:
    place = MAPPING.place(topic)
    if isinstance(place, Event):
        assert MAPPING.topic_of(*place.family, place.address) == topic


@pytest.mark.parametrize(
    ("topic", "family", "address"),
    [
        ("truck/load/truck-17", Family("truck", "load"), "truck-17"),
        ("truck/load/fleet/17", Family("truck", "load"), "fleet/17"),
        ("truck/load", Family("mqtt", "message"), "truck/load"),
        ("truck//x", Family("mqtt", "message"), "truck//x"),
        ("$SYS/a/b", Family("mqtt", "message"), "$SYS/a/b"),
        ("mqtt/session/x", Family("mqtt", "message"), "mqtt/session/x"),
        ("cmd/a/b", Family("mqtt", "message"), "cmd/a/b"),
    ],
)
def test_what_a_name_is(topic: str, family: Family, address: str) -> None:
    place = MAPPING.place(topic)
    assert isinstance(place, Event)
    assert (place.family, place.address) == (family, address)


def test_commands_have_a_prefix() -> None:
    assert MAPPING.place("cmd/aircon/power/room-101") == Command(
        Family("aircon", "power"), "room-101"
    )
    assert MAPPING.wanted("cmd/aircon/#") is None
