"""What a drain brings: hidden until it is revealed, then found by its origin (design, section 6)."""

from __future__ import annotations

from tests.conformance.building import (
    HOUR_S,
    SERVER,
    TRUCK,
    Place,
    batch,
    chunks,
    command,
    device,
    event,
    formal,
    fresh_family,
    ids_found,
    ids_of_devices,
    keep,
    new_id,
    stored,
)
from tests.strategies import NOW_US
from utuple.model.section import Section
from utuple.model.utuple import Exact, UTuple
from utuple.store.contract import FormalPosition, RetryKey, Store, Transaction

EVERYTHING = Section(0, 1 << 64)
HOUR_US = 3_600 * 1_000_000
DAYS_US = 40 * 86_400 * 1_000_000
X, Z = "server-x", "server-z"


def copy_of(one: UTuple, address: str, lifetime_s: float = HOUR_S) -> UTuple:
    """The same CF as another server may have it."""
    return UTuple(one.id, one.family, Exact(address, NOW_US), None, {}, lifetime_s, one.reader)


async def bring(
    store: Store, move: bytes, *utuples: UTuple, origin: str = X, first_seq: int = 1
) -> None:
    await store.commit(Transaction(9, events=[batch(utuples, first_seq, NOW_US, origin, move)]))


# ------------------------------------------------------------------------------------------------- EAs


async def test_shadows_are_hidden_until_their_move_is_revealed(store: Store) -> None:
    move, own, brought = new_id(), event(), event()
    await keep(store, own)
    await bring(store, move, brought)
    for origin, expected in (("", [own.id]), (X, [])):
        assert await ids_found(store, formal(), origin) == expected
    assert await store.origins() == {}
    await store.commit(Transaction(9, revealed=[move]))
    for origin, expected in (("", [own.id]), (X, [brought.id]), (Z, [])):
        assert await ids_found(store, formal(), origin) == expected
    assert await store.origins() == {X: 1}


async def test_the_last_shadows_may_come_with_the_commit_that_reveals_them(store: Store) -> None:
    move, brought, thing = new_id(), event(), device()
    shadows = batch([brought], 5, NOW_US, X, move), batch([thing], 6, NOW_US, X, move)
    await store.commit(
        Transaction(6, events=shadows[:1], devices=shadows[1:], revealed=[move, new_id()])
    )
    assert await ids_found(store, formal(), X) == [brought.id]
    assert await ids_found(store, command()) == [thing.id]


async def test_moved_events_keep_origin_seq_and_expiry_in_the_order_of_their_origin(
    store: Store,
) -> None:
    """Two moves bring parts of one origin, and their seqs interleave."""
    first, second = new_id(), new_id()
    rows = [event(f"truck-{n}", lifetime_s=60.0 * (n + 1), data={"n": n}) for n in range(6)]
    for number in (1, 3, 5, 0, 2, 4):
        move = first if number % 2 else second
        await bring(store, move, rows[number], first_seq=100 + number)
    await store.commit(Transaction(9, revealed=[first, second]))
    found = await chunks(store, formal(), after=100, upto=104, chunk_rows=3, origin=X)
    assert [list(part.seqs) for part in found] == [[101, 102, 103], [104]]
    assert {part.origin for part in found} == {X}
    assert list(found[0].columns.lifetimes_us) == [0, 0, 0]
    assert list(found[0].columns.addresses) == ["truck-1", "truck-2", "truck-3"]
    assert await store.origins() == {X: 105}


async def test_origins_do_not_meet_though_their_seqs_do(store: Store) -> None:
    move, own, of_x, of_z = new_id(), event(), event(), event()
    await keep(store, own, first_seq=1)
    await bring(store, move, of_x, origin=X, first_seq=1)
    await bring(store, move, of_z, origin=Z, first_seq=1)
    await store.commit(Transaction(9, revealed=[move]))
    for origin, one in (("", own), (X, of_x), (Z, of_z)):
        (found,) = await chunks(store, formal(), origin=origin)
        assert (list(found.columns.each_id()), found.origin) == ([one.id], origin)


async def test_a_moved_event_may_be_written_in_the_open(store: Store) -> None:
    one = event()
    await store.commit(Transaction(1, events=[batch([one], 7, origin=X), batch([event()], 1)]))
    assert await ids_found(store, formal(), X) == [one.id]
    assert await store.origins() == {X: 7}


async def test_a_copy_is_resumed_after_the_highest_seq_of_each_origin(store: Store) -> None:
    move, other = new_id(), new_id()
    await keep(store, event(), first_seq=500)
    await bring(store, move, event(), event(), first_seq=3)
    await bring(store, move, event(), origin=Z, first_seq=40)
    await bring(store, other, event(), first_seq=90)
    assert await store.shadows(move) == {X: 4, Z: 40}
    assert await store.shadows(new_id()) == {}
    await bring(store, move, event(), first_seq=5)
    assert await store.shadows(move) == {X: 5, Z: 40}
    await store.commit(Transaction(9, revealed=[move]))
    assert (await store.shadows(move), await store.shadows(other)) == ({}, {X: 90})
    assert await store.origins() == {X: 5, Z: 40}


