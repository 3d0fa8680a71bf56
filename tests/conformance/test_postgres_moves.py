"""How PostgreSQL bears moves of load: leaves, numbers, long readings, and a census of large tables."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.building import (
    AIRCON,
    SERVER,
    TRUCK,
    batch,
    device,
    event,
    formal,
    fresh_family,
    ids_found,
    ids_of,
    keep,
    new_id,
)
from tests.strategies import NOW_US
from utuple.errors import UTupleError
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.section import Section, equal_sections
from utuple.model.utuple import UTuple
from utuple.store.contract import Census, Transaction
from utuple.store.postgres import origins
from utuple.store.postgres.searching import census, portals, sections
from utuple.store.postgres.searching.conditions import found
from utuple.store.postgres.session import Sessions
from utuple.store.postgres.statements import compiled
from utuple.store.postgres.store import PostgresStore

EVERYTHING = Section(0, HASH_SPACE)
DAY_US = 86_400 * 1_000_000
HALF_AN_HOUR_US = 1_800 * 1_000_000
X = "server-x"


async def bring(
    store: PostgresStore, move: bytes, *utuples: UTuple, first_seq: int = 1, origin: str = X
) -> None:
    await store.commit(Transaction(9, events=[batch(utuples, first_seq, NOW_US, origin, move)]))


def numbers_in(dsn: str) -> list[int]:
    with psycopg.connect(dsn) as connection:
        query = "SELECT number FROM utuple.origins ORDER BY number"
        return [number for (number,) in connection.execute(query).fetchall()]


# ------------------------------------------------------------------------------------ leaves and numbers


async def test_long_lived_events_are_brought_into_few_leaves(real: PostgresStore) -> None:
    """A moved EA has no lifetime, only an expiry: a year of them must not make leaves of minutes."""
    rows = [event(lifetime_s=86_400.0 * days) for days in range(1, 361)]
    await bring(real, new_id(), *rows)
    assert (await real.stats()).partitions < 60


async def test_searches_of_own_and_of_brought_events_read_each_their_own_leaves(
    database: str, real: PostgresStore
) -> None:
    await keep(real, event())
    await bring(real, new_id(), event())
    plans: list[str] = []
    async with await Sessions(database, "test").connect("test") as connection:
        for origin in ("", X):
            asked = compiled(found(formal(), 1, 0, 9, NOW_US, origin))
            explained = await connection.execute(b"EXPLAIN " + asked.text, asked.parameters)
            plans.append("\n".join(line for (line,) in await explained.fetchall()))
    read = [set(re.findall(r" on (events_\d+_\d+(?:_moved)?)", plan)) for plan in plans]
    own = {f"events_300_{(NOW_US + 2 * HALF_AN_HOUR_US) // 300_000_000}"}
    assert read == [own, {f"{leaf}_moved" for leaf in own}]


async def test_numbers_are_given_again_once_nothing_of_them_is_left(
    database: str, real: PostgresStore
) -> None:
    first, second, third = new_id(), new_id(), new_id()
    await bring(real, first, event(), origin=X)
    await bring(real, second, event(lifetime_s=60.0), origin="z")
    await bring(real, second, event(lifetime_s=60.0), first_seq=2, origin="z")
    assert numbers_in(database) == [1, 2], "one for each origin and move"
    await real.commit(Transaction(9, dropped=[first], revealed=[second]))
    assert numbers_in(database) == [2]
    await real.commit(Transaction(9, devices=[batch([device()], 9, NOW_US, "", third)]))
    assert numbers_in(database) == [1, 2]
    await real.collect(NOW_US + HALF_AN_HOUR_US)
    assert numbers_in(database) == [1], "all that the second move brought has expired"
    await real.commit(Transaction(9, revealed=[third]))
    await real.collect(NOW_US + HALF_AN_HOUR_US)
    assert numbers_in(database) == [1], "its device lives"
    await real.collect(NOW_US + DAY_US)
    assert numbers_in(database) == []


async def test_more_moves_than_numbers_are_refused_and_leave_nothing(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "NUMBERS_MAX", 1)
    await bring(real, new_id(), event())
    with pytest.raises(UTupleError, match="no room"):
        await bring(real, new_id(), event())
    await real.open(SERVER, NOW_US)
    assert (await real.stats()).events == 1


async def test_collecting_and_removing_side_by_side_disturb_neither(real: PostgresStore) -> None:
    rounds = 15

    async def write() -> None:
        for number in range(rounds):
            now_us = NOW_US + number * HALF_AN_HOUR_US
            short = batch([event(lifetime_s=60.0)], 1_000 + number, now_us)
            moved = batch([event(lifetime_s=60.0)], number, now_us, X, new_id())
            await real.commit(
                Transaction(
                    1_000 + number,
                    events=[short, moved],
                    removed=[EVERYTHING],
                    dropped=[moved.shadow],
                )
            )

    async def collect() -> None:
        for number in range(rounds):
            await real.collect(NOW_US + number * HALF_AN_HOUR_US)

    await asyncio.gather(write(), collect())
    await real.collect(NOW_US + DAY_US)
    assert ((await real.stats()).events, (await real.stats()).partitions) == (0, 0)


# ------------------------------------------------------------------------------------------- reading out


async def test_a_stalled_drain_gives_its_locks_free_and_then_reads_on(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "STALL_LIMIT_S", 0.01)
    monkeypatch.setattr(sections, "CHUNK_ROWS", 10)
    rows = [event() for _ in range(45)]
    await keep(real, event(lifetime_s=60.0), *rows)
    async with aclosing(real.section_events(EVERYTHING, "", 1, NOW_US)) as reading_out:
        seen = [await anext(reading_out)]
        while not await real.collect(NOW_US + HALF_AN_HOUR_US):
            pass  # the leaf of the short-lived event is free once the drain has let go
        seen += [part async for part in reading_out]
    assert ids_of(seen) == [one.id for one in rows]


@pytest.mark.parametrize("origin", ["", X])
async def test_windows_of_any_width_read_out_the_same(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    monkeypatch.setattr(sections, "WINDOW_ROWS", 7)
    rows = [event(f"truck-{n}", lifetime_s=60.0 * (1 + n % 90)) for n in range(100)]
    sparse = [batch([one], 1 + n + 40 * (n // 9), NOW_US, origin) for n, one in enumerate(rows)]
    await real.commit(Transaction(10_000, events=sparse))
    for width in (1, 3, 1_000):
        monkeypatch.setattr(sections, "FIRST_WINDOW_SEQS", width)
        found = [part async for part in real.section_events(EVERYTHING, origin, 0, NOW_US)]
        assert ids_of(found) == [one.id for one in rows]


@pytest.mark.parametrize(
    ("rows", "size_bytes", "expected"),
    [
        (0, 0, 4_000),
        (20_000, 0, 1_000),
        (40_000, 0, 500),
        (10, 16 << 20, 1_000),
        (10, 160 << 20, 100),
        (10_000_000, 0, 2),
    ],
)
def test_a_window_widens_where_little_is_and_narrows_where_much_is(
    rows: int, size_bytes: int, expected: int
) -> None:
    assert sections.next_width(1_000, rows, size_bytes) == expected


# ---------------------------------------------------------------------------------- census of large tables


@pytest.fixture
def unlucky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is large, and nothing is on the pages that are drawn."""
    monkeypatch.setattr(census, "COUNTED_PAGES_MAX", 0)
    monkeypatch.setattr(census, "DRAWN_PAGES", 0)


