"""A stored search gives exactly what `matches` accepts (design, section 3), in seq order, in chunks."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies as some
from tests.conformance.building import (
    HOUR_S,
    TRUCK,
    batch,
    chunks,
    command,
    device,
    event,
    formal,
    fresh_family,
    ids_found,
    keep,
)
from tests.strategies import NOW_US
from utuple.model.area import Area, Box, Circle
from utuple.model.condition import (
    ABSENT,
    ANY,
    AddressCondition,
    DataCondition,
    Equal,
    OneOf,
    Prefix,
    Range,
    TypeIs,
    at_least,
    below,
    between,
    one_of,
)
from utuple.model.match import matches
from utuple.model.utuple import Exact, Kind, UTuple
from utuple.model.value import Value
from utuple.store.contract import Store, Transaction
from utuple.store.postgres.partitions import TIME_BUCKET_BITS

shared_store = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _shown(value: object) -> str | None:
    """Conditions name a case; the rest is numbered (and a set's order differs between processes)."""
    return None if isinstance(value, list | set) else repr(value)


def _adopted(utuples: list[UTuple]) -> list[UTuple]:
    """The same in a family nobody else uses, and with a lifetime."""
    family = fresh_family()
    return [
        UTuple(one.id, family, one.metadata, one.data, one.where, HOUR_S, one.reader)
        for one in utuples
    ]


# ------------------------------------------------------------------------------------------ the laws


@shared_store
@given(question=st.data())
async def test_a_formal_finds_exactly_the_events_that_match(
    store: Store, question: st.DataObject
) -> None:
    rows = st.lists(some.event_actuals(), min_size=1, max_size=20, unique_by=lambda one: one.id)
    events = _adopted(question.draw(rows))
    await keep(store, *events)
    for near in question.draw(st.lists(st.sampled_from(events), min_size=1, max_size=8)):
        asked = question.draw(some.formal_near(near))
        expected = [one.id for one in events if matches(one, asked)]
        assert await ids_found(store, asked) == expected, asked


@shared_store
@given(question=st.data())
async def test_a_command_finds_exactly_the_devices_that_match(
    store: Store, question: st.DataObject
) -> None:
    rows = st.lists(some.command_formals(), min_size=1, max_size=20, unique_by=lambda one: one.id)
    devices = _adopted(question.draw(rows))
    await keep(store, *devices)
    for near in question.draw(st.lists(st.sampled_from(devices), min_size=1, max_size=8)):
        asked = question.draw(some.command_near(near))
        expected = [one.id for one in devices if matches(asked, one)]
        assert await ids_found(store, asked) == expected, asked


@shared_store
@given(values=st.lists(some.values, min_size=1, max_size=20), question=st.data())
async def test_a_condition_on_data_finds_exactly_the_values_that_meet_it(
    store: Store, values: list[Value], question: st.DataObject
) -> None:
    events = _adopted([event(data={"v": value}) for value in values] + [event()])
    await keep(store, *events)
    for value in values[:8]:
        wanted = question.draw(some.condition_near(value) | some.data_conditions)
        asked = formal(where={"v": wanted}, family=events[0].family)
        expected = [one.id for one in events if matches(one, asked)]
        assert await ids_found(store, asked) == expected, wanted


@shared_store
@given(
    events=st.lists(some.event_actuals(), max_size=20, unique_by=lambda one: one.id),
    limits=st.tuples(st.integers(0, 22), st.integers(0, 22)),
    chunk_rows=st.integers(1, 7),
)
async def test_chunks_are_small_enough_in_seq_order_and_begin_after_a_seq(
    store: Store, events: list[UTuple], limits: tuple[int, int], chunk_rows: int
) -> None:
    events = _adopted(events)
    await keep(store, *events, first_seq=1)
    after, upto = limits
    asked = formal(family=events[0].family if events else TRUCK)
    found = await chunks(store, asked, after, upto, chunk_rows=chunk_rows)
    expected = [one.id for seq, one in enumerate(events, 1) if after < seq <= upto]
    assert [id_ for one in found for id_ in one.columns.each_id()] == expected
    assert [seq for one in found for seq in one.seqs] == list(
        range(after + 1, min(upto, len(events)) + 1)
    )
    assert all(0 < len(one) <= chunk_rows for one in found)


# ---------------------------------------------------------------------------------- cases by condition

LAST = "\U0010ffff"
BEFORE_SURROGATES = "\ud7ff"

ADDRESSES = [
    "a",
    "a" + BEFORE_SURROGATES,
    "a" + BEFORE_SURROGATES + "x",
    "a\ue000",
    "a\U0001f600",
    "a" + LAST,
    "a" + LAST + "x",
    "b",
    "B",
    "é",
    LAST,
    LAST + LAST,
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ANY, ADDRESSES),
        (Equal("a"), ["a"]),
        (Equal("absent"), []),
        (OneOf(("b", "é", "absent")), ["b", "é"]),
        (Prefix("a"), ADDRESSES[:7]),
        (Prefix("a" + BEFORE_SURROGATES), ["a" + BEFORE_SURROGATES, "a" + BEFORE_SURROGATES + "x"]),
        (Prefix("a" + LAST), ["a" + LAST, "a" + LAST + "x"]),
        (Prefix(LAST), [LAST, LAST + LAST]),
        (Prefix("%"), []),
        (Range("a\ue000", "b"), ADDRESSES[3:7]),
        (Range("é", None), ["é", LAST, LAST + LAST]),
        (Range(None, "a"), ["B"]),
    ],
    ids=_shown,
)
async def test_addresses_are_compared_by_code_points(
    store: Store, wanted: AddressCondition, expected: list[str]
) -> None:
    await keep(store, *(event(address) for address in ADDRESSES))
    found = await chunks(store, formal(wanted))
    assert [address for one in found for address in one.columns.addresses] == expected


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, [-1, 0, 1]),
        (0, None, [0, 1]),
        (None, 0, [-1]),
        (0, 1, [0]),
        (-1, 1, [-1, 0]),
        (2, None, []),
    ],
)
async def test_times_are_half_open_and_open_at_either_end(
    store: Store, since: int | None, until: int | None, expected: list[int]
) -> None:
    await keep(store, *(event(time_us=NOW_US + step) for step in (-1, 0, 1)))
    ends = [None if end is None else NOW_US + end for end in (since, until)]
    found = await chunks(store, formal(since_us=ends[0], until_us=ends[1]))
    assert [time_us - NOW_US for one in found for time_us in one.columns.times_us] == expected