async def test_what_is_dropped_is_gone_and_what_is_revealed_is_not(store: Store) -> None:
    kept, gone = new_id(), new_id()
    rows = [event() for _ in range(4)]
    await bring(store, kept, rows[0], first_seq=1)
    await bring(store, gone, rows[1], first_seq=2)
    await bring(store, gone, rows[2], origin=Z, first_seq=2)
    await store.commit(Transaction(9, revealed=[kept]))
    await store.commit(Transaction(9, dropped=[kept, gone, new_id()]))
    assert await store.shadows(gone) == {}
    await store.commit(Transaction(9, revealed=[gone]))
    assert await ids_found(store, formal(), X) == [rows[0].id]
    assert await store.known_events([RetryKey(TRUCK, NOW_US, rows[1].id)]) == {}
    await bring(store, gone, rows[3], first_seq=2)
    assert await store.shadows(gone) == {X: 2}, "a dropped move may begin again"
    assert await ids_found(store, formal(), X) == [rows[0].id], "and is hidden again"


async def test_a_dropped_move_may_begin_again_in_the_same_commit(store: Store) -> None:
    move, old, new = new_id(), event(), event()
    await bring(store, move, old)
    again = [batch([new], 1, NOW_US, X, move)]
    await store.commit(Transaction(9, events=again, dropped=[move], revealed=[move]))
    assert await ids_found(store, formal(), X) == [new.id]


async def test_shadows_that_come_after_the_reveal_wait_for_the_next(store: Store) -> None:
    move, first, late = new_id(), event(), event()
    await bring(store, move, first)
    await store.commit(Transaction(9, revealed=[move]))
    await bring(store, move, late, first_seq=2)
    assert await ids_found(store, formal(), X) == [first.id]
    await store.commit(Transaction(9, revealed=[move]))
    assert await ids_found(store, formal(), X) == [first.id, late.id]


async def test_retries_find_events_of_every_origin_hidden_or_not(store: Store) -> None:
    shown, hidden = new_id(), new_id()
    rows = [event(), event(), event()]
    await keep(store, rows[0])
    await bring(store, shown, rows[1])
    await bring(store, hidden, rows[2], origin=Z)
    await store.commit(Transaction(9, revealed=[shown]))
    asked = [RetryKey(TRUCK, NOW_US, one.id) for one in rows]
    assert set(await store.known_events(asked)) == {one.id for one in rows}


async def test_shadows_expire_and_are_collected_like_others(store: Store) -> None:
    shown, hidden = new_id(), new_id()
    await bring(store, shown, event(lifetime_s=HOUR_S))
    await bring(store, hidden, event(lifetime_s=HOUR_S), event(lifetime_s=90 * 86_400.0))
    await store.commit(Transaction(9, revealed=[shown]))
    assert await ids_found(store, formal(), X, now_us=NOW_US + HOUR_US) == []
    assert await store.collect(NOW_US + DAYS_US) > 0
    assert (await store.origins(), await store.shadows(hidden)) == ({}, {X: 2})
    assert (await store.stats()).events == 1
    await store.commit(Transaction(9, revealed=[hidden]))
    assert len(await ids_found(store, formal(), X)) == 1


async def test_moves_outlive_the_process(place: Place, store: Store) -> None:
    shown, hidden, brought, later = new_id(), new_id(), event(), event()
    await bring(store, shown, brought, first_seq=7)
    await bring(store, hidden, later, first_seq=8)
    await store.commit(Transaction(9, revealed=[shown]))
    await store.close()
    second = place.make()
    assert (await second.open(SERVER, NOW_US)).origins == {X: 7}
    assert await second.shadows(hidden) == {X: 8}
    assert await ids_found(second, formal(), X) == [brought.id]
    await bring(second, hidden, event("last"), first_seq=9)
    await second.commit(Transaction(9, revealed=[hidden]))
    assert len(await ids_found(second, formal(), X)) == 3


# ------------------------------------------------------------------------------------------------- CFs


async def test_shadow_devices_are_hidden_until_revealed_and_found_by_any_search(
    store: Store,
) -> None:
    move, own, brought = new_id(), device("room-1"), device("room-2")
    await keep(store, own, first_seq=1)
    await store.commit(Transaction(2, devices=[batch([brought], 2, NOW_US, X, move)]))
    for ids in (await ids_found(store, command()), await ids_of_devices(store)):
        assert ids == [own.id]
    assert [part async for part in store.devices(NOW_US, [brought.id])] == []
    assert set(await store.known_devices([own.id, brought.id])) == {own.id, brought.id}
    await store.commit(Transaction(2, revealed=[move]))
    for ids in (await ids_found(store, command()), await ids_of_devices(store)):
        assert ids == [own.id, brought.id]
    (found,) = await chunks(store, command(), origin="whose does not matter")
    assert (list(found.seqs), found.origin) == ([1, 2], "")
    assert list(found.columns.lifetimes_us) == [HOUR_US, HOUR_US]
    assert await store.origins() == {}, "CFs have no seqs but this server's"


