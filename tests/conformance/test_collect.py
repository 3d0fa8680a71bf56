"""Collection drops what has expired, whole leaves at a time, and is in nobody's way."""

from __future__ import annotations

from contextlib import aclosing

from tests.conformance.building import (
    FOREVER,
    HOUR_S,
    SERVER,
    Place,
    command,
    device,
    event,
    formal,
    ids_found,
    ids_of_devices,
    keep,
    stored,
)
from tests.strategies import NOW_US
from utuple.store.contract import FormalPosition, Search, Store, Transaction
from utuple.store.postgres.partitions import Leaf, Partitions
from utuple.store.postgres.session import Sessions
from utuple.store.postgres.store import PostgresStore

DAY_US = 86_400 * 1_000_000
NEXT_DAY_US = NOW_US + DAY_US


async def test_collecting_removes_nothing_that_lives(store: Store) -> None:
    utuples = [event(lifetime_s=HOUR_S), event(lifetime_s=366 * 86_400.0), device()]
    await keep(store, *utuples)
    assert await store.collect(NOW_US) == 0
    assert await ids_found(store, formal()) == [one.id for one in utuples[:2]]
    assert await ids_of_devices(store) == [utuples[2].id]


async def test_collecting_drops_dead_events_and_keeps_the_living(store: Store) -> None:
    dead, alive = event(lifetime_s=60.0), event(lifetime_s=366 * 86_400.0)
    await keep(store, dead, alive)
    assert await store.collect(NEXT_DAY_US) == 1
    assert await store.collect(NEXT_DAY_US) == 0
    assert await ids_found(store, formal()) == [alive.id], "the dead are gone at any time"


async def test_collecting_removes_dead_formals_with_their_positions(
    place: Place, store: Store
) -> None:
    dead, alive, thing = formal(), formal(), device(lifetime_s=1.0)
    await keep(store, thing)
    await store.commit(
        Transaction(
            3,
            templates=[stored(dead, 2, NOW_US + 1), stored(alive, 3, NEXT_DAY_US + 1)],
            positions=[FormalPosition(one.id, "", 1) for one in (dead, alive, thing)],
        )
    )
    await store.collect(NEXT_DAY_US)
    assert await ids_found(store, command(), now_us=NOW_US) == []
    await store.commit(Transaction(4, templates=[stored(dead, 4)]))
    await store.close()
    recovered = await place.make().open(SERVER, NOW_US)
    assert [one.utuple.id for one in recovered.templates] == [alive.id, dead.id]
    assert list(recovered.positions) == [FormalPosition(alive.id, "", 1)]


async def test_events_can_be_stored_again_where_a_leaf_was_dropped(store: Store) -> None:
    await keep(store, event(lifetime_s=60.0))
    await store.collect(NEXT_DAY_US)
    again = event(lifetime_s=60.0)
    await keep(store, again, first_seq=2)
    assert await ids_found(store, formal()) == [again.id]


async def test_stats_count_what_is_there(store: Store) -> None:
    empty = await store.stats()
    assert (empty.events, empty.partitions) == (0, 0)
    await keep(store, event(lifetime_s=60.0), event(lifetime_s=60.0))
    some = await store.stats()
    assert (some.events, some.partitions) == (2, 1)
    assert some.size_bytes > empty.size_bytes
    await store.collect(NEXT_DAY_US)
    assert (await store.stats()).events == 0


async def test_a_reader_in_a_leaf_keeps_it_until_the_next_collection(real: PostgresStore) -> None:
    events = [event(lifetime_s=60.0) for _ in range(50)]
    await keep(real, *events)
    asked = Search(formal(), 0, FOREVER, NOW_US, chunk_rows=10)
    async with aclosing(real.search(asked)) as reading:
        seen = [await anext(reading)]
        assert await real.collect(NEXT_DAY_US) == 0, "the reader is in it"
        seen += [part async for part in reading]
    assert [id_ for part in seen for id_ in part.columns.each_id()] == [one.id for one in events]
    assert await real.collect(NEXT_DAY_US) == 1


async def test_dead_devices_go_in_several_pieces(real: PostgresStore) -> None:
    await keep(real, *(device(lifetime_s=1.0) for _ in range(4_500)), device())
    await real.collect(NOW_US + 1_000_000)
    assert len(await ids_of_devices(real, NOW_US)) == 1


async def test_a_leaf_the_writer_is_about_to_fill_is_left_alone(
    database: str, real: PostgresStore
) -> None:
    leaf, partitions = Leaf(300, 1), Partitions()
    async with await Sessions(database, "test").connect("test") as connection:
        await partitions.make(connection, [leaf])
        partitions.committed({leaf: 1})
        assert not await partitions.drop(connection, leaf)
        partitions.release()
        assert await partitions.drop(connection, leaf)
        assert (partitions.count, partitions.rows) == (0, 0)
