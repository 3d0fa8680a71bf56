"""What a transaction does: all of it or nothing, and durably what was answered."""

from __future__ import annotations

from tests.conformance.building import (
    AIRCON,
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
    stored,
)
from tests.strategies import NOW_US
from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.model.condition import Equal, TypeIs
from utuple.model.section import Section
from utuple.model.utuple import Exact, UTuple
from utuple.store.contract import (
    FormalPosition,
    Known,
    RetryKey,
    Store,
    Transaction,
)

LATER_US = NOW_US + 2 * 3_600 * 1_000_000


async def opened_again(place: Place, store: Store, now_us: int = NOW_US) -> list[bytes]:
    """Ids of the templates a next process would get."""
    await store.close()
    recovered = await place.make().open(SERVER, now_us)
    return [kept.utuple.id for kept in recovered.templates]


# ------------------------------------------------------------------------------- devices and templates


async def test_a_device_registered_again_is_replaced(store: Store) -> None:
    first = device("room-101", {"on": TypeIs("bool")})
    again = UTuple(
        first.id, AIRCON, Exact("room-102", NOW_US + 5), None, {"on": Equal(1)}, 60.0, "other"
    )
    await keep(store, first)
    await keep(store, again, first_seq=2)
    (found,) = await chunks(store, command(data={"on": 1}))
    assert found.columns.utuple_at(0, again.kind) == again
    assert (list(found.seqs), list(found.expires_us)) == ([2], [NOW_US + 60_000_000])
    assert await ids_found(store, command(data={"on": True})) == []


async def test_the_last_of_two_devices_with_one_id_in_a_transaction_counts(store: Store) -> None:
    first = device("room-101")
    again = UTuple(first.id, AIRCON, Exact("room-102", NOW_US), None, {}, HOUR_S, "driver")
    await store.commit(Transaction(2, devices=[batch([first], 1), batch([again], 2)]))
    (found,) = await chunks(store, command())
    assert list(found.columns.addresses) == ["room-102"]


async def test_a_template_registered_again_is_replaced(place: Place, store: Store) -> None:
    asked = formal()
    await store.commit(Transaction(1, templates=[stored(asked, 1)]))
    await store.commit(Transaction(2, templates=[stored(asked, 2, LATER_US)]))
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert list(recovered.templates) == [stored(asked, 2, LATER_US)]


async def test_many_templates_are_kept_also_where_some_were_there(
    place: Place, store: Store
) -> None:
    """One that expired and was not collected yet, and one that is alive, among 300."""
    asked = [formal(reader=f'Ärger "\\ {n}') for n in range(299)] + [command()]
    asked.sort(key=lambda one: one.id)
    await store.commit(Transaction(1, templates=[stored(asked[7], 1, NOW_US - 1)]))
    await store.commit(Transaction(2, templates=[stored(asked[8], 2)]))
    many = [stored(one, 3, LATER_US) for one in asked]
    await store.commit(Transaction(3, templates=many))
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert list(recovered.templates) == many


async def test_devices_of_every_family_are_listed_and_picked_by_id(store: Store) -> None:
    things = [device(), device(family=TRUCK), device(lifetime_s=1.0)]
    await keep(store, *things)
    ids = [one.id for one in things]
    assert await ids_of_devices(store) == ids
    assert await ids_of_devices(store, NOW_US + 1_000_000) == ids[:2]
    picked = [one async for one in store.devices(NOW_US, [ids[1], b"?" * 16])]
    assert [one.columns.utuple_at(0, things[1].kind) for one in picked] == [things[1]]
    assert [one async for one in store.devices(NOW_US, [])] == []


# ----------------------------------------------------------------------------- cancelling and renewing


async def test_what_is_cancelled_is_forgotten_with_its_positions(
    place: Place, store: Store
) -> None:
    gone, kept, thing = formal(), formal(), device()
    await keep(store, thing)
    positions = [FormalPosition(one.id, "", 1) for one in (gone, kept, thing)]
    await store.commit(Transaction(2, templates=[stored(gone), stored(kept)], positions=positions))
    await store.commit(Transaction(2, cancelled=[gone.id, thing.id, b"unknown-unknown-"]))
    assert await ids_of_devices(store) == []
    await store.close()
    second = place.make()
    recovered = await second.open(SERVER, NOW_US)
    assert [one.utuple.id for one in recovered.templates] == [kept.id]
    await second.commit(Transaction(3, templates=[stored(gone)]))
    await second.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert [one.formal for one in recovered.positions] == [kept.id]


async def test_a_formal_cancelled_and_registered_in_one_transaction_is_kept(
    place: Place, store: Store
) -> None:
    """The writer's order within a batch: cancels first."""
    asked, thing = formal(), device()
    await store.commit(
        Transaction(
            2,
            templates=[stored(asked)],
            devices=[batch([thing], 2)],
            cancelled=[asked.id, thing.id],
        )
    )
    assert await ids_of_devices(store) == [thing.id]
    assert await opened_again(place, store) == [asked.id]


