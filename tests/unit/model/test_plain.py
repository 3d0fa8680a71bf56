"""What comes out of NumPy is taken as the plain value it means, or refused by its field's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from utuple.client.arguments import Place, commanding, template
from utuple.client.sending.rows import event_columns, wrong_events
from utuple.errors import InvalidInput
from utuple.model.area import Box, Circle, check_position
from utuple.model.condition import (
    Equal,
    OneOf,
    Range,
    at_least,
    below,
    between,
    data_template,
    encode_where,
    one_of,
)
from utuple.model.utuple import check_lifetime
from utuple.model.value import Value, decode_data, encode_data, plain

SCALARS: list[tuple[Any, Value]] = [
    (np.float64(0.1), 0.1),
    (np.float32(0.5), 0.5),
    (np.float16(1.5), 1.5),
    (np.int64(-7), -7),
    (np.int8(3), 3),
    (np.uint64(2**64 - 1), 2**64 - 1),
    (np.bool_(True), True),
    (np.str_("on"), "on"),
    (np.bytes_(b"\x00\xff"), b"\x00\xff"),
]


class Celsius(float):
    """Floats of a class of the user's own were refused without a name too."""


@pytest.mark.parametrize(("scalar", "meant"), [*SCALARS, (Celsius(4.5), 4.5)])
def test_a_scalar_in_data_is_the_plain_value_it_means_at_any_depth(
    scalar: Any, meant: Value
) -> None:
    said = {"x": scalar, "list": [scalar, (scalar,)], "map": {"y": scalar}}
    wanted = {"x": meant, "list": [meant, [meant]], "map": {"y": meant}}
    assert decode_data(encode_data(said)) == wanted
    assert encode_data(said) == encode_data(wanted)
    assert type(plain(said)["list"][1][0]) is type(meant)


def test_names_may_be_numpy_texts() -> None:
    assert decode_data(encode_data({np.str_("kg"): 1})) == {"kg": 1}
    assert encode_where(data_template({np.str_("kg"): np.int64(1)})) == encode_where(
        data_template({"kg": 1})
    )


@given(strategies.data)
def test_plain_data_stays_what_it_is(data: dict[str, Value]) -> None:
    assert plain(data) == data
    assert encode_data(plain(data)) == encode_data(data)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, 2.0]),
        np.array(1.0),
        np.array([]),
        np.float64("nan"),
        np.float32("inf"),
        np.complex128(1j),
        np.datetime64("2026-01-01T00:00:00.000000001"),
        np.timedelta64(1, "s"),
        np.longdouble(1),
    ],
)
@pytest.mark.parametrize("place", ["{}", "{}.a", "{}[0]"])
def test_what_is_no_plain_value_is_refused_by_its_field_s_name(value: Any, place: str) -> None:
    inner: dict[str, Any] = {"{}": value, "{}.a": {"a": value}, "{}[0]": [value]}
    field = place.format("data.x")
    checks: list[Callable[[], object]] = [
        lambda: encode_data({"x": inner[place]}),
        lambda: event_columns([event(data={"x": inner[place]})], 0, 0, 0),
    ]
    for check, name in zip(checks, (field, f"events[0].{field}"), strict=True):
        with pytest.raises(InvalidInput) as caught:
            check()
        assert caught.value.field == name and "must be" in caught.value.rule


def event(**said: Any) -> dict[str, Any]:
    return {"subject": "truck", "type": "load", "address": "t", "data": {"kg": 1}, **said}


@pytest.mark.parametrize("count", [1, 3])
def test_events_of_scalars_are_registered_like_plain_ones(count: int) -> None:
    ready = event(
        subject=np.str_("truck"),
        address=np.str_("t"),
        position=(np.float32(0.5), np.int64(3)),
        data={"kg": np.float64(1.5), "n": np.int64(2), "on": np.bool_(False)},
        lifetime_s=np.int32(60),
    )
    meant = event(position=(0.5, 3), data={"kg": 1.5, "n": 2, "on": False}, lifetime_s=60)
    assert event_columns([ready] * count, 0, 7, 7) == event_columns([meant] * count, 0, 7, 7)


@pytest.mark.parametrize(
    "field", ["subject", "type", "address", "position", "data", "time", "lifetime_s"]
)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_array_in_any_argument_is_refused_by_its_name(field: str, count: int) -> None:
    wrong = [event(**{field: np.array([1.0, number, 3.0])}) for number in range(count)]
    found = wrong_events([event(), *wrong, event()], 0)
    assert sorted(found) == list(range(1, count + 1))
    assert {error.field for error in found.values()} == {
        f"events[{row}].{field}" for row in range(1, count + 1)
    }


@given(st.floats(-1e6, 1e6, width=32))
def test_conditions_of_scalars_equal_those_of_plain_values(number: float) -> None:
    scalar: Any = np.float32(number)
    assert Equal(scalar) == Equal(number) and at_least(scalar) == at_least(number)
    assert below(scalar) == below(number) and between(scalar, number + 1) == Range(
        number, number + 1
    )
    assert one_of(scalar, [scalar]) == OneOf((number, [number]))
    where = data_template({"kg": scalar, "n": at_least(scalar)})
    assert encode_where(where) == encode_where({"kg": Equal(number), "n": Range(number, None)})


def test_places_and_lifetimes_take_scalars() -> None:
    half: Any = np.float32(0.5)
    two: Any = np.int64(2)
    assert check_position("position", [half, np.int8(7)]) == (0.5, 7.0)
    assert Box(half, half, np.float64(1.0), two) == Box(0.5, 0.5, 1, 2)
    assert Circle(half, half, two) == Circle(0.5, 0.5, 2)
    assert check_lifetime(np.float32(0.5)) == 0.5 and type(check_lifetime(half)) is float
    with pytest.raises(InvalidInput, match=r"position\.latitude"):
        check_position("position", (np.float64("nan"), 0.0))
    with pytest.raises(InvalidInput, match="must be a pair"):
        check_position("position", np.array([1.0, 2.0]))


def test_a_command_s_data_is_plain() -> None:
    data: dict[str, Any] = {"on": np.bool_(True), "level": [np.int64(3)]}
    command = commanding(bytes(16), "aircon", "power", Place("room-1"), data, 0)
    assert command.data == {"on": True, "level": [3]}
    assert [*map(type, command.data.values())] == [bool, list]
    assert template(Place(np.str_("room-1"))) == template(Place("room-1"))
