"""The matcher against `matches`, which is the truth, and the check of a batch's rows."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sca_server.commands import Commands, admit
from sca_server.index import Device, Index, Templates
from sca_server.matcher import match
from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.columns import lifetime_us
from utuple.model.condition import Equal, encode_where
from utuple.model.identity import uuid7
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.model.value import encode_data

POWER = Family("aircon", "power")
NOW_US = some.NOW_US


def device_of(formal: UTuple, templates: Templates) -> Device:
    assert isinstance(formal.metadata, Exact) and formal.where is not None
    return Device(
        formal.id,
        formal.family,
        formal.metadata.address,
        templates.of(encode_where(formal.where)),
        formal.reader or "",
        lifetime_us(formal.lifetime_s),
    )


def commands_of(actuals: Sequence[UTuple]) -> Commands:
    families = list(dict.fromkeys(actual.family for actual in actuals))
    addresses = []
    for actual in actuals:
        assert isinstance(actual.metadata, Template) and isinstance(actual.metadata.address, Equal)
        addresses.append(actual.metadata.address.value)
    return Commands(
        tuple(families),
        array("I", [families.index(actual.family) for actual in actuals]),
        b"".join(actual.id for actual in actuals),
        addresses,
        [encode_data(actual.data or {}) for actual in actuals],
    )


@st.composite
def simple_command_near(draw: st.DrawFn, formal: UTuple) -> UTuple:
    """To this device's address, mostly, with data its template mostly accepts."""
    near = draw(some.command_near(formal))
    assert isinstance(formal.metadata, Exact)
    address = draw(st.sampled_from([formal.metadata.address, "room-101"]))
    family = draw(st.sampled_from([formal.family, POWER]))
    return UTuple(near.id, family, Template(Equal(address)), near.data, None, 0.0)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[UTuple], list[UTuple]]:
    by_id = {formal.id: formal for formal in draw(st.lists(some.command_formals(), max_size=6))}
    formals = list(by_id.values())
    near = [simple_command_near(formal) for formal in formals]
    commands = draw(st.lists(st.one_of(near), max_size=8)) if near else []
    return formals, commands


@given(scenes(), st.sampled_from([0, 60_000_000, 10**15]))
def test_the_matcher_gives_exactly_the_pairs_that_match(
    scene: tuple[list[UTuple], list[UTuple]], later_us: int
) -> None:
    formals, commands = scene
    index, templates = Index(most=100, most_cancelled=10), Templates(3)
    for formal in formals:
        index.put(device_of(formal, templates), NOW_US)
    now_us = NOW_US + later_us
    rows, devices = match(index, commands_of(commands), now_us)
    found = [(row, device.id) for row, device in zip(rows, devices, strict=True)]
    expected = {
        (row, formal.id)
        for row, command in enumerate(commands)
        for formal in formals
        if matches(command, formal) and NOW_US + lifetime_us(formal.lifetime_s) > now_us
    }
    assert len(found) == len(expected) and set(found) == expected
    assert rows == sorted(rows)


def batch(*rows: tuple[str, bytes], id_: bytes = uuid7(NOW_US, 1)) -> Commands:
    return Commands(
        (POWER,),
        array("I", [0] * len(rows)),
        id_ * len(rows),
        [address for address, _ in rows],
        [payload for _, payload in rows],
    )


def test_devices_of_one_template_are_judged_by_each_commands_own_data() -> None:
    index, templates = Index(most=100, most_cancelled=10), Templates(10)
    for number, asked in enumerate([b'{"on":["equal",true]}', b'{"on":["equal",false]}'] * 2):
        template = templates.of(asked)
        index.put(Device(bytes([number]) * 16, POWER, f"room-{number}", template, "r", 1), NOW_US)
    rooms = [f"room-{number}" for number in range(4)]
    said = [(room, b'{"on":true}') for room in rooms] + [(room, b'{"on":false}') for room in rooms]
    rows, devices = match(index, batch(*said), NOW_US)
    assert rows == [0, 2, 5, 7]
    assert [device.address for device in devices] == ["room-0", "room-2", "room-1", "room-3"]


def test_templates_that_ask_the_same_are_one_object() -> None:
    templates = Templates(100)
    spaced = templates.of(b'{"a": ["any"], "b": ["equal", 1]}')
    other_order = templates.of(b'{"b":["equal",1],"a":["any"]}')
    assert spaced is other_order
    assert templates.of(b"{}").where is None, "an empty template needs no look at the data"


def test_the_store_of_templates_is_bounded() -> None:
    templates = Templates(4)
    for number in range(20):
        templates.of(b'{"a":["equal",%d]}' % number)
    assert len(templates._known) <= 4


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b'{"a":[]}',
        b'{"a":["no such"]}',
        b'{"a":[[1]]}',
        b'{"a":["range",2,1]}',
        b'{"a":["equal",' + b"[" * 1010 + b"]" * 1010 + b"]}",
    ],
)
def test_a_template_that_cannot_be_read_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidInput):
        Templates(10).of(payload)


DEEP = b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"
TOO_LARGE = b'{"a":"' + b"x" * (1 << 20) + b'"}'


@pytest.mark.parametrize(
    ("address", "payload", "field"),
    [
        ("", b"{}", "address"),
        ("a\x00", b"{}", "address"),
        ("a" * 1025, b"{}", "address"),
        ("room-1", b"", "data"),
        ("room-1", b"not json", "data"),
        ("room-1", b"[1]", "data"),
        ("room-1", b'{"":1}', "data."),
        ("room-1", TOO_LARGE, "data"),
        ("room-1", DEEP, "data.a" + "[0]" * 31),
    ],
)
def test_a_bad_row_is_refused_by_its_index_and_the_rest_goes_on(
    address: str, payload: bytes, field: str
) -> None:
    good, places, wrong = admit(batch(("room-1", b"{}"), (address, payload), ("room-2", b"{}")))
    assert [(row, error.field) for row, error in wrong] == [(1, field)]
    assert list(places) == [0, 2]
    assert list(good.addresses) == ["room-1", "room-2"] and len(good.ids) == 32


def test_data_is_brought_to_its_one_encoding() -> None:
    good, places, wrong = admit(batch(("room-1", b' {"on" : false } ')))
    assert (list(good.payloads), list(places), wrong) == ([b'{"on":false}'], [0], [])


def test_an_id_without_a_time_is_refused_because_the_device_is_told_it() -> None:
    _, _, wrong = admit(batch(("room-1", b"{}"), id_=b"\xff" * 16))
    assert [(row, error.field) for row, error in wrong] == [(0, "id")]
