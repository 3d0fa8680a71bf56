"""Data: one encoding, refused with the part that is wrong, unchanged when it comes back."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from tests.unit.model.naive import canonical
from utuple.errors import InvalidInput
from utuple.model.limits import MAX_DATA_BYTES, MAX_DEPTH, MAX_NAME_BYTES
from utuple.model.value import (
    Value,
    are_plainly_right,
    check_name,
    check_value,
    decode_data,
    encode_data,
    normal_data,
    number_key,
    same,
    value_key,
)


@given(some.data)
def test_data_comes_back_from_its_encoding(data: dict[str, Value]) -> None:
    assert canonical(decode_data(encode_data(data))) == canonical(data)


@given(some.data)
def test_bringing_to_the_one_encoding_changes_nothing_that_has_it(data: dict[str, Value]) -> None:
    encoded = encode_data(data)
    assert normal_data(encoded) == encoded


@given(some.values, some.values)
def test_values_are_the_same_when_the_naive_version_says_so(left: Value, right: Value) -> None:
    assert same(left, right) == (canonical(left) == canonical(right)) == same(right, left)


@given(some.values, some.values)
def test_values_have_equal_keys_exactly_when_they_are_the_same(left: Value, right: Value) -> None:
    assert (value_key(left) == value_key(right)) == same(left, right)


@given(some.values)
def test_what_is_right_is_seen_at_one_look(value: Value) -> None:
    assert are_plainly_right([value])


@given(some.numbers, some.numbers)
def test_numbers_are_ordered_by_the_decimals_json_writes(left: float, right: float) -> None:
    naive_left, naive_right = canonical(left)[1], canonical(right)[1]
    assert (number_key(left) < number_key(right)) == (naive_left < naive_right)
    assert (number_key(left) == number_key(right)) == (naive_left == naive_right)


def nested(depth: int) -> Value:
    value: Value = 1
    for _ in range(depth):
        value = [value]
    return value


BAD: list[tuple[Any, str]] = [
    ({"kg": float("nan")}, "data.kg"),
    ({"kg": float("inf")}, "data.kg"),
    ({"kg": [1, -float("inf")]}, "data.kg[1]"),
    ({"kg": 2**64}, "data.kg"),
    ({"kg": -(2**63) - 1}, "data.kg"),
    ({"a": {"b": [1, {"c": object()}]}}, "data.a.b[1].c"),
    ({"at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}, "data.at"),
    ({"": 1}, "data."),
    ({1: 1}, "data.1"),
    ({"a": {"": 1}}, "data.a."),
    ({"$bytes": "YQ=="}, "data.$bytes"),
    ({"a": {"$bytes": "YQ=="}}, "data.a.$bytes"),
    ({"a": "\x00"}, "data.a"),
    ({"a\x00": 1}, r"data.a\x00"),
    ({"a": "\ud800"}, "data.a"),
    ({"a": {1, 2}}, "data.a"),
    ({"a": nested(MAX_DEPTH)}, "data.a" + "[0]" * (MAX_DEPTH - 1)),
    ([1], "data"),
    ("text", "data"),
    (None, "data"),
    ({"a": "x" * (2 << 20)}, "data"),
]


@pytest.mark.parametrize(("data", "field"), BAD, ids=lambda part: repr(part)[:30])
def test_data_that_cannot_be_carried_is_refused_by_its_part(data: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        encode_data(data)
    assert refused.value.field == field
    assert refused.value.rule
    assert len(str(refused.value)) < 600, "a big value is shown short"


BAD_BYTES = [
    b"",
    b"\xff\xfe",
    b'{"a": "\xff"}',
    b"{",
    b"[1]",
    b"null",
    b'{"a": NaN}',
    b'{"a": 1e999}',
    b'{"": 1}',
    b'{"a": "\\u0000"}',
    b'{"a": {"$bytes": "not base64!"}}',
    b'{"a": {"$bytes": "YQ==", "b": 1}}',
    b'{"a": {"$bytes": 1}}',
    b'{"$bytes": "YQ=="}',
    b'{"a": "' + b"x" * MAX_DATA_BYTES + b'"}',
    b'{"a": ' + b"[" * 2000 + b"]" * 2000 + b"}",
]


@pytest.mark.parametrize("encoded", BAD_BYTES, ids=lambda encoded: repr(encoded[:30]))
def test_bytes_from_the_wire_that_are_no_data_are_refused_and_named(encoded: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        normal_data(encoded)
    assert refused.value.field.startswith("data")
    assert refused.value.rule


def test_spaces_and_the_order_of_digits_go_when_data_is_brought_to_the_one_encoding() -> None:
    assert normal_data(b'{ "a" : 1.50, "b": [ ] }') == b'{"a":1.5,"b":[]}'


def test_the_largest_payload_goes_through_and_one_byte_more_does_not() -> None:
    room = MAX_DATA_BYTES - len(b'{"a":""}')
    assert len(encode_data({"a": "x" * room})) == MAX_DATA_BYTES
    with pytest.raises(InvalidInput):
        encode_data({"a": "x" * (room + 1)})


@given(some.names)
def test_a_name_passes(name: str) -> None:
    assert check_name("subject", name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "\x00",
        "a\x00",
        "\ud800",
        "x" * (MAX_NAME_BYTES + 1),
        "é" * MAX_NAME_BYTES,
        None,
        7,
        b"a",
    ],
)
def test_a_bad_name_is_refused_by_its_field(name: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_name("subject", name)
    assert refused.value.field == "subject"


@given(st.recursive(some.scalars, lambda inner: st.lists(inner) | st.tuples(inner), max_leaves=8))
def test_what_is_checked_comes_back_from_its_encoding(value: Value) -> None:
    check_value("data.a", value)
    assert same(decode_data(encode_data({"a": value}))["a"], value)
