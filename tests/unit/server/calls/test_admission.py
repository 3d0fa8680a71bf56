"""Admission: the bad rows of a batch are refused by index, the others pass unchanged."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as us
from utuple.errors import InvalidInput
from utuple.model.columns import Columns, columns_of
from utuple.model.condition import Equal
from utuple.model.packed import checked, packed
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.calls.admission import admit, admit_template
from utuple.server.writing.request import Part, Reason

ROWS = 5


def batch() -> Columns:
    return columns_of(
        UTuple(bytes([n] * 16), Family("s", "t"), Exact(f"a{n}", n, (1.0, 2.0)), {"n": n}, None, 60)
        for n in range(ROWS)
    )


def put(code: str, column: object, row: int, value: object) -> object:
    changed = list(column)  # type: ignore[call-overload]
    changed[row] = value
    return array(code, changed) if code else changed


@given(st.lists(us.event_actuals(), min_size=1, max_size=10))
def test_what_the_model_can_build_is_admitted_unchanged(events: list[UTuple]) -> None:
    columns = columns_of(events)
    admitted, rows, refusals = admit(columns, Part.EVENTS)
    assert refusals == [] and rows is None
    assert [admitted.utuple_at(row) for row in range(len(events))] == [
        columns.utuple_at(row) for row in range(len(events))
    ]


@pytest.mark.parametrize(
    ("column", "code", "value", "field"),
    [
        ("lats", "d", 91.0, "position.latitude"),
        ("lats", "d", math.inf, "position.latitude"),
        ("lats", "d", math.nan, "position.latitude"),
        ("lons", "d", -180.5, "position.longitude"),
        ("lifetimes_us", "q", -1, "lifetime_s"),
        ("lifetimes_us", "q", 2**62, "lifetime_s"),
        ("times_us", "q", 2**62, "time"),
        ("addresses", "", "", "address"),
        ("addresses", "", "a\x00b", "address"),
        ("addresses", "", "x" * 2000, "address"),
        ("payloads", "", b"", "data"),
        ("payloads", "", b"[1]", "data"),
        ("payloads", "", b'{"n":NaN}', "data"),
        ("payloads", "", b'{"n":1e999}', "data"),
        ("payloads", "", b'{"":1}', "data."),
        ("payloads", "", b'{"n":"\\u0000"}', "data.n"),
        ("payloads", "", b'{"n":{"$bytes":"*"}}', "data"),
        ("payloads", "", b'{"n":"' + b"x" * (2 << 20) + b'"}', "data"),
        ("payloads", "", b'{"n":' + b"[" * 40 + b"]" * 40 + b"}", "data.n" + "[0]" * 31),
        ("payloads", "", b'{"n":1},{"n":2}', "data"),
    ],
)
def test_one_bad_row_is_refused_by_index_with_field_value_and_rule(
    column: str, code: str, value: object, field: str
) -> None:
    columns = batch()
    spoiled = replace(columns, **{column: put(code, getattr(columns, column), 3, value)})  # type: ignore[arg-type]
    admitted, rows, refusals = admit(spoiled, Part.EVENTS)
    assert [(list(r.rows), r.reason, r.field) for r in refusals] == [([3], Reason.INVALID, field)]
    assert refusals[0].rule and len(refusals[0].value) < 200
    assert rows == [0, 1, 2, 4]
    assert list(admitted.addresses) == ["a0", "a1", "a2", "a4"]
    nothing, rows, alone = admit(spoiled.take([3]), Part.EVENTS)
    assert (len(nothing), rows) == (0, [])
    assert [(list(r.rows), r.reason, r.field) for r in alone] == [([0], Reason.INVALID, field)]


def test_other_json_for_the_same_data_is_brought_to_the_one_encoding() -> None:
    columns = replace(batch(), payloads=[b'{ "n" : 1 }', b'{"a":1,"a":2}'] + [b"{}"] * 3)
    admitted, _, refusals = admit(columns, Part.EVENTS)
    assert not refusals
    assert list(admitted.payloads[:2]) == [b'{"n":1}', b'{"a":2}']
    for row in (0, 1):
        alone, _, refusals = admit(columns.take([row]), Part.EVENTS)
        assert not refusals and list(alone.payloads) == [admitted.payloads[row]]


def test_a_device_needs_a_reader_and_a_data_template() -> None:
    columns = replace(batch(), readers=["r"] * ROWS, payloads=[b'{"on":["type","bool"]}'] * ROWS)
    assert admit(columns, Part.DEVICES)[2] == []
    nameless = replace(columns, readers=["r", "", "r", "r", "r"])
    assert [(list(r.rows), r.field) for r in admit(nameless, Part.DEVICES)[2]] == [([1], "reader")]
    wrong = replace(columns, payloads=[b'{"on":["like","x"]}', *columns.payloads[1:]])
    assert [list(r.rows) for r in admit(wrong, Part.DEVICES)[2]] == [[0]]


@pytest.mark.parametrize(
    "neighbours",
    [
        [b'{"a":1},{"b":2', b'"c":3}'],  # as many documents as payloads, cut elsewhere
        [b'{"a":"x}', b'{y"}'],  # one text over both
        [b'{"a":1', b'"b":2},{"c":3}'],
        [b'{"a":1}\n{"b":2', b'"c":3}'],
    ],
)
def test_payloads_that_only_their_neighbours_complete_are_refused(neighbours: list[bytes]) -> None:
    columns = batch()
    columns = replace(columns, payloads=[*neighbours, *columns.payloads[2:]])
    admitted, rows, refusals = admit(columns, Part.EVENTS)
    assert [refusal.rows for refusal in refusals] == [[0], [1]]
    assert rows == [2, 3, 4]
    assert admitted.payloads == columns.payloads[2:]


@given(us.event_formals())
def test_an_ef_is_admitted_as_the_plain_check_says(formal: UTuple) -> None:
    half = packed(replace(formal, lifetime_s=60.0, reader="r"))
    assert admit_template(half) == checked(half) == half


@pytest.mark.parametrize("address", ["a", 'quoted " and \\', "\u00fc\U0001f69a", "\u007f"])
def test_an_ef_for_one_address_is_admitted_as_it_is(address: str) -> None:
    """The very object: it was not built and written anew. Were it ever written otherwise, this would tell."""
    half = packed(UTuple(bytes(16), Family("s", "t"), Template(Equal(address)), None, {}, 60, "r"))
    assert admit_template(half) is half


@pytest.mark.parametrize(
    "metadata",
    [
        b'{ "address":["equal","a"],"since_us":null,"until_us":null,"area":null}',
        b'{"since_us":null,"address":["equal","a"],"until_us":null,"area":null}',
        b'{"address":["equal","\\u0061"],"since_us":null,"until_us":null,"area":null}',
    ],
)
def test_other_json_for_the_same_ef_is_brought_to_the_one_encoding(metadata: bytes) -> None:
    half = packed(UTuple(bytes(16), Family("s", "t"), Template(Equal("a")), None, {}, 60, "r"))
    assert admit_template(half._replace(metadata=metadata)) == half


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"address":["equal","a"]}',
        b'{"address":["equal",""],"since_us":null,"until_us":null,"area":null}',
        b'{"address":["equal"],"since_us":null,"until_us":null,"area":null}',
        b'{"address":["equal","a\\u0000"],"since_us":null,"until_us":null,"area":null}',
        b'{"address":["equal","a"],"since_us":null,"until_us":null,"area":null,"x":1}',
    ],
)
def test_an_ef_that_says_nothing_sensible_is_refused(metadata: bytes) -> None:
    half = packed(UTuple(bytes(16), Family("s", "t"), Template(Equal("a")), None, {}, 60, "r"))
    with pytest.raises(InvalidInput):
        admit_template(half._replace(metadata=metadata))