@pytest.mark.parametrize("address", [Equal("truck-1"), OneOf(("truck-1", "truck-9"))], ids=_shown)
@pytest.mark.parametrize("step", [-1, 0, 1])
async def test_one_address_over_a_time_ends_where_the_index_begins_a_new_bucket(
    store: Store, address: AddressCondition, step: int
) -> None:
    edge_us = (NOW_US >> TIME_BUCKET_BITS) << TIME_BUCKET_BITS
    told = [event(time_us=edge_us + at) for at in (-2, -1, 0, 1)]
    await keep(store, *told, event("truck-2", edge_us))
    for asked in (
        formal(address, since_us=edge_us + step),
        formal(address, until_us=edge_us + step),
        formal(address, since_us=edge_us - 1, until_us=edge_us + step + 1),
    ):
        assert await ids_found(store, asked) == [one.id for one in told if matches(one, asked)]


PLACES = {
    "tokyo": (35.68, 139.76),
    "fiji": (-17.8, 178.0),
    "samoa": (-13.8, -172.1),
    "antimeridian": (0.0, 180.0),
    "antimeridian too": (0.0, -180.0),
    "north pole": (90.0, 0.0),
    "beside the pole": (89.99, 179.0),
    "nowhere": None,
}


@pytest.mark.parametrize(
    ("area", "expected"),
    [
        (None, set(PLACES)),
        (Box(-90, -180, 90, 180), set(PLACES) - {"nowhere"}),
        (Box(35, 139, 36, 140), {"tokyo"}),
        (Box(35.68, 139.76, 35.68, 139.76), {"tokyo"}),
        (Box(-20, 177, 5, -170), {"fiji", "samoa", "antimeridian", "antimeridian too"}),
        (Box(-20, 180, 5, -180), {"antimeridian", "antimeridian too"}),
        (Circle(35.68, 139.76, 0), {"tokyo"}),
        (Circle(90, 77, 2_000), {"north pole", "beside the pole"}),
        (Circle(89.99, -1, 2_300), {"north pole", "beside the pole"}),
        (Circle(89.99, -1, 2_000), {"north pole"}),
        (Circle(0, 179.99, 2_000), {"antimeridian", "antimeridian too"}),
        (Circle(-15, -178, 1_000_000), {"fiji", "samoa"}),
        (Circle(0, 0, 20_015_200), set(PLACES) - {"nowhere"}),
    ],
    ids=_shown,
)
async def test_areas_cross_the_antimeridian_and_reach_around_the_poles(
    store: Store, area: Area | None, expected: set[str]
) -> None:
    await keep(store, *(event(name, position=place) for name, place in PLACES.items()))
    await keep(
        store, *(device(name, position=place) for name, place in PLACES.items()), first_seq=20
    )
    for asked in (formal(area=area), command(area=area)):
        found = await chunks(store, asked)
        assert {address for one in found for address in one.columns.addresses} == expected


