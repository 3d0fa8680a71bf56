"""Events as columns: the fast way says what the slow way says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from utuple.client.sending.rows import encode_plain, event_columns, ids_of
from utuple.errors import InvalidInput
from utuple.model.columns import columns_of
from utuple.model.identity import time_of_id_us
from utuple.model.utuple import Exact, UTuple, datetime_of
from utuple.model.value import encode_data

NOW_US = strategies.NOW_US


def event(**changes: Any) -> dict[str, Any]:
    return {"subject": "truck", "type": "load", "address": "t", "data": {"kg": 1}, **changes}


def as_arguments(utuple: UTuple) -> dict[str, Any]:
    assert isinstance(utuple.metadata, Exact)
    return {
        "subject": utuple.family.subject,
        "type": utuple.family.type,
        "address": utuple.metadata.address,
        "position": utuple.metadata.position,
        "time": datetime_of(utuple.metadata.time_us),
        "data": utuple.data,
        "lifetime_s": utuple.lifetime_s,
    }


@given(st.lists(strategies.event_actuals(), min_size=1, max_size=8))
def test_columns_hold_what_the_model_would_hold(events: list[UTuple]) -> None:
    built = event_columns([as_arguments(one) for one in events], 0, NOW_US, 0)
    slow = columns_of(events)
    assert [built.utuple_at(row).metadata for row in range(len(events))] == [
        slow.utuple_at(row).metadata for row in range(len(events))
    ]
    assert built.payloads == slow.payloads
    assert (built.families, built.family) == (slow.families, slow.family)
    assert built.lifetimes_us == slow.lifetimes_us


scalars = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.booleans(),
    st.none(),
    st.binary(max_size=3),
    st.sampled_from(["null", "$bytes", '"":', "\x00"]),
)
names = st.one_of(st.sampled_from(["", "kg", "$bytes", "null", "\x00"]), st.text(max_size=3))


@given(st.lists(st.dictionaries(names, scalars, max_size=3), min_size=1, max_size=4))
def test_the_fast_encoding_never_differs_from_the_checked_one(datas: list[dict[str, Any]]) -> None:
    fast = encode_plain(datas)
    if fast is not None:
        assert fast == [encode_data(data) for data in datas]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (event(data={"kg": float("nan")}), "events[7].data.kg"),
        (event(data={"": 1}), "events[7].data."),
        (event(data=[1]), "events[7].data"),
        (event(data={"a": {"b": object()}}), "events[7].data.a.b"),
        (event(address=""), "events[7].address"),
        (event(address=17), "events[7].address"),
        (event(subject=""), "events[7].subject"),
        (event(subject=["truck"]), "events[7].subject"),
        (event(type=None), "events[7].type"),
        (event(position=(91, 0)), "events[7].position.latitude"),
        (event(position=(0, float("nan"))), "events[7].position.longitude"),
        (event(position=(1,)), "events[7].position"),
        (event(position=()), "events[7].position"),
        (event(time=datetime(2026, 1, 1)), "events[7].time"),  # noqa: DTZ001
        (event(time=17), "events[7].time"),
        (event(lifetime_s=-1), "events[7].lifetime_s"),
        (event(lifetime_s=True), "events[7].lifetime_s"),
        (event(colour="red"), "events[7].colour"),
        ({"subject": "truck", "type": "load", "data": {}}, "events[7].address"),
        ("truck", "events[7]"),
    ],
)
def test_a_wrong_value_is_named_with_its_row(wrong: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        event_columns([event(), event(), wrong, event()], 5, NOW_US, 0)
    assert caught.value.field == field
    with pytest.raises(InvalidInput) as alone:
        event_columns([wrong], 7, NOW_US, 0)
    assert (alone.value.field, alone.value.rule) == (field, caught.value.rule)


@pytest.mark.parametrize(
    "lon", [pytest.param(10**400, id="huge"), -181, float("nan"), float("inf"), True, "2"]
)
def test_a_wrong_place_among_places_is_named_with_its_row(lon: Any) -> None:
    places = [(1.5, 2.5), (3, lon), (4.5, 5)]
    with pytest.raises(InvalidInput) as caught:
        event_columns([event(position=place) for place in places], 5, NOW_US, 0)
    assert caught.value.field == "events[6].position.longitude"


def test_the_zone_of_a_time_is_heeded() -> None:
    when = datetime.fromisoformat("2026-01-01T09:00:00.000001+09:00")
    columns = event_columns([event(time=when)], 0, NOW_US, 0)
    assert datetime_of(columns.times_us[0]) == datetime(2026, 1, 1, 0, 0, 0, 1, UTC)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1), st.integers(1, 50))
def test_ids_are_different_uuids_of_version_7_of_that_millisecond(
    ms: int, random: int, count: int
) -> None:
    packed = ids_of(ms * 1000, random, count)
    ids = [packed[at : at + 16] for at in range(0, len(packed), 16)]
    assert len(set(ids)) == count
    for id_ in ids:
        assert UUID(bytes=id_).version == 7
        assert UUID(bytes=id_).variant == RFC_4122
        assert time_of_id_us(id_) == ms * 1000


OWN = UUID("018f0000-0000-8000-8000-00000000002a")


@pytest.mark.parametrize("others", [0, 2])
def test_an_event_may_bring_its_own_id_and_the_others_get_new_ones(others: int) -> None:
    built = event_columns([event(id=OWN), *[event()] * others], 0, NOW_US, 5)
    ids = [UUID(bytes=built.id_at(row)) for row in range(1 + others)]
    assert ids[0] == OWN
    assert len(set(ids)) == 1 + others


def test_an_id_that_is_no_uuid_is_refused_by_its_row() -> None:
    with pytest.raises(InvalidInput, match=r"events\[1\]\.id"):
        event_columns([event(), event(id="x")], 0, NOW_US, 0)
