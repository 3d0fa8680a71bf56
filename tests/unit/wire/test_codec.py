"""The codec: what the protocol can express goes through unchanged, the rest is refused and named."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st
from orjson import dumps

from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.columns import columns_of, lifetime_us
from utuple.model.packed import Packed, checked_utuple, packed
from utuple.model.utuple import Family, Kind, UTuple
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import (
    columns_from_wire,
    columns_to_wire,
    family_from_wire,
    pack,
    template_from_wire,
    templates_from_wire,
    templates_to_wire,
    unpack,
)

events = st.lists(some.event_actuals(), max_size=5)
devices = st.lists(some.command_formals(), max_size=5)
formals_and_commands = st.one_of(some.event_formals(), some.command_actuals())
UNKNOWN = b"\x92\x3f\x01\x01"
"""Field 1010, one byte long: no message of ours has it."""


def over_the_wire(message: Any) -> Any:
    return type(message).FromString(message.SerializeToString())


# --- what goes through


@given(events)
def test_events_go_through_unchanged(rows: list[UTuple]) -> None:
    columns, _ = columns_from_wire(over_the_wire(columns_to_wire(columns_of(rows))))
    assert [columns.utuple_at(row) for row in range(len(columns))] == rows


@given(devices)
def test_devices_go_through_unchanged(rows: list[UTuple]) -> None:
    columns, _ = columns_from_wire(over_the_wire(columns_to_wire(columns_of(rows))))
    assert [columns.utuple_at(row, Kind.CF) for row in range(len(columns))] == rows


@given(events, st.integers(1, 2**64 - 1))
def test_every_family_carries_the_epoch_it_was_routed_by(rows: list[UTuple], first: int) -> None:
    sent = columns_of(rows)
    epochs = {family: max(1, first - at) for at, family in enumerate(sent.families)}
    _, heard = columns_from_wire(over_the_wire(columns_to_wire(sent, epochs)))
    assert heard == epochs


@given(formals_and_commands)
def test_formals_and_commands_go_through_unchanged(utuple: UTuple) -> None:
    half, _ = template_from_wire(over_the_wire(templates_to_wire([packed(utuple)])))
    came = checked_utuple(half)
    assert came == utuple
    assert repr(sorted((came.where or {}).items())) == repr(sorted((utuple.where or {}).items()))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_packed_columns_are_little_endian_and_come_back(numbers: list[int]) -> None:
    packed = pack(array("q", numbers))
    assert packed == b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)
    assert unpack("q", packed, len(numbers), "times_us").tolist() == numbers


def test_what_all_rows_share_is_sent_once() -> None:
    event = UTuple(bytes(16), Family("a", "b"), some_exact(), {}, None, 60.0)
    message = columns_to_wire(columns_of([event] * 3))
    assert len(message.lifetimes_us) == 8
    assert not message.family and not message.lats and not message.lons


def some_exact() -> Any:
    from utuple.model.utuple import Exact

    return Exact("a", 0)


@given(some.lifetimes_s)
def test_lifetimes_are_whole_microseconds(lifetime_s: float) -> None:
    assert lifetime_us(lifetime_s) / 1_000_000 == lifetime_s


# --- what is refused


def columns(**changed: Any) -> pb.Columns:
    """Two good rows, but for what is changed."""
    parts: dict[str, Any] = {
        "families": [pb.Family(subject="truck", type="load", epoch=1)],
        "ids": bytes(32),
        "times_us": pack(array("q", [1, 2])),
        "lifetimes_us": pack(array("q", [1_000_000])),
        "addresses": ["a", "b"],
        "payloads": [b"{}", b"{}"],
    }
    return pb.Columns(**{**parts, **changed})


def test_the_columns_the_refusals_below_start_from_are_good() -> None:
    assert len(columns_from_wire(columns())[0]) == 2


BAD_COLUMNS: list[tuple[dict[str, Any], str]] = [
    ({"ids": bytes(31)}, "ids"),
    ({"families": []}, "families"),
    ({"families": [pb.Family(subject="", type="load")]}, "subject"),
    ({"families": [pb.Family(subject="truck", type="")]}, "type"),
    ({"families": [pb.Family(subject="\x00", type="load")]}, "subject"),
    ({"families": [pb.Family(subject="x" * 2000, type="load")]}, "subject"),
    ({"family": pack(array("I", [0, 1]))}, "family"),
    ({"family": bytes(4)}, "family"),
    ({"times_us": b""}, "times_us"),
    ({"times_us": bytes(15)}, "times_us"),
    ({"lats": bytes(8)}, "lats"),
    ({"lons": bytes(24)}, "lons"),
    ({"lifetimes_us": b""}, "lifetimes_us"),
    ({"lifetimes_us": bytes(24)}, "lifetimes_us"),
    ({"addresses": ["a"]}, "addresses"),
    ({"addresses": ["a", "b", "c"]}, "addresses"),
    ({"payloads": []}, "payloads"),
    ({"readers": ["r", "s", "t"]}, "readers"),
]


@pytest.mark.parametrize(("changed", "field"), BAD_COLUMNS)
def test_columns_of_a_wrong_shape_are_refused_by_field_value_and_rule(
    changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        columns_from_wire(columns(**changed))
    assert refused.value.field == field
    assert refused.value.rule


def template(kind: Kind = Kind.CA, place: dict[str, Any] | None = None, **changed: Any) -> Packed:
    """A good CA, but for what is changed; `place` is of its metadata."""
    anywhere = {"address": ["any"], "since_us": None, "until_us": None, "area": None}
    parts: dict[str, Any] = {
        "id": bytes(16),
        "family": Family("truck", "load"),
        "kind": kind,
        "metadata": dumps(anywhere | (place or {})),
        "payload": b"{}",
        "lifetime_s": 1.0,
        "reader": "",
    }
    return Packed(**{**parts, **changed})


def ef(where: bytes) -> Packed:
    return template(Kind.EF, payload=where)


def box(south: float = 0, west: float = 0, north: float = 0, east: float = 0) -> Packed:
    return template(place={"area": ["box", south, west, north, east]})


def circle(lat: object = 0, radius_m: object = 1) -> Packed:
    return template(place={"area": ["circle", lat, 0, radius_m]})


BAD_TEMPLATES: list[tuple[Callable[[], Packed], str]] = [
    (lambda: template(lifetime_s=-1.0), "lifetime_s"),
    (lambda: template(lifetime_s=2.0**63), "lifetime_s"),
    (lambda: template(lifetime_s=float("nan")), "lifetime_s"),
    (lambda: template(reader="\x00"), "reader"),
    (lambda: template(payload=b"\xff"), "data"),
    (lambda: template(payload=b"[]"), "data"),
    (lambda: template(payload=b'{"a":"' + b"x" * (2 << 20) + b'"}'), "data"),
    (lambda: ef(b"{"), "where"),
    (lambda: ef(b'{"kg": ["range", 2, 1]}'), "where.kg.range"),
    (lambda: ef(b'{"kg": ["one_of"]}'), "where.kg.one_of"),
    (lambda: ef(b'{"kg": [["equal"], 1]}'), "where.kg"),
    (lambda: ef(b" " * (2 << 20)), "where"),
    (lambda: template(metadata=b"{}"), "metadata"),
    (lambda: template(place={"colour": 1}), "metadata"),
    (lambda: template(place={"address": ["equal", ""]}), "address"),
    (lambda: template(place={"address": ["one_of"]}), "address.one_of"),
    (lambda: template(place={"address": ["one_of", "a", ""]}), "address"),
    (lambda: template(place={"address": ["range", None, None]}), "address.range"),
    (lambda: template(place={"address": ["range", "b", "a"]}), "address.range"),
    (lambda: template(place={"since_us": 2, "until_us": 2}), "until"),
    (lambda: template(place={"since_us": 2**62}), "since"),
    (lambda: template(place={"area": ["square", 1]}), "area"),
    (lambda: box(south=91, north=91), "area.south"),
    (lambda: box(south=2, north=1), "area"),
    (lambda: circle(lat=91), "area.lat"),
    (lambda: circle(radius_m=-1), "area.radius_m"),
]


@pytest.mark.parametrize(("build", "field"), BAD_TEMPLATES)
def test_a_template_that_breaks_a_rule_is_refused_by_field_value_and_rule(
    build: Callable[[], Packed], field: str
) -> None:
    half, _ = template_from_wire(over_the_wire(templates_to_wire([build()])))
    with pytest.raises(InvalidInput) as refused:
        checked_utuple(half)
    assert refused.value.field == field
    assert refused.value.rule


@pytest.mark.parametrize("count", [0, 2])
def test_a_call_for_one_template_takes_no_other_number(count: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        template_from_wire(templates_to_wire([template()] * count))
    assert refused.value.field == "template"


def with_unknown(message: Message) -> Any:
    return type(message).FromString(message.SerializeToString() + UNKNOWN)


FAMILY = pb.Family(subject="truck", type="load")
UNKNOWNS: list[Callable[[], object]] = [
    lambda: columns_from_wire(with_unknown(columns())),
    lambda: columns_from_wire(columns(families=[with_unknown(FAMILY)])),
    lambda: family_from_wire(with_unknown(FAMILY)),
    lambda: templates_from_wire(with_unknown(templates_to_wire([template()]))),
    lambda: template_from_wire(with_unknown(templates_to_wire([template()]))),
]


@pytest.mark.parametrize("read", UNKNOWNS)
def test_a_field_of_a_newer_protocol_is_refused_wherever_it_is(read: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        read()
    assert "1010" in str(refused.value)


def test_text_that_is_no_utf_8_does_not_get_past_the_parser() -> None:
    with pytest.raises(DecodeError):
        pb.Family.FromString(b"\x0a\x01\xff")


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused_and_nothing_else(raw: bytes) -> None:
    readers: list[Callable[[bytes], object]] = [
        lambda raw: columns_from_wire(pb.Columns.FromString(raw)),
        lambda raw: checked_utuple(template_from_wire(pb.Templates.FromString(raw))[0]),
    ]
    for read in readers:
        try:
            read(raw)
        except DecodeError:
            pass
        except InvalidInput as refused:
            assert refused.field and refused.rule


@given(formals_and_commands, st.data())
def test_a_spoilt_message_is_read_or_refused_and_nothing_else(
    utuple: UTuple, draw: st.DataObject
) -> None:
    raw = bytearray(templates_to_wire([packed(utuple)]).SerializeToString())
    at = draw.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= draw.draw(st.integers(1, 255))
    try:
        checked_utuple(template_from_wire(pb.Templates.FromString(bytes(raw)))[0])
    except DecodeError:
        pass
    except InvalidInput as refused:
        assert refused.field and refused.rule
