"""The mapping file: what it may say, and payloads that come out as they came in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.doors.mqtt.__main__ import bridge_of, parser, read_mapping
from utuple.doors.mqtt.codec.packets import Property, Publish
from utuple.doors.mqtt.codec.reading import frame, read
from utuple.doors.mqtt.codec.writing import write
from utuple.doors.mqtt.config import Rule
from utuple.doors.mqtt.mapped.identity import (
    Form,
    IdClock,
    Marks,
    event_id,
    made_ms,
    marks_of,
    tag_of,
    tag_of_id,
)
from utuple.doors.mqtt.mapped.mapping import Event, MappingError
from utuple.doors.mqtt.mapped.payload import (
    content_of,
    form_of,
    is_expired,
    payload_of,
    position_of,
    properties_of,
    time_of,
    with_form,
    with_properties,
)
from utuple.doors.starting import place

MAPPING = read_mapping("")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[events]\nlifetimes = 3",
            "events.lifetimes: no such key; the nearest is events.lifetime_s",
        ),
        ("unmaped = 'carry'", "unmaped: no such key; the nearest is unmapped"),
        ("unmapped = 'drop'", 'must be "carry" or "refuse"'),
        ("[events]\nlifetime_s = 'x'", "events.lifetime_s: 'x' must be a number"),
        ("[events]\nlifetime_s = -1", "events.lifetime_s: -1 must be above 0"),
        ("[events]\nlifetime_s = nan", "events.lifetime_s: nan must be above 0"),
        ("[events]\nfamilies = ['truck']", "events.families: 'truck' must be SUBJECT/TYPE"),
        ("[commands]\nprefix = 'a/b'", "commands.prefix: 'a/b' must be one level"),
        ("[[", "mapping.toml: Invalid"),
    ],
)
def test_a_mapping_file_that_is_wrong_is_refused_by_name(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "mapping.toml"
    file.write_text(text)
    with pytest.raises(MappingError) as caught:
        read_mapping(str(file))
    assert said in str(caught.value)


def test_a_mapping_file_changes_only_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "mapping.toml"
    file.write_text("unmapped = 'refuse'\n[events]\nfamilies = ['truck/load']")
    mapping = read_mapping(str(file))
    assert isinstance(mapping.place("truck/load/17"), Event)
    assert mapping.place("truck/speed/17") is None
    assert mapping.fields_latitude == "lat"


@pytest.mark.parametrize(
    "text", ["0.0.0.0:1883", "example.org:1883", "127.0.0.1", "127.0.0.1:99999"]
)
def test_an_unsecured_door_listens_on_loopback_only(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be|loopback"):
        place(text)


PAYLOADS = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=10).map(str.encode),
    st.sampled_from(
        [
            b"21.5",
            b"21.50",
            b"1e3",
            b'{"kg": 1200}',
            b'{"kg":1200}',
            b'{ "kg" : 1 }',
            b'{"value":3}',
            b"null",
            b"[1, 2]",
        ]
    ),
    st.sampled_from(
        [b'{"$mqtt":1}', b'{"a":{"b":[1,null]}}', b'{"a":1,"a":2}', b'"text"', b"", b"NaN", b"\xff"]
    ),
)


@given(PAYLOADS, st.booleans())
def test_a_payload_comes_out_as_it_came_in(payload: bytes, as_json: bool) -> None:
    content = content_of(payload, MAPPING, as_json=as_json)
    assert payload_of(content.data, content.form, MAPPING) == payload
    told = with_form(content.data, content.form)
    assert payload_of(told, form_of(told, MAPPING) or Form.OBJECT, MAPPING) == payload


def test_a_json_object_is_the_data_and_any_other_payload_a_value() -> None:
    assert content_of(b'{"kg": 1200}', MAPPING, as_json=True).data == {"kg": 1200}
    assert content_of(b"21.5", MAPPING, as_json=True).data == {"value": 21.5}
    assert content_of(b"on", MAPPING, as_json=True).data == {"value": "on"}
    assert content_of(b"\xff", MAPPING, as_json=True).data == {"value": b"\xff"}
    assert content_of(b"21.5", MAPPING, as_json=False).data == {"value": "21.5"}


def test_what_is_beside_a_payload_travels_with_it_and_the_expiry_is_what_is_left() -> None:
    said = {Property.CONTENT_TYPE: "x", Property.USER_PROPERTY: (("a", "2"), ("a", "3"))}
    data = with_properties({"kg": 1}, said, 106.0)
    assert properties_of(data, 100.5) == {**said, Property.MESSAGE_EXPIRY_INTERVAL: 6}
    assert payload_of(data, Form.OBJECT, MAPPING) == b'{"kg":1}'


def test_position_and_time_come_from_fields_or_user_properties() -> None:
    assert position_of({"lat": 35.5, "lon": 139}, {}, MAPPING) == (35.5, 139.0)
    assert position_of({"lat": 91, "lon": 139}, {}, MAPPING) is None
    assert position_of({"lat": True, "lon": 139}, {}, MAPPING) is None
    pairs = (("lat", "1"), ("lon", "2"), ("time", "2026-01-31T08:00:00Z"))
    said = {Property.USER_PROPERTY: pairs}
    assert position_of({}, said, MAPPING) == (1.0, 2.0)
    assert time_of({}, said, MAPPING) == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert time_of({"time": 5}, {}, MAPPING) is None


@given(st.integers(0, 2), st.booleans(), st.sampled_from(Form), st.integers(0, 2**48 - 1))
def test_an_id_carries_what_mqtt_knows(qos: int, retain: bool, form: Form, ms: int) -> None:
    tag = tag_of("client", 7, qos, "a/b/c", b"x")
    made = event_id(ms, Marks(qos, retain, form), tag)
    assert (marks_of(made), made_ms(made), tag_of_id(made)) == (Marks(qos, retain, form), ms, tag)
    assert made.version == 8


def test_ids_of_the_sdk_carry_nothing_of_mqtt() -> None:
    assert marks_of(UUID("01890a5d-ac96-774b-bcce-b302099a8057")) is None


def test_the_tag_tells_clients_packet_identifiers_and_contents_apart() -> None:
    tags = {
        tag_of("c", 1, 1, "t", b"x"),
        tag_of("d", 1, 1, "t", b"x"),
        tag_of("c", 2, 1, "t", b"x"),
        tag_of("c", 1, 1, "tx", b""),
        tag_of("c", 1, 1, "t", b"y"),
    }
    assert len(tags) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        ["--bridge-in", "a/#"],
        ["--bridge", "mqtt://x"],
        ["--bridge", "http://x", "--bridge-in", "a/#"],
        ["--bridge", "mqtt://x", "--bridge-in", "a/#/b"],
        ["--bridge", "mqtt://x", "--bridge-out", "a/#=b/+/"],
        ["--bridge", "mqtt://x", "--bridge-out", "$share/g/a"],
    ],
)
def test_a_bridge_that_cannot_be_is_refused(wrong: list[str]) -> None:
    with pytest.raises(ValueError, match=r"bridge|must be|prefix"):
        bridge_of(parser().parse_args(wrong))


def test_a_bridge_has_rules_for_names() -> None:
    asked = ["--bridge", "mqtts://me:secret@broker.example", "--bridge-in", "f/#=site-1/"]
    bridge = bridge_of(parser().parse_args(asked))
    assert bridge is not None
    assert (bridge.host, bridge.port, bridge.tls, bridge.user) == (
        "broker.example",
        8883,
        True,
        "me",
    )
    assert bridge.inward == (Rule("f/#", "site-1/"),)
    assert bridge_of(parser().parse_args([])) is None


@given(
    st.dictionaries(
        st.sampled_from(
            "format content_type response_topic correlation_data user expires_s form payload".split()
        ),
        st.one_of(
            st.none(),
            st.integers(-5, 2**70),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3),
            st.sampled_from(["#", "a/+"]),
            st.binary(max_size=3),
            st.lists(st.integers()),
        ),
    )
)
def test_whatever_a_program_writes_beside_its_data_can_be_delivered(beside: dict[str, Any]) -> None:
    data = {"kg": 1, "$mqtt": beside}
    properties = properties_of(data, 100.0)
    packet = Publish("t", payload_of(data, form_of(data, MAPPING), MAPPING), properties=properties)
    said = write(packet, 5)
    found = frame(said, 0, 1 << 20)
    assert found is not None and isinstance(read(said[0], said[found[0] :], 5), Publish)
    is_expired(data, 100.0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_a_subscription_begins_after_what_was_published_before_it(
    steps: list[tuple[bool, int]],
) -> None:
    clock, made, begun = IdClock(), [0], [0]
    for is_event, now_ms in steps:
        if is_event:
            made.append(clock.of_event(now_ms))
            assert made[-1] >= max(begun)
        else:
            begun.append(clock.of_subscription(now_ms))
            assert begun[-1] > max(made)