BIG = 2**53

DATA: list[tuple[DataCondition, list[Value], list[Value]]] = [
    # condition, values that meet it, values that do not
    (Equal(1), [1, 1.0], [True, "1", 2, [1], None]),
    (Equal(1.0), [1, 1.0], [True, "1", 1.5]),
    (Equal(True), [True], [1, 1.0, "true", False]),
    (Equal(0), [0, -0.0], [False, "", None, []]),
    (Equal(BIG + 1), [BIG + 1], [BIG, float(BIG), BIG + 2]),
    (Equal(float(BIG)), [BIG, float(BIG)], [BIG + 1]),
    (Equal(1e23), [1e23], [1e22, 2**64 - 1]),
    (Equal(2**64 - 1), [2**64 - 1], [float(2**64), 2**63]),
    (Equal(None), [None], [0, False, "", "null", [], {}]),
    (Equal(""), [""], [None, "a", []]),
    (Equal("é"), ["é"], ["e\u0301", "É"]),
    (Equal(b"\x00\xff"), [b"\x00\xff"], [b"\x00", "AP8=", {"a": "AP8="}]),
    (Equal([]), [[]], [None, {}, "", [[]]]),
    (Equal({}), [{}], [None, [], b"", {"a": 1}]),
    (Equal([1, "a"]), [[1.0, "a"]], [["a", 1], [1], [1, "a", 2], 1]),
    (Equal({"a": [1, {"b": b"x"}]}), [{"a": [1.0, {"b": b"x"}]}], [{"a": [1, {"b": "x"}]}, {}]),
    (one_of(1, "a", None), [1.0, "a", None], [True, "b", 0, []]),
    (one_of([1], {"a": 1}), [[1.0], {"a": 1.0}], [1, {"a": True}]),
    (at_least(1), [1, 1.0, 1e300], [0.999, "2", True, None, [2]]),
    (below(0), [-5e-324, -(2**63)], [0, -0.0, "-1", False]),
    (between(BIG, BIG + 1), [BIG, float(BIG)], [BIG + 1, BIG - 1]),
    (between(0.1, 0.2), [0.1, 0.15], [0.2, 0.09999999999999999]),
    (at_least("b"), ["b", "é", "\U0001f600"], ["a", "B", 1, None, b"b"]),
    (between("\ue000", "\U0001f600"), ["\ue000", "\uffff"], ["\ud7ff", "\U0001f600"]),
    (below("a"), ["", "A"], ["a", 0, None]),
    (TypeIs("number"), [1, 1.5, 2**64 - 1], [True, "1", None]),
    (TypeIs("bool"), [True, False], [0, "true", None]),
    (TypeIs("text"), ["", "a"], [1, b"a", None]),
    (TypeIs("bytes"), [b"", b"a"], ["a", {}, {"a": b""}]),
    (TypeIs("mapping"), [{}, {"a": 1}, {"a": b""}], [b"", [], "$bytes"]),
    (TypeIs("list"), [[], [1]], [{}, "a"]),
    (TypeIs("null"), [None], [0, "", []]),
    (ANY, [None, 0, False, "", [], {}], []),
    (ABSENT, [], [None, 0, False, ""]),
]


