"""Searches that find little, which a store may answer in one round trip: the same as any other search."""

from __future__ import annotations

from tests.conformance.building import (
    FOREVER,
    batch,
    chunks,
    command,
    device,
    event,
    formal,
    fresh_family,
    ids_of,
    keep,
)
from tests.strategies import NOW_US
from utuple.model.utuple import UTuple
from utuple.store.contract import Search, Store, Transaction


async def test_of_nothing_there_is_nothing(store: Store) -> None:
    family = fresh_family()
    assert await chunks(store, formal(family=family)) == []
    await keep(store, event(family=family, lifetime_s=1.0))
    assert await chunks(store, formal(family=family), now_us=NOW_US + 1_000_000) == []


async def test_one_row_more_or_less_than_a_chunk_makes_no_difference(store: Store) -> None:
    family = fresh_family()
    rows = [event(family=family, position=(35.0, 139.0)) for _ in range(3)]
    await keep(store, *rows)
    for chunk_rows in (2, 3, 4):
        found = await chunks(store, formal(family=family), chunk_rows=chunk_rows)
        assert ids_of(found) == [row.id for row in rows]


async def test_what_is_there_twice_is_found_twice(store: Store) -> None:
    """A first attempt that was late on its way came behind its retry. Whoever reads drops repeats."""
    family = fresh_family()
    one, other = event(family=family), event(family=family)
    await store.commit(Transaction(3, [batch([one, other, one])]))
    assert ids_of(await chunks(store, formal(family=family))) == [one.id, other.id, one.id]


async def test_they_come_in_seq_order_however_they_lie(store: Store) -> None:
    family = fresh_family()
    late, early = event(family=family, time_us=NOW_US), event(family=family, time_us=NOW_US - 60)
    await keep(store, late, first_seq=1)
    await keep(store, early, first_seq=2)
    asked = formal(family=family, since_us=NOW_US - 99, until_us=NOW_US + 1)
    assert ids_of(await chunks(store, asked)) == [late.id, early.id]


async def test_devices_are_found_by_commands(store: Store) -> None:
    thing = device()
    await keep(store, thing)
    assert ids_of(await chunks(store, command())) == [thing.id]


async def test_matches_are_counted_up_to_what_it_is_worth(store: Store) -> None:
    """Of what a reader would be given: its own family, after its position, alive."""
    family = fresh_family()
    await keep(store, *[event(f"a-{n}", family=family) for n in range(7)])
    await keep(store, *[event("other") for _ in range(5)], first_seq=8)
    await keep(store, event("dead", family=family, lifetime_s=1.0), first_seq=13)

    async def count(after: int, most: int, asked: UTuple) -> int | None:
        return await store.count(Search(asked, after, FOREVER, NOW_US + 1_000_000), most)

    wanted = formal(family=family)
    assert [await count(after, 100, wanted) for after in (0, 3, 7, 13)] == [7, 4, 0, 0]
    assert await count(0, 5, wanted) == 5
    assert await count(0, 100, formal(family=fresh_family())) == 0
