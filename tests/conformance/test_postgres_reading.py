"""Long searches in PostgreSQL: streamed, and released when their consumer stalls (design, 4.2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from psycopg import AsyncConnection

from tests.conformance.building import (
    FOREVER,
    SERVER,
    batch,
    chunks,
    event,
    formal,
    ids_found,
    ids_of,
    keep,
)
from tests.strategies import NOW_US
from utuple.model.condition import Equal
from utuple.store.contract import Key, Page, RetryKey, Search, Transaction
from utuple.store.postgres.partitions import TIME_BUCKET_BITS
from utuple.store.postgres.searching import paging, portals
from utuple.store.postgres.searching.conditions import question
from utuple.store.postgres.searching.paging import page_statement
from utuple.store.postgres.store import PostgresStore
from utuple.store.postgres.tables import SCHEMA

HALF_AN_HOUR_US = 1_800 * 1_000_000


async def test_a_stalled_reader_gives_its_locks_free_and_then_reads_on(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "STALL_LIMIT_S", 0.01)
    events = [event() for _ in range(45)]
    await keep(real, event(lifetime_s=60.0), *events)
    asked = Search(formal(), 1, FOREVER, NOW_US, chunk_rows=10)
    async with aclosing(real.search(asked)) as found:
        seen = [await anext(found)]
        while not await real.collect(NOW_US + HALF_AN_HOUR_US):
            pass  # the leaf of the short-lived event is free once the reader has let go
        seen += [part async for part in found]
    assert ids_of(seen) == [one.id for one in events]
    assert [len(part) for part in seen] == [10, 10, 10, 10, 5]


async def test_more_stalled_readers_than_connections_keep_nobody_waiting_for_ever(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "STALL_LIMIT_S", 0.01)
    events = [event() for _ in range(5)]
    await keep(real, *events)
    expected = [one.id for one in events]
    async with AsyncExitStack() as stack:
        stalled = []
        for _ in range(2 * portals.READERS_MAX):
            asked = Search(formal(), 0, FOREVER, NOW_US, chunk_rows=1)
            found = await stack.enter_async_context(aclosing(real.search(asked)))
            stalled.append((found, [await anext(found)]))
        assert await ids_found(real, formal()) == expected
        for found, seen in stalled:
            seen += [part async for part in found]
            assert ids_of(seen) == expected


async def test_stalled_readers_are_never_in_the_writers_way(real: PostgresStore) -> None:
    one = event()
    await keep(real, one, event())
    async with AsyncExitStack() as stack:
        for _ in range(portals.READERS_MAX):
            asked = Search(formal(), 0, FOREVER, NOW_US, chunk_rows=1)
            found = await stack.enter_async_context(aclosing(real.search(asked)))
            await anext(found)
        known = await real.known_events([RetryKey(one.family, NOW_US, one.id)])
        assert list(known) == [one.id]
        await keep(real, event(), event(lifetime_s=86_400.0), first_seq=3)


async def test_a_search_left_in_the_middle_gives_its_connection_back(real: PostgresStore) -> None:
    await keep(real, *(event() for _ in range(5)))
    for _ in range(3 * portals.READERS_MAX):
        asked = Search(formal(), 0, FOREVER, NOW_US, chunk_rows=1)
        async with aclosing(real.search(asked)) as found:
            assert len(await anext(found)) == 1


async def test_how_long_a_search_kept_the_database_busy_is_told_and_for_whom(
    real: PostgresStore,
) -> None:
    """It is part of the load of its section (section 3.4). What its consumer does meanwhile is not."""
    told: list[tuple[Hashable, float]] = []
    real.on_search = lambda who, seconds: told.append((who, seconds))
    await real.open(SERVER, NOW_US)
    await keep(real, *(event() for _ in range(50)))
    await real.stats()
    await real.collect(NOW_US)
    assert told == [], "upkeep is no search"
    asked = Search(formal(), 0, FOREVER, NOW_US, chunk_rows=10)
    began_s = time.monotonic()
    async with aclosing(real.search(asked)) as found:
        async for _ in found:
            await asyncio.sleep(0.02)
    took_s = time.monotonic() - began_s
    assert {who for who, _ in told} == {formal().family}
    assert len(told) > 5, "each piece is"
    busy_s = sum(seconds for _, seconds in told) * portals.SEARCHES_AT_ONCE
    assert 0 < busy_s < took_s - 5 * 0.02


async def test_searches_commits_and_collections_run_side_by_side(real: PostgresStore) -> None:
    """Leaves come and go while searches plan over them: none of them may fail."""
    kept = [event(lifetime_s=86_400.0) for _ in range(200)]
    await keep(real, *kept)
    rounds = 30

    async def write() -> None:
        for number in range(rounds):
            now_us = NOW_US + number * HALF_AN_HOUR_US
            short = batch([event("short", lifetime_s=60.0)], 1_000 + number, now_us)
            await real.commit(Transaction(1_000 + number, events=[short]))

    async def collect() -> None:
        for number in range(rounds):
            await real.collect(NOW_US + number * HALF_AN_HOUR_US)

    async def search() -> None:
        for _ in range(rounds):
            assert await ids_found(real, formal(), upto=200) == [one.id for one in kept]

    await asyncio.gather(write(), collect(), search(), search(), search())


async def test_a_large_search_comes_in_chunks_in_seq_order(real: PostgresStore) -> None:
    for first in range(0, 50_000, 10_000):
        rows = [event(f"truck-{n % 100}") for n in range(10_000)]
        await keep(real, *rows, first_seq=first + 1)
    asked = Search(formal(), 0, FOREVER, NOW_US)
    seqs: list[int] = []
    async for part in real.search(asked):
        assert len(part) <= asked.chunk_rows
        seqs.extend(part.seqs)
    assert seqs == list(range(1, 50_001))


async def test_large_payloads_come_in_small_chunks(real: PostgresStore) -> None:
    small = [event(data={"n": n}) for n in range(600)]
    large = [event(data={"text": "x" * 400_000}) for _ in range(60)]
    await keep(real, *small, *large)
    found = [part async for part in real.search(Search(formal(), 0, FOREVER, NOW_US))]
    assert ids_of(found) == [one.id for one in small + large]
    assert max(sum(map(len, part.columns.payloads)) for part in found) < 30 << 20
    assert await ids_found(real, formal()) == [one.id for one in small + large]


async def test_what_is_too_large_for_one_piece_is_not_read_at_once(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "FIRST_ROWS", 10)
    monkeypatch.setattr(portals, "PIECE_BYTES", 50_000)
    events = [event(data={"text": "x" * 10_000}) for _ in range(45)]
    await keep(real, *events)
    found = [part async for part in real.search(Search(formal(), 0, FOREVER, NOW_US))]
    assert ids_of(found) == [one.id for one in events]
    assert max(map(len, found)) <= 10


@pytest.mark.parametrize(
    ("count", "size_bytes", "expected"),
    [(500, 20, 1_000), (500, 0, 1_000), (100, 1 << 20, 4), (1, 8 << 20, 1)],
)
def test_the_next_piece_grows_while_payloads_are_small_and_shrinks_when_they_are_large(
    count: int, size_bytes: int, expected: int
) -> None:
    assert portals.next_piece([(b"", b"x" * size_bytes)] * count) == expected


async def test_one_address_over_a_time_is_looked_up_by_both(
    real: PostgresStore, database: str
) -> None:
    """Else every EA of that address is read, however old."""
    addresses = [f"truck-{number}" for number in range(100)]
    day_us = 86_400 * 1_000_000
    told = [event(name, NOW_US - day * day_us) for name in addresses for day in range(40)]
    await keep(real, *told)
    asked = formal(Equal("truck-7"), since_us=NOW_US - 2 * day_us, until_us=NOW_US + 1)
    statement = question(asked, 1, 0, FOREVER, NOW_US)
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(f"SET search_path = {SCHEMA}".encode())
        await connection.execute("ANALYZE")
        plan = await connection.execute(b"EXPLAIN " + statement.text, statement.parameters)
        said = [line for (line,) in await plan.fetchall() if "Index Cond" in line]
    assert len(await ids_found(real, asked)) == 3
    assert any("truck-7" in line and line.count(f">> {TIME_BUCKET_BITS}") == 2 for line in said)


async def test_however_many_long_searches_run_a_newcomer_finds_at_once(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Portals hold connections while they are read, and others wait for them."""
    monkeypatch.setattr(portals, "STALL_LIMIT_S", 1_000.0)
    monkeypatch.setattr(portals, "limit_s", lambda _: 1_000.0)
    await keep(real, *(event("busy") for _ in range(3)), event("idle"))
    asked = Search(formal(), 0, FOREVER, NOW_US, chunk_rows=1)
    long = [real.search(asked) for _ in range(2 * portals.READERS_MAX)]
    begun = {asyncio.ensure_future(anext(search)) for search in long}
    waiting = begun
    while (
        len(waiting) > portals.READERS_MAX + 2
    ):  # one connection is for chores, one for what is short
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    (found,) = await chunks(real, formal(Equal("idle")))
    assert len(found) == 1
    assert not any(task.done() for task in waiting)
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)
    for search in long:
        await search.aclose()


