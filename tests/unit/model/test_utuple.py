"""The uTuple itself: its kind follows from its halves, and a wrong one cannot be built."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.condition import ANY
from utuple.model.limits import MAX_LIFETIME_S, MAX_TIME_US, MIN_TIME_US
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple, family

ID = bytes(16)
TRUCK = Family("truck", "load")


@given(some.utuples())
def test_the_kind_follows_from_the_two_halves(utuple: UTuple) -> None:
    table = {
        (Exact, True): Kind.EA,
        (Template, False): Kind.EF,
        (Exact, False): Kind.CF,
        (Template, True): Kind.CA,
    }
    assert utuple.kind is table[type(utuple.metadata), utuple.data is not None]


def event(**changed: Any) -> UTuple:
    parts: dict[str, Any] = {
        "id": ID,
        "family": TRUCK,
        "metadata": Exact("truck-17", 0),
        "data": {},
        "where": None,
        "lifetime_s": 60.0,
        "reader": None,
    }
    return UTuple(**{**parts, **changed})


BAD: list[tuple[Any, str]] = [
    (lambda: event(id=b"short"), "id"),
    (lambda: event(id="0123456789abcdef"), "id"),
    (lambda: event(data=None), "data"),
    (lambda: event(where={"kg": ANY}), "data"),
    (lambda: event(data={"kg": float("nan")}), "data.kg"),
    (lambda: event(lifetime_s=-1), "lifetime_s"),
    (lambda: event(lifetime_s=MAX_LIFETIME_S + 1), "lifetime_s"),
    (lambda: event(lifetime_s=float("nan")), "lifetime_s"),
    (lambda: event(lifetime_s=True), "lifetime_s"),
    (lambda: event(reader=""), "reader"),
    (lambda: Exact("", 0), "address"),
    (lambda: Exact("a", 0.5), "time"),  # type: ignore[arg-type]
    (lambda: Exact("a", MAX_TIME_US), "time"),
    (lambda: Exact("a", MIN_TIME_US - 1), "time"),
    (lambda: Exact("a", 0, (91, 0)), "position.latitude"),
    (lambda: Template(since_us=5, until_us=5), "until"),
    (lambda: Template(since_us=5, until_us=4), "until"),
    (lambda: Template(since_us=MAX_TIME_US), "since"),
    (lambda: Template(area=(0, 0, 1, 1)), "area"),  # type: ignore[arg-type]
    (lambda: family("", "load"), "subject"),
    (lambda: family("truck", None), "type"),
]


@pytest.mark.parametrize(("build", "field"), BAD)
def test_a_wrong_utuple_cannot_be_built_and_the_reason_is_named(build: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build()
    assert refused.value.field == field
    assert refused.value.rule


def test_the_first_and_the_last_instant_of_the_calendar_are_times() -> None:
    assert Exact("a", MIN_TIME_US).time_us < Exact("a", MAX_TIME_US - 1).time_us


def test_positions_of_whole_degrees_become_floats() -> None:
    position = Exact("a", 0, (35, 139)).position
    assert position is not None and [type(part) for part in position] == [float, float]
