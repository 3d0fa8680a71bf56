"""Searches that find little: all at once, the same as piece by piece."""

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
    keep,
)
from tests.strategies import NOW_US
from utuple.model.area import Circle
from utuple.model.utuple import UTuple
from utuple.store.contract import Batch, Search, Store, Transaction

NEAR = Circle(35.0, 139.0, 300)


async def find(
    store: Store, template: UTuple, chunk_rows: int = 2_000, now_us: int = NOW_US
) -> Batch | None:
    return await store.find(Search(template, 0, FOREVER, now_us, chunk_rows))


async def test_it_finds_what_a_search_finds(store: Store) -> None:
    family = fresh_family()
    rows = [
        event(f"truck-{n}", NOW_US - n, (35.0, 139.0 + n / 1000), {"n": n}, family=family)
        for n in range(9)
    ]
    await keep(store, *rows)
    for asked in (formal(family=family), formal(family=family, area=NEAR)):
        (searched,) = await chunks(store, asked)
        assert await find(store, asked) == searched
    found = await find(store, formal(family=family, area=NEAR))
    assert found is not None and 0 < len(found) < len(rows)


async def test_of_nothing_there_is_nothing(store: Store) -> None:
    family = fresh_family()
    unknown = await find(store, formal(family=family))
    assert unknown is not None and len(unknown) == 0
    await keep(store, event(family=family, lifetime_s=1.0))
    expired = await find(store, formal(family=family), now_us=NOW_US + 1_000_000)
    assert expired is not None and len(expired) == 0


async def test_many_are_left_to_a_search(store: Store) -> None:
    family = fresh_family()
    await keep(store, *[event(family=family) for _ in range(3)])
    assert await find(store, formal(family=family), chunk_rows=3) is None
    found = await find(store, formal(family=family), chunk_rows=4)
    assert found is not None and len(found) == 3


async def test_what_is_there_twice_is_left_to_whoever_drops_repeats(store: Store) -> None:
    """A first attempt that was late on its way came behind its retry."""
    family = fresh_family()
    one, other = event(family=family), event(family=family)
    await store.commit(Transaction(3, [batch([one, other, one])]))
    assert await find(store, formal(family=family)) is None
    assert sum(map(len, await chunks(store, formal(family=family)))) == 3


async def test_a_search_that_is_known_to_be_large_finds_the_same(store: Store) -> None:
    family = fresh_family()
    await keep(store, *[event(family=family, position=(35.0, 139.0)) for _ in range(5)])
    asked = formal(family=family)
    large = Search(asked, 0, FOREVER, NOW_US, is_large=True)
    assert [batch async for batch in store.search(large)] == await chunks(store, asked)
    nothing = Search(formal(family=fresh_family()), 0, FOREVER, NOW_US, is_large=True)
    assert [batch async for batch in store.search(nothing)] == []


async def test_they_come_in_seq_order_however_they_lie(store: Store) -> None:
    family = fresh_family()
    late, early = event(family=family, time_us=NOW_US), event(family=family, time_us=NOW_US - 60)
    await keep(store, late, first_seq=1)
    await keep(store, early, first_seq=2)
    found = await find(store, formal(family=family, since_us=NOW_US - 99, until_us=NOW_US + 1))
    assert found is not None and list(found.columns.each_id()) == [late.id, early.id]


async def test_devices_are_found_by_commands(store: Store) -> None:
    thing = device()
    await keep(store, thing)
    found = await find(store, command())
    assert found is not None and list(found.columns.each_id()) == [thing.id]


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
