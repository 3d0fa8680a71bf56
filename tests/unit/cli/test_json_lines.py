"""JSON lines: the SDK's arguments in, deliveries out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given

from tests import strategies as some
from utuple.cli.verbs.json_lines import (
    data_of_text,
    decode_json,
    event_of_line,
    events_of_lines,
    line_of_delivery,
)
from utuple.errors import InvalidInput
from utuple.model.value import decode_data, encode_data

GOOD = {"subject": "truck", "type": "load", "address": "truck-17", "data": {"kg": 1200}}


def event(**changed: Any) -> dict[str, Any]:
    return event_of_line(orjson.dumps({**GOOD, **changed}), {})


def test_a_line_is_the_arguments_of_emit() -> None:
    full = event(position=[35.68, 139.76], time="2026-01-31T08:00:00Z", lifetime_s=60)
    assert full == {
        **GOOD,
        "position": (35.68, 139.76),
        "time": datetime(2026, 1, 31, 8, tzinfo=UTC),
        "lifetime_s": 60,
    }


def test_what_a_line_does_not_say_the_options_say() -> None:
    line = orjson.dumps({"address": "a", "data": {}, "type": "speed"})
    said = event_of_line(line, {"subject": "truck", "type": "load"})
    assert (said["subject"], said["type"]) == ("truck", "speed")


def test_null_is_as_good_as_unsaid() -> None:
    assert event(position=None, time=None, lifetime_s=None) == GOOD


@given(some.data)
def test_data_goes_in_and_out_unchanged(data: dict[str, Any]) -> None:
    line = orjson.dumps({"subject": "a", "type": "b", "address": "c"})[:-1]
    said = event_of_line(line + b',"data":' + encode_data(data) + b"}", {})
    assert encode_data(said["data"]) == encode_data(data)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"subject": ""}, "subject"),
        ({"type": 7}, "type"),
        ({"address": None}, "address"),
        ({"data": []}, "data"),
        ({"data": {"": 1}}, "data."),
        ({"position": [91, 0]}, "position.latitude"),
        ({"position": [1]}, "position"),
        ({"time": "2026-01-31"}, "time"),
        ({"time": "yesterday"}, "time"),
        ({"time": 17}, "time"),
        ({"lifetime_s": -1}, "lifetime_s"),
        ({"lifetime_s": "1h"}, "lifetime_s"),
        ({"kg": 5}, "kg"),
    ],
)
def test_a_bad_line_is_refused_by_field_value_and_rule(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        event(**changed)
    assert refused.value.field == field
    assert refused.value.rule


@pytest.mark.parametrize("line", [b"{", b"[]", b"17", b"\xff", b"null"])
def test_a_line_that_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        event_of_line(line, {})
    assert refused.value.field == "line"


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InvalidInput, match="address: None is refused: is missing"):
        event_of_line(b'{"subject":"a","type":"b","data":{}}', {})


@dataclass
class Delivered:
    id: UUID = field(default_factory=lambda: UUID(int=7))
    subject: str = "truck"
    type: str = "load"
    address: str = "truck-17"
    time: datetime = datetime(2026, 1, 31, 8, 0, 0, 5, tzinfo=UTC)
    position: tuple[float, float] | None = (35.68, 139.76)
    stored: bool = True
    data: dict[str, Any] = field(default_factory=dict)


def test_a_delivery_is_one_line() -> None:
    line = line_of_delivery(Delivered(data={"kg": 1, "raw": b"\x00\xff"}))
    assert orjson.loads(line) == {
        "id": "00000000-0000-0000-0000-000000000007",
        "subject": "truck",
        "type": "load",
        "address": "truck-17",
        "time": "2026-01-31T08:00:00.000005Z",
        "position": [35.68, 139.76],
        "stored": True,
        "data": {"kg": 1, "raw": {"$bytes": "AP8="}},
    }


@given(some.data)
def test_the_data_of_a_delivery_comes_back_from_its_line(data: dict[str, Any]) -> None:
    line = line_of_delivery(Delivered(data=data, position=None))
    assert b"\n" not in line
    assert encode_data(decode_data(line)["data"]) == encode_data(data)


def test_data_of_an_option_is_a_json_object() -> None:
    assert data_of_text('{"on": false, "raw": {"$bytes": "YQ=="}}') == {"on": False, "raw": b"a"}
    for wrong in ("on=false", "[]", "17", '{"a": {"$bytes": 1}}'):
        with pytest.raises(InvalidInput, match="--data"):
            data_of_text(wrong)


@pytest.mark.parametrize("number", [str(2**64), str(-(2**63) - 1), "1" + 200 * "0"])
def test_a_whole_number_that_does_not_fit_is_refused_and_not_changed(number: str) -> None:
    line = b'{"subject":"s","type":"t","address":"a","data":{"n":[%s]}}' % number.encode()
    with pytest.raises(InvalidInput, match="a whole number must lie in"):
        event_of_line(line, {})
    good = b'{"subject":"s","type":"t","address":"a","data":{"n":18446744073709551615}}'
    wrong, right = events_of_lines([line, good])
    assert isinstance(wrong, InvalidInput) and wrong.field == "data"
    assert isinstance(right, dict) and right["data"] == {"n": 2**64 - 1}


def test_many_digits_are_no_fault_where_they_fit() -> None:
    said = {"a": -(2**63), "b": 0.1234567890123456789012, "c": "1" * 50}
    assert decode_json(json.dumps(said).encode()) == said