FIELD_NAMES = ["kg", "a.b", "%s", "'", "\\", "$1", "?", "\U0001f600"]


@pytest.mark.parametrize(("wanted", "meeting", "failing"), DATA, ids=_shown)
async def test_values_compare_as_the_model_says_whatever_the_field_is_called(
    store: Store, wanted: DataCondition, meeting: list[Value], failing: list[Value]
) -> None:
    for name in FIELD_NAMES:
        family = fresh_family()
        met = [event(data={name: value}, family=family) for value in meeting]
        unmet = [event(data={name: value}, family=family) for value in failing]
        without = event(data={"other": 1}, family=family)
        await keep(store, *met, *unmet, without)
        expected = [one.id for one in met] + ([without.id] if wanted == ABSENT else [])
        assert await ids_found(store, formal(where={name: wanted}, family=family)) == expected


async def test_fields_that_are_not_named_are_ignored_and_all_named_ones_count(store: Store) -> None:
    both, one = event(data={"a": 1, "b": 2}), event(data={"a": 1})
    await keep(store, both, one)
    assert await ids_found(store, formal(where={"a": Equal(1)})) == [both.id, one.id]
    assert await ids_found(store, formal(where={"a": Equal(1), "b": ANY})) == [both.id]


# ------------------------------------------------------------------------------- what else is promised


async def test_another_family_is_never_found(store: Store) -> None:
    near = event(family=fresh_family())
    await keep(store, event(), near)
    assert await ids_found(store, formal(family=near.family)) == [near.id]
    assert await ids_found(store, formal(family=fresh_family())) == []


async def test_the_expired_are_not_found_though_nothing_was_collected(store: Store) -> None:
    short, long = event(lifetime_s=1.0), event(lifetime_s=2.0)
    thing = device(lifetime_s=1.0)
    await keep(store, short, long, thing)
    assert await ids_found(store, formal(), now_us=NOW_US + 999_999) == [short.id, long.id]
    assert await ids_found(store, formal(), now_us=NOW_US + 1_000_000) == [long.id]
    assert await ids_found(store, command(), now_us=NOW_US + 999_999) == [thing.id]
    assert await ids_found(store, command(), now_us=NOW_US + 1_000_000) == []


@shared_store
@given(utuples=st.lists(some.event_actuals() | some.command_formals(), min_size=1, max_size=10))
async def test_what_is_found_is_what_was_stored_byte_for_byte(
    store: Store, utuples: list[UTuple]
) -> None:
    kept = _adopted(utuples)
    await keep(store, *kept)
    family = kept[0].family
    for kind, asked in ((Kind.EA, formal(family=family)), (Kind.CF, command(family=family))):
        expected = batch([one for one in kept if one.kind is kind])
        if kind is Kind.CF:
            stored = [one async for one in store.devices(NOW_US)]
            found = [part for part in stored if family in part.columns.families]
            here = {
                part.columns.id_at(row): part.columns.utuple_at(row, kind)
                for part in found
                for row in range(len(part))
            }
            for row, id_ in enumerate(expected.columns.each_id()):
                assert here[id_] == expected.columns.utuple_at(row, kind)
            continue
        found = await chunks(store, asked)
        for name in ("ids", "times_us", "addresses", "payloads"):
            whole = [
                bytes(v) if isinstance(v, bytes) else v
                for p in found
                for v in getattr(p.columns, name)
            ]
            assert whole == list(getattr(expected.columns, name))
        positions = [p.columns.position_at(row) for p in found for row in range(len(p))]
        metadata = [one.metadata for one in kept if one.kind is kind]
        assert positions == [half.position for half in metadata if isinstance(half, Exact)]


async def test_a_device_is_found_with_its_reader_and_lifetime(store: Store) -> None:
    thing = device(reader="温度", lifetime_s=60.0)
    await keep(store, thing)
    (found,) = await chunks(store, command())
    assert (list(found.columns.readers), list(found.columns.lifetimes_us)) == (
        ["温度"],
        [60_000_000],
    )


async def test_a_search_sees_what_was_committed_before_it(store: Store) -> None:
    for seq in range(1, 30):
        one = event()
        await store.commit(Transaction(seq, events=[batch([one], seq)]))
        assert await ids_found(store, formal(), after=seq - 1) == [one.id]