async def test_dropped_devices_are_gone_with_their_positions(place: Place, store: Store) -> None:
    move, gone, kept = new_id(), device(), device()
    await keep(store, kept)
    await store.commit(
        Transaction(
            2,
            devices=[batch([gone], 2, NOW_US, "", move)],
            positions=[FormalPosition(one.id, "", 1) for one in (gone, kept)],
        )
    )
    await store.commit(Transaction(2, dropped=[move]))
    await store.commit(Transaction(3, devices=[batch([gone], 3)]))
    assert await ids_of_devices(store) == [kept.id, gone.id]
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert list(recovered.positions) == [FormalPosition(kept.id, "", 1)]


async def test_a_shadow_never_takes_the_place_of_a_device_that_is_here(store: Store) -> None:
    move, here = new_id(), device("here")
    there = copy_of(here, "there", lifetime_s=60.0)
    await keep(store, here)
    await store.commit(Transaction(2, devices=[batch([there], 2, NOW_US, X, move)]))
    for ending in (Transaction(2, dropped=[move]), Transaction(2, revealed=[move])):
        await store.commit(ending)
        (found,) = await chunks(store, command())
        assert (list(found.columns.addresses), list(found.seqs)) == (["here"], [1])
        assert list(found.expires_us) == [NOW_US + HOUR_US]


async def test_a_device_renewed_at_the_drained_server_lives_on(store: Store) -> None:
    """It was registered here once, and then kept alive there: what was answered there counts."""
    move, here = new_id(), device("here", lifetime_s=60.0)
    await keep(store, here)
    there = copy_of(here, "there", lifetime_s=2 * HOUR_S)
    await store.commit(Transaction(2, devices=[batch([there], 2, NOW_US, X, move)]))
    await store.commit(Transaction(2, revealed=[move]))
    (found,) = await chunks(store, command(), now_us=NOW_US + HOUR_US)
    assert list(found.columns.addresses) == ["here"]


async def test_a_device_registered_here_replaces_its_shadow(store: Store) -> None:
    move, brought = new_id(), device("there")
    here = copy_of(brought, "here")
    await store.commit(Transaction(1, devices=[batch([brought], 1, NOW_US, X, move)]))
    await store.commit(Transaction(2, devices=[batch([here], 2)]))
    await store.commit(Transaction(2, dropped=[move]))
    (found,) = await chunks(store, command())
    assert (list(found.columns.addresses), list(found.seqs)) == (["here"], [2])


async def test_a_device_registered_beside_its_shadow_in_one_commit_stays(store: Store) -> None:
    for is_first in (True, False):
        here = device("here", lifetime_s=60.0, family=fresh_family())
        there = copy_of(here, "there", lifetime_s=HOUR_S)
        both = [batch([here], 1), batch([there], 2, NOW_US, X, new_id())]
        await store.commit(Transaction(2, devices=both if is_first else both[::-1]))
        (found,) = await chunks(store, command(family=here.family))
        assert list(found.columns.addresses) == ["here"]
        assert list(found.expires_us) == [NOW_US + HOUR_US], "it lives as long as either"


async def test_of_two_shadows_of_one_device_the_later_counts(store: Store) -> None:
    first, second, old = new_id(), new_id(), device("old")
    new = copy_of(old, "new")
    await store.commit(Transaction(1, devices=[batch([old], 1, NOW_US, X, first)]))
    await store.commit(Transaction(2, devices=[batch([new], 2, NOW_US, X, second)]))
    await store.commit(Transaction(2, dropped=[first], revealed=[second]))
    (found,) = await chunks(store, command())
    assert (list(found.columns.addresses), list(found.seqs)) == (["new"], [2])


async def test_a_cancelled_device_is_forgotten_though_it_is_a_shadow(store: Store) -> None:
    move, thing = new_id(), device()
    await store.commit(Transaction(1, devices=[batch([thing], 1, NOW_US, X, move)]))
    await store.commit(Transaction(2, cancelled=[thing.id]))
    await store.commit(Transaction(2, revealed=[move]))
    assert await ids_of_devices(store) == []


# --------------------------------------------------------------------------------------------- templates


async def test_templates_and_positions_are_no_part_of_a_move(place: Place, store: Store) -> None:
    move, asked = new_id(), formal()
    position = FormalPosition(asked.id, X, 3)
    await store.commit(Transaction(1, templates=[stored(asked)], positions=[position]))
    await bring(store, move, event())
    await store.commit(Transaction(9, dropped=[move], removed=[EVERYTHING]))
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert [kept.utuple.id for kept in recovered.templates] == [asked.id]
    assert list(recovered.positions) == [position]