@pytest.mark.usefixtures("unlucky")
async def test_what_the_drawn_pages_do_not_show_is_looked_up(real: PostgresStore) -> None:
    low, high = sorted((TRUCK, AIRCON), key=lambda family: key_of(*family))
    await keep(real, event(family=low), device(family=high))
    edge = key_of(*high)
    found = await real.census([Section(0, edge), Section(edge, HASH_SPACE), EVERYTHING], NOW_US)
    assert found[:2] == [Census(1, False, False, key_of(*low)), Census(1, False, False, edge)]
    both = found[2]
    assert (both.rows, both.is_empty, both.is_splittable) == (2, False, True)
    assert both.some_key in (key_of(*low), edge)


@pytest.mark.usefixtures("unlucky")
async def test_a_section_with_hidden_rows_only_is_found_not_to_be_empty(
    real: PostgresStore,
) -> None:
    move = new_id()
    await bring(real, move, event())
    assert await real.census([EVERYTHING], NOW_US) == [Census(0, is_empty=False)]
    assert await real.census([EVERYTHING], NOW_US + DAY_US) == [Census()]
    await real.commit(Transaction(9, dropped=[move]))
    assert await real.census([EVERYTHING], NOW_US) == [Census()]


@pytest.mark.usefixtures("unlucky")
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(question=st.data())
async def test_emptiness_is_exact_however_pages_are_drawn(
    real: PostgresStore, question: st.DataObject
) -> None:
    families = [fresh_family() for _ in range(question.draw(st.integers(1, 5)))]
    drawn = question.draw(st.lists(st.tuples(st.sampled_from(families), st.booleans()), max_size=9))
    await real.commit(Transaction(1, removed=[EVERYTHING]))
    await keep(
        real, *(event(family=one) if is_event else device(family=one) for one, is_event in drawn)
    )
    tiling = equal_sections(question.draw(st.integers(1, 7)))
    for section, counted in zip(tiling, await real.census(tiling, NOW_US), strict=True):
        keys: set[int | None] = {key_of(*one) for one, _ in drawn if key_of(*one) in section}
        assert counted.is_empty == (not keys)
        assert counted.is_splittable == (len(keys) > 1)
        assert counted.some_key in (keys or {None})


async def test_drawn_pages_stand_for_the_rest(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "COUNTED_PAGES_MAX", 10)
    monkeypatch.setattr(census, "DRAWN_PAGES", 40)
    families = [fresh_family() for _ in range(4)]
    rows = [event(family=families[n % 4]) for n in range(20_000)]
    await keep(real, *rows)
    counts = [(await real.census([EVERYTHING], NOW_US))[0].rows for _ in range(20)]
    assert 15_000 < sum(counts) / 20 < 25_000
    assert len(set(counts)) > 1, "drawn anew each time"


async def test_removing_is_found_in_the_stats(real: PostgresStore) -> None:
    await keep(real, *(event() for _ in range(30)), event(family=AIRCON))
    key = key_of(*TRUCK)
    await real.commit(Transaction(31, removed=[Section(key, key + 1)]))
    assert (await real.stats()).events == 1
    assert len(await ids_found(real, formal(family=AIRCON))) == 1