async def test_the_renewed_live_on_and_the_others_do_not(place: Place, store: Store) -> None:
    renewed, left, thing, other = formal(), formal(), device(), device()
    await keep(store, thing, other)
    await store.commit(Transaction(2, templates=[stored(renewed), stored(left)]))
    again = [(renewed.id, LATER_US), (thing.id, LATER_US), (b"unknown-unknown-", LATER_US)]
    await store.commit(Transaction(2, renewed=again))
    assert await ids_of_devices(store, LATER_US - 1) == [thing.id]
    assert await ids_found(store, command(), now_us=LATER_US - 1) == [thing.id]
    assert await opened_again(place, store, LATER_US - 1) == [renewed.id]


# -------------------------------------------------------------------------------------------- positions


async def test_positions_only_grow_and_each_origin_has_its_own(place: Place, store: Store) -> None:
    asked = formal()
    await store.commit(Transaction(9, templates=[stored(asked)]))
    for seqs in ([5], [3], [9, 8], [6], [4, 7]):
        positions = [FormalPosition(asked.id, "", seq) for seq in seqs]
        await store.commit(Transaction(9, positions=positions))
    await store.commit(Transaction(9, positions=[FormalPosition(asked.id, "server-2", 1)]))
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    expected = {FormalPosition(asked.id, "", 9), FormalPosition(asked.id, "server-2", 1)}
    assert set(recovered.positions) == expected


async def test_positions_of_formals_that_are_not_there_are_ignored(
    place: Place, store: Store
) -> None:
    asked = formal()
    await store.commit(Transaction(1, positions=[FormalPosition(asked.id, "", 5)]))
    await store.commit(Transaction(1, templates=[stored(asked)]))
    await store.close()
    assert list((await place.make().open(SERVER, NOW_US)).positions) == []


# ------------------------------------------------------------------------------------- seq, lines, retries


async def test_the_seq_is_kept_even_when_no_row_is(place: Place, store: Store) -> None:
    await store.commit(Transaction(41))
    await store.commit(Transaction(42, cancelled=[b"unknown-unknown-"]))
    await store.close()
    assert (await place.make().open(SERVER, NOW_US)).seq == 42


async def test_lines_and_servers_are_replaced_as_a_whole(place: Place, store: Store) -> None:
    middle = 1 << 63
    low = Line(Section(0, middle), 3, (Member("server-1"), Member("s2", False, True)))
    cut = Layout((Axis("address", ("m",), (("s2",), ("s2",))),))
    high = Line(Section(middle, 1 << 64), 1, (Member("s2"),), cut)
    servers = [ServerInfo("s2", "127.0.0.1:7402", since_us=5), ServerInfo("sca", "h:1", "sca")]
    await store.commit(Transaction(1, lines=[high, low], servers=servers))
    await store.commit(Transaction(2))
    await store.close()
    second = place.make()
    recovered = await second.open(SERVER, NOW_US)
    assert (list(recovered.lines), list(recovered.servers)) == ([low, high], servers)
    await second.commit(Transaction(3, lines=[high], servers=[]))
    await second.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert (list(recovered.lines), list(recovered.servers)) == ([high], [])


async def test_retries_find_what_is_stored_by_family_time_and_id(store: Store) -> None:
    one, other = event(data={"kg": 1.0}), event("truck-2", time_us=NOW_US + 1)
    thing = device(where={"on": TypeIs("bool")})
    await keep(store, one, other, thing)
    asked = [
        RetryKey(TRUCK, NOW_US, one.id),
        RetryKey(TRUCK, NOW_US + 1, other.id),
        RetryKey(TRUCK, NOW_US, event().id),
        RetryKey(AIRCON, NOW_US, one.id),
    ]
    assert await store.known_events(asked) == {
        one.id: Known(one.id, "truck-1", b'{"kg":1.0}'),
        other.id: Known(other.id, "truck-2", b"{}"),
    }
    known = await store.known_devices([thing.id, one.id])
    wanted = b'{"on":["type","bool"]}'
    assert known == {thing.id: Known(thing.id, "room-101", wanted, thing.reader)}
    assert await store.known_events([RetryKey(TRUCK, NOW_US, event().id)]) == {}
    assert (await store.known_events([]), await store.known_devices([])) == ({}, {})


async def test_each_batch_numbers_its_own_families(store: Store) -> None:
    families = [fresh_family() for _ in range(3)]
    events = [event(family=family) for family in (*families, families[0])]
    things = [device(family=family) for family in families]
    batches = [batch(events[:2], 1), batch(events[2:3], 3), batch(events[3:], 4)]
    await store.commit(
        Transaction(9, events=batches, devices=[batch(things[:1], 5), batch(things[1:], 6)])
    )
    for number, family in enumerate(families):
        expected = [one.id for one in events if one.family == family]
        assert await ids_found(store, formal(family=family)) == expected
        assert await ids_found(store, command(family=family)) == [things[number].id]


async def test_events_of_every_lifetime_lie_side_by_side(store: Store) -> None:
    lifetimes = [
        1.0,
        HOUR_S,
        HOUR_S + 1,
        86_400.0,
        30 * 86_400.0,
        366 * 86_400.0,
        50 * 366 * 86_400.0,
    ]
    events = [event(f"truck-{number}", lifetime_s=s) for number, s in enumerate(lifetimes * 2)]
    await keep(store, *events)
    assert await ids_found(store, formal()) == [one.id for one in events]
    alive = [one.id for one in events if one.lifetime_s > HOUR_S]
    hour_us = int(HOUR_S) * 1_000_000
    assert await ids_found(store, formal(), now_us=NOW_US + hour_us) == alive