async def test_a_search_that_is_broken_off_again_and_again_finds_everything_once(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off: list[int] = []

    def a_moment_s(times: int) -> float:
        broken_off.append(times)
        return 0.0 if times < 3 else 1_000.0

    monkeypatch.setattr(portals, "limit_s", a_moment_s)
    events = [event() for _ in range(5_000)]
    await keep(real, *events)
    found = [part async for part in real.search(Search(formal(), 0, FOREVER, NOW_US))]
    assert ids_of(found) == [one.id for one in events]
    assert broken_off == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [64, 1_000])
@pytest.mark.parametrize("after", [None, (NOW_US - 5_000, bytes(16))])
@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("has_statistics", [False, True])
async def test_a_page_of_a_family_walks_the_index_on_time_and_sorts_only_what_it_takes(
    real: PostgresStore,
    database: str,
    has_statistics: bool,
    newest_first: bool,
    after: Key | None,
    rows: int,
) -> None:
    """Else the newest hundred of a million would be found by reading a million, and all of them, page by page, by reading
    them for every page."""
    lifetimes_s = (60.0, 3_600.0, 7 * 86_400.0)
    told = [event(time_us=NOW_US - n, lifetime_s=lifetimes_s[n % 3]) for n in range(9_000)]
    await keep(real, *told)
    page = Page(formal(), rows, newest_first, after, NOW_US)
    statement = page_statement(page, 1, after, rows)
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute(f"SET search_path = {SCHEMA}".encode())
        if has_statistics:
            await connection.execute("ANALYZE")
        explain = b"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) "
        asked = await connection.execute(explain + statement.text, statement.parameters)
        [[plan]] = (await asked.fetchone() or [[]])[:1]
    assert 0 < rows_read(plan["Plan"]) < rows + 100
    assert sum([len(one) async for one in real.page(page)]) == rows


async def test_a_page_that_is_broken_off_again_and_again_is_the_same(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "limit_s", lambda times: 0.0 if times < 3 else 1_000.0)
    events = [event(time_us=NOW_US + n) for n in range(200)]
    await keep(real, *events)
    found = [part async for part in real.page(Page(formal(), 150, True, None, NOW_US))]
    assert [id_ for part in found for id_ in part.each_id()] == [one.id for one in events[:-151:-1]]


def rows_read(plan: dict[str, Any]) -> int:
    """By the scans of a plan, with those they left out."""
    below = sum(map(rows_read, plan.get("Plans", ())))
    own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return below + (own if "Scan" in plan["Node Type"] else 0)
