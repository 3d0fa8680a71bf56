"""What a section holds: read out for a drain, counted for the planner, deleted at the end."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.building import (
    AIRCON,
    SERVER,
    TRUCK,
    Place,
    batch,
    command,
    device,
    event,
    formal,
    fresh_family,
    ids_found,
    ids_of,
    ids_of_devices,
    keep,
    new_id,
    stored,
)
from tests.strategies import NOW_US
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.section import Section, equal_sections
from utuple.model.utuple import Family, Kind, UTuple
from utuple.store.contract import Batch, Census, FormalPosition, Store, Transaction

EVERYTHING = Section(0, HASH_SPACE)
HOUR_US = 3_600 * 1_000_000
X = "server-x"


def only(family: Family) -> Section:
    key = key_of(*family)
    return Section(key, key + 1)


def families_apart(count: int) -> list[Family]:
    """Families nobody else uses, in the order of their keys."""
    return sorted((fresh_family() for _ in range(count)), key=lambda family: key_of(*family))


async def events_of(
    store: Store, section: Section, origin: str = "", after: int = 0, now_us: int = NOW_US
) -> list[Batch]:
    return [part async for part in store.section_events(section, origin, after, now_us)]


async def devices_of(store: Store, section: Section, now_us: int = NOW_US) -> list[Batch]:
    return [part async for part in store.section_devices(section, now_us)]


# ------------------------------------------------------------------------------------------- reading out


async def test_a_sections_events_come_in_seq_order_with_what_a_copy_needs(store: Store) -> None:
    low, high = families_apart(2)
    rows = [event(f"t-{n}", data={"n": n}, family=(low, high)[n % 2]) for n in range(10)]
    rows = [replace(one, lifetime_s=60.0 * (n + 1)) for n, one in enumerate(rows)]
    await keep(store, *rows, first_seq=11)
    parts = await events_of(store, Section(0, key_of(*high)), after=12)
    assert ids_of(parts) == [one.id for one in rows[2::2]]
    assert [seq for part in parts for seq in part.seqs] == [13, 15, 17, 19]
    (part,) = parts
    assert list(part.expires_us) == [NOW_US + 60_000_000 * n for n in (3, 5, 7, 9)]
    assert list(part.columns.lifetimes_us) == [0] * 4
    assert (part.origin, part.shadow) == ("", b"")
    assert part.columns.utuple_at(0) == replace(rows[2], lifetime_s=0.0)


async def test_the_ends_of_a_section_are_half_open(store: Store) -> None:
    family = fresh_family()
    key = key_of(*family)
    one, thing = event(family=family), device(family=family)
    await keep(store, one, thing)
    inside = [Section(key, key + 1), EVERYTHING, Section(key, HASH_SPACE), Section(0, key + 1)]
    outside = [Section(0, key), Section(key + 1, HASH_SPACE)]
    for section in inside:
        assert ids_of(await events_of(store, section)) == [one.id]
        assert ids_of(await devices_of(store, section)) == [thing.id]
    for section in outside:
        assert await events_of(store, section) == await devices_of(store, section) == []
    counted = await store.census(inside + outside, NOW_US)
    assert [census.rows for census in counted] == [2, 2, 2, 2, 0, 0]


async def test_each_origin_is_read_out_by_itself_and_the_hidden_not_at_all(store: Store) -> None:
    shown, again, hidden = new_id(), new_id(), new_id()
    own, *brought = [event() for _ in range(4)]
    await keep(store, own)
    for seq, (move, one) in enumerate(zip((shown, again, hidden), brought, strict=True), 70):
        await store.commit(Transaction(1, events=[batch([one], seq, NOW_US, X, move)]))
    await store.commit(Transaction(1, revealed=[shown, again]))
    assert ids_of(await events_of(store, EVERYTHING)) == [own.id]
    parts = await events_of(store, EVERYTHING, X)
    assert ids_of(parts) == [one.id for one in brought[:2]]
    assert {part.origin for part in parts} == {X}
    assert ids_of(await events_of(store, EVERYTHING, X, after=70)) == [brought[1].id]
    assert await events_of(store, EVERYTHING, X, after=71) == []
    assert await events_of(store, EVERYTHING, "unknown") == []


async def test_what_is_read_out_is_alive(store: Store) -> None:
    dead, alive = event(lifetime_s=1.0), event()
    things = [device(lifetime_s=1.0), device()]
    await keep(store, dead, alive, *things)
    now_us = NOW_US + 1_000_000
    assert ids_of(await events_of(store, EVERYTHING, now_us=now_us)) == [alive.id]
    assert ids_of(await devices_of(store, EVERYTHING, now_us)) == [things[1].id]


async def test_a_sections_devices_are_read_out_with_their_lifetimes(store: Store) -> None:
    move, thing, hidden = new_id(), device(lifetime_s=90.0), device()
    await keep(store, thing, first_seq=4)
    await store.commit(Transaction(5, devices=[batch([hidden], 5, NOW_US, X, move)]))
    (part,) = await devices_of(store, only(AIRCON))
    assert [part.columns.utuple_at(0, Kind.CF)] == [thing]
    assert (list(part.seqs), list(part.expires_us)) == ([4], [NOW_US + 90_000_000])
    assert await devices_of(store, only(TRUCK)) == []
    await store.commit(Transaction(5, revealed=[move]))
    assert ids_of(await devices_of(store, only(AIRCON))) == [thing.id, hidden.id]


async def test_many_events_with_gaps_in_their_seqs_are_all_read_out_in_order(store: Store) -> None:
    rows = [event(f"truck-{n % 7}") for n in range(6_000)]
    seqs = [10 + n + 50_000_000 * (n // 1_000) + 7_000 * (n // 100) for n in range(6_000)]
    parts = [
        replace(batch(rows[at : at + 500]), seqs=array("Q", seqs[at : at + 500]))
        for at in range(0, 6_000, 500)
    ]
    await store.commit(Transaction(seqs[-1], events=parts))
    read = await events_of(store, EVERYTHING)
    assert [seq for part in read for seq in part.seqs] == seqs
    assert ids_of(read) == [one.id for one in rows]
    assert max(len(part) for part in read) <= 2_000
    assert ids_of(await events_of(store, EVERYTHING, after=seqs[2_345])) == [
        one.id for one in rows[2_346:]
    ]


# ---------------------------------------------------------------------------------------------- deleting


async def test_a_removed_section_holds_nothing_and_its_neighbours_all(
    place: Place, store: Store
) -> None:
    low, middle, high = families_apart(3)
    rows = [event(family=family) for family in (low, middle, high)]
    things = [device(family=family) for family in (low, middle, high)]
    asked = formal(family=middle)
    formals = (*things, asked)
    await keep(store, *rows, *things)
    await store.commit(
        Transaction(
            9,
            templates=[stored(asked)],
            positions=[FormalPosition(one.id, "", 1) for one in formals],
        )
    )
    await store.commit(Transaction(9, removed=[only(middle)]))
    for number, family in enumerate((low, middle, high)):
        is_kept = number != 1
        assert await ids_found(store, formal(family=family)) == [rows[number].id] * is_kept
        assert await ids_found(store, command(family=family)) == [things[number].id] * is_kept
    assert (await store.stats()).events == 2
    await store.commit(Transaction(10, devices=[batch([things[1]], 10)]))
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert {one.formal for one in recovered.positions} == {things[0].id, things[2].id, asked.id}
    assert [kept.utuple.id for kept in recovered.templates] == [asked.id]


async def test_removing_takes_every_visible_origin_and_leaves_the_hidden(store: Store) -> None:
    shown, hidden = new_id(), new_id()
    own, brought, shadow = event(), event(), event()
    things = [device(), device()]
    await keep(store, own)
    for move, one, thing in ((shown, brought, things[0]), (hidden, shadow, things[1])):
        await store.commit(
            Transaction(
                9,
                events=[batch([one], 1, NOW_US, X, move)],
                devices=[batch([thing], 9, NOW_US, X, move)],
            )
        )
    await store.commit(Transaction(9, revealed=[shown]))
    await store.commit(Transaction(9, removed=[EVERYTHING]))
    assert await ids_found(store, formal()) == await ids_found(store, formal(), X) == []
    assert (await store.origins(), await store.shadows(hidden)) == ({}, {X: 1})
    await store.commit(Transaction(9, revealed=[hidden]))
    assert await ids_found(store, formal(), X) == [shadow.id]
    assert await ids_of_devices(store) == [things[1].id]


async def test_what_is_written_with_a_removal_stays(store: Store) -> None:
    """The order inside a commit: what goes, then what is cancelled, then what comes."""
    move, old, new = new_id(), event(), event()
    thing = device()
    await keep(store, old, thing)
    await store.commit(
        Transaction(
            9,
            events=[batch([new], 3), batch([event()], 1, NOW_US, X, move)],
            devices=[batch([thing], 4)],
            removed=[EVERYTHING],
            revealed=[move],
        )
    )
    assert await ids_found(store, formal()) == [new.id]
    assert len(await ids_found(store, formal(), X)) == 1
    assert await ids_of_devices(store) == [thing.id]


async def test_events_of_every_lifetime_are_removed(store: Store) -> None:
    lifetimes = [1.0, 3_601.0, 86_401.0, 31 * 86_400.0, 400 * 86_400.0]
    await keep(store, *(event(lifetime_s=lifetime_s) for lifetime_s in lifetimes))
    await store.commit(Transaction(9, removed=[only(AIRCON)]))
    assert len(await ids_found(store, formal())) == 5
    await store.commit(Transaction(9, removed=[only(AIRCON), only(TRUCK)]))
    assert await ids_found(store, formal()) == []


# ------------------------------------------------------------------------------------------------ census


async def test_an_empty_store_has_an_empty_census(store: Store) -> None:
    assert await store.census(equal_sections(3), NOW_US) == [Census()] * 3
    assert await store.census([], NOW_US) == []


async def test_the_census_counts_living_events_and_devices_by_section(store: Store) -> None:
    low, high = families_apart(2)
    await keep(
        store,
        *(event(family=low) for _ in range(3)),
        event(family=high, lifetime_s=1.0),
        *(device(family=low) for _ in range(2)),
    )
    edge = key_of(*high)
    sections = [Section(0, edge), Section(edge, HASH_SPACE), EVERYTHING]
    first, second, both = await store.census(sections, NOW_US)
    assert first == Census(5, False, False, key_of(*low))
    assert second == Census(1, False, False, edge)
    assert (both.rows, both.is_empty, both.is_splittable) == (6, False, True)
    assert both.some_key in (key_of(*low), edge)
    later = await store.census(sections, NOW_US + 1_000_000)
    assert later == [first, Census(), first]


async def test_the_hidden_are_not_counted_but_a_section_with_them_is_not_empty(
    store: Store,
) -> None:
    move, one, thing = new_id(), event(), device()
    for transaction in (
        Transaction(1, events=[batch([one], 1, NOW_US, X, move)]),
        Transaction(1, devices=[batch([thing], 1, NOW_US, X, move)]),
    ):
        await store.commit(transaction)
        family = TRUCK if transaction.events else AIRCON
        (counted,) = await store.census([only(family)], NOW_US)
        assert counted == Census(0, is_empty=False, is_splittable=False, some_key=None)
        assert await store.census([only(family)], NOW_US + HOUR_US) == [Census()]
    await store.commit(Transaction(1, revealed=[move]))
    (counted,) = await store.census([EVERYTHING], NOW_US)
    assert (counted.rows, counted.is_splittable) == (2, True)


async def test_a_key_is_drawn_by_the_rows_that_have_it(store: Store) -> None:
    """Section 3.6: the key of a random stored uTuple, so that halves are about equal in rows."""
    many, few = fresh_family(), fresh_family()
    await keep(store, *(event(family=many) for _ in range(40)), event(family=few))
    drawn: Counter[int | None] = Counter()
    for _ in range(30):
        (counted,) = await store.census([EVERYTHING], NOW_US)
        drawn[counted.some_key] += 1
    assert set(drawn) <= {key_of(*many), key_of(*few)}
    assert drawn[key_of(*many)] > drawn[key_of(*few)]


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(question=st.data())
async def test_the_sections_of_a_tiling_share_all_rows(
    store: Store, question: st.DataObject
) -> None:
    families = [fresh_family() for _ in range(question.draw(st.integers(1, 5)))]
    drawn = question.draw(st.lists(st.tuples(st.sampled_from(families), st.booleans()), max_size=9))
    utuples: list[UTuple] = [
        event(family=family) if is_event else device(family=family) for family, is_event in drawn
    ]
    await store.commit(Transaction(1, removed=[EVERYTHING]))
    await keep(store, *utuples)
    sections = equal_sections(question.draw(st.integers(1, 7)))
    for section, counted in zip(sections, await store.census(sections, NOW_US), strict=True):
        inside = [one for one in utuples if key_of(*one.family) in section]
        keys: set[int | None] = {key_of(*one.family) for one in inside}
        assert (counted.rows, counted.is_empty) == (len(inside), not inside)
        assert counted.is_splittable == (len(keys) > 1)
        assert counted.some_key in (keys or {None})
        events = ids_of(await events_of(store, section))
        assert events == [one.id for one in inside if one.kind is Kind.EA]


# ------------------------------------------------------------------------------------------------- notes


async def test_notes_are_kept_replaced_and_forgotten(place: Place, store: Store) -> None:
    await store.commit(Transaction(1, notes={"move": b"\x00\xff", "other": b"", "third": b"3"}))
    await store.commit(Transaction(1, notes={"move": b"2", "third": None, "unknown": None}))
    await store.close()
    second = place.make()
    assert (await second.open(SERVER, NOW_US)).notes == {"move": b"2", "other": b""}


@pytest.mark.parametrize(
    "transaction",
    [
        Transaction(7, notes={"a": None}),
        Transaction(7, revealed=[bytes(16)]),
        Transaction(7, dropped=[b"?" * 16]),
        Transaction(7, removed=[EVERYTHING]),
    ],
)
async def test_a_transaction_of_nothing_else_commits(
    place: Place, store: Store, transaction: Transaction
) -> None:
    assert not transaction.is_empty
    await store.commit(transaction)
    await store.close()
    assert (await place.make().open(SERVER, NOW_US)).seq == 7
