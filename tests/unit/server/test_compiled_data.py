"""Payloads that are right beyond doubt: whatever the compiled loop lets pass, the model takes as it is."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.server.test_admission import batch
from utuple.errors import InvalidInput
from utuple.model.limits import MAX_DATA_BYTES
from utuple.model.value import encode_data, normal_data
from utuple.server.admission import admit
from utuple.server.kernels import ArePlain, Kernels, not_sure
from utuple.server.request import Part

RIGHT = [
    *(b"{}", b'{"kg":2067}', b'{"kg":0,"t":-1}', b'{"kg":123456789012345678}', b'{"a":""}'),
    *(
        b'{"a":true,"b":false,"c":null}',
        b'{"kg":12.5,"t":-0.001,"h":0.0}',
        b'{"a b":"x, {y}: [z]"}',
    ),
    b"{" + b",".join(b'"n%d":%d' % (n, n) for n in range(16)) + b"}",
]
DOUBTFUL = [
    *(
        b"",
        b"{",
        b"}",
        b"[]",
        b"1",
        b'"a"',
        b"null",
        b"{} ",
        b" {}",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1',
    ),
    *(b'{"a":1,}', b'{,"a":1}', b'{"a":1"b":2}', b'{"a": 1}', b"{'a':1}", b'{"a":1}}', b"{a:1}"),
    *(b'{"a":01}', b'{"a":-0}', b'{"a":+1}', b'{"a":-}', b'{"a":.5}', b'{"a":5.}', b'{"a":1.50}'),
    *(b'{"a":1e5}', b'{"a":1E5}', b'{"a":0.00001}', b'{"a":1.0e1}', b'{"a":1234567890.1234567}'),
    *(b'{"a":1234567890123456789}', b'{"a":99999999999999999999}', b'{"a":NaN}', b'{"a":--1}'),
    *(b'{"a":tru}', b'{"a":truefalse}', b'{"a":nul', b'{"a":True}', b'{"a":t}', b'{"a":1.2.3}'),
    *(b'{"":1}', b'{"a":1,"a":2}', b'{"a":"\\u0000"}', b'{"a":"\x00"}', b'{"a":"\n"}', b'{"a":"x'),
    *(b'{"$bytes":"AA=="}', b'{"a":{"$bytes":"AA=="}}', '{"a":"é"}'.encode(), b'{"a":"\xff"}'),
    *(b'{"a":1}\n{"b":2}', b'{"a":[1]}', b'{"a":{"b":1}}', b'{"a":1}\n', b"\n", b'{"a":"\x7f"}'),
    b"{" + b",".join(b'"n%d":%d' % (n, n) for n in range(17)) + b"}",
    b'{"a":"' + b"x" * MAX_DATA_BYTES + b'"}',
]

LETTERS = st.sampled_from([*'{}[]":,.-+0123456789eE \\$\n\x00\x1fabtruefalsn'])
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=5)
FEW_DIGITS = st.integers(-(10**9), 10**9)
PLAIN_VALUES = st.one_of(
    *(FEW_DIGITS, FEW_DIGITS.map(lambda n: n / 1000), st.booleans(), st.none(), NAMES)
)
PLAIN = st.dictionaries(NAMES, PLAIN_VALUES, max_size=6)


@pytest.fixture(scope="module")
def are_plain() -> ArePlain:
    kernels = Kernels()
    assert not kernels.are_plain([b"{}"])
    if not kernels.load():
        pytest.skip("numba is not installed")
    return kernels.are_plain


def is_taken_as_it_is(payload: bytes) -> bool:
    try:
        return normal_data(payload) == payload
    except InvalidInput:
        return False


@pytest.mark.parametrize("payload", RIGHT)
def test_what_programs_mostly_say_is_plain(payload: bytes, are_plain: ArePlain) -> None:
    assert is_taken_as_it_is(payload)
    assert are_plain([payload]) and are_plain([b"{}", payload, payload])


@pytest.mark.parametrize("payload", DOUBTFUL)
def test_what_is_wrong_or_may_be_is_not(payload: bytes, are_plain: ArePlain) -> None:
    for payloads in ([payload], [payload, b"{}"], [b"{}", payload], [b"{}", payload, b"{}"]):
        assert not are_plain(payloads)


def test_each_is_ended_by_an_end_of_line(are_plain: ArePlain) -> None:
    loops: Any = import_module("utuple.server.compiled_data")
    for text, count in (
        (b"", 0),
        (b"{}\n", 1),
        (b"{}\n{}\n", 2),
        (b"{}x{}\n", -1),
        (b"{},{}\n", -1),
    ):
        assert loops.plain_mappings(np.frombuffer(text, dtype=np.uint8), 2) == count


@given(st.lists(PLAIN, max_size=5))
def test_plain_data_is_plain(are_plain: ArePlain, data: list[dict[str, Any]]) -> None:
    assert are_plain([encode_data(one) for one in data])


@given(PLAIN.map(encode_data), st.integers(0), st.integers(0, 2), st.text(LETTERS, max_size=3))
@example(b'{"a":1}', 6, 0, ',"a":2')
def test_plain_data_with_a_change_passes_only_if_it_is_right(
    are_plain: ArePlain, payload: bytes, at: int, gone: int, instead: str
) -> None:
    at %= len(payload) + 1
    changed = payload[:at] + instead.encode() + payload[at + gone :]
    assert is_taken_as_it_is(changed) or not are_plain([changed])


@given(st.one_of(st.floats().map(repr), st.decimals().map(str), st.text(LETTERS, max_size=20)))
@example("0.0001")
@example("0.00012")
@example("123456789012.345")
@example("-0.0")
def test_a_number_passes_only_as_it_is_written(are_plain: ArePlain, number: str) -> None:
    payload = b'{"n":%b}' % number.encode()
    assert is_taken_as_it_is(payload) or not are_plain([payload])


@pytest.mark.parametrize("payload", [b'{"n":1}', b"[1]", b'{ "n" : 1 }', b'{"n":1}\n{"n":2}', b""])
def test_admission_says_the_same_with_it_and_without(payload: bytes, are_plain: ArePlain) -> None:
    columns = batch().take([0, 1, 2, 3] * 10)
    columns = replace(columns, payloads=[*columns.payloads[:-1], payload])
    assert admit(columns, Part.EVENTS, are_plain) == admit(columns, Part.EVENTS, not_sure)
    wrong = replace(columns, addresses=["", *columns.addresses[1:]])
    assert admit(wrong, Part.EVENTS, are_plain) == admit(wrong, Part.EVENTS, not_sure)


def test_devices_are_never_taken_for_events() -> None:
    columns = batch().take([0, 1, 2, 3] * 10)
    columns = replace(columns, readers=["r"] * len(columns))
    _, _, refusals = admit(columns, Part.DEVICES, lambda _: True)
    assert len(refusals) == len(columns)  # {"n": 1} is no data template
