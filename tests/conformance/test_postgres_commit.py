"""The PostgreSQL store when things break: what a caller is told, and what is there afterwards (law 4)."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from array import array
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.conformance.building import (
    HOUR_S,
    SERVER,
    batch,
    chunks,
    device,
    event,
    formal,
    ids_found,
    ids_of,
    keep,
    stored,
)
from tests.conformance.cutting import Beside, Cut, Proxy, proxied, waiting_backend
from tests.strategies import NOW_US
from utuple.errors import UTupleError
from utuple.runtime.postgresql.embedded import EmbeddedPostgres
from utuple.store.contract import StoreUnavailable, Transaction
from utuple.store.postgres.store import PostgresStore


@pytest.fixture
async def beside(database: str) -> AsyncIterator[Beside]:
    """Another connection to the same database, which can be in the way."""
    connection = await psycopg.AsyncConnection.connect(database, autocommit=True)
    async with connection:
        yield connection


TEMPLATES = b"LOCK TABLE utuple.templates IN ACCESS EXCLUSIVE MODE"
THE_END = b"ALTER SEQUENCE utuple.committed NO CYCLE"
"""Whoever notes the seq of a commit waits for whoever has done this."""


async def cut_while_waiting_for(
    holding: bytes, store: PostgresStore, transaction: Transaction, beside: Beside
) -> StoreUnavailable:
    async with beside.transaction():
        await beside.execute(holding)
        committing = asyncio.create_task(store.commit(transaction))
        await beside.execute("SELECT pg_terminate_backend(%s)", (await waiting_backend(beside),))
        with pytest.raises(StoreUnavailable) as caught:
            await committing
    return caught.value


async def test_a_commit_cut_before_its_end_was_surely_not_made(
    real: PostgresStore, beside: Beside
) -> None:
    cut = Transaction(1, events=[batch([event()])], templates=[stored(formal())])
    error = await cut_while_waiting_for(TEMPLATES, real, cut, beside)
    assert not error.maybe_committed
    with pytest.raises(StoreUnavailable):
        await real.commit(Transaction(2))
    recovered = await real.open(SERVER, NOW_US)
    assert (recovered.seq, list(recovered.templates)) == (0, [])
    assert await ids_found(real, formal()) == []


async def test_a_commit_cut_at_its_end_may_have_been_made(
    real: PostgresStore, beside: Beside
) -> None:
    cut = Transaction(1, events=[batch([event()])])
    error = await cut_while_waiting_for(THE_END, real, cut, beside)
    assert error.maybe_committed
    await real.open(SERVER, NOW_US)
    again = event()
    await keep(real, again, first_seq=2)
    assert await ids_found(real, formal()) == [again.id]


@pytest.fixture
async def proxy(postgres: EmbeddedPostgres) -> AsyncIterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="utuple-cut-") as folder:
        async with proxied(Path(folder), postgres.folder) as between:
            yield between


@pytest.mark.parametrize(("cut", "is_stored"), [(Cut.BEFORE, False), (Cut.AFTER, True)])
async def test_an_answer_lost_on_the_way_leaves_the_outcome_unknown(
    database: str, proxy: Proxy, cut: Cut, is_stored: bool
) -> None:
    store = PostgresStore(make_conninfo(database, host=str(proxy.folder)), create=True)
    await store.open(SERVER, NOW_US)
    one = event()
    proxy.mark, proxy.cut = b"; COMMIT", cut
    with pytest.raises(StoreUnavailable) as caught:
        await keep(store, one)
    assert caught.value.maybe_committed
    assert (await store.open(SERVER, NOW_US)).seq == int(is_stored)
    assert await ids_found(store, formal()) == ([one.id] if is_stored else [])
    await store.close()


async def test_a_row_postgres_refuses_leaves_nothing_and_the_store_goes_on(
    real: PostgresStore,
) -> None:
    good, bad = batch([event()], 1), batch([event()], 2)
    bad = replace(bad, columns=replace(bad.columns, addresses=["\x00"]))
    with pytest.raises(UTupleError, match="nothing of it is stored") as caught:
        await real.commit(Transaction(2, events=[good, bad], templates=[stored(formal())]))
    assert not isinstance(caught.value, StoreUnavailable)
    again = event()
    await keep(real, again)
    assert await ids_found(real, formal()) == [again.id]
    assert (await real.stats()).events == 1


async def test_a_family_of_a_commit_that_failed_is_not_taken_for_known(real: PostgresStore) -> None:
    bad = batch([event()], 1)
    bad = replace(bad, columns=replace(bad.columns, addresses=["\x00"]))
    with pytest.raises(UTupleError):
        await real.commit(Transaction(1, events=[bad]))
    one = event()
    await keep(real, one)
    await real.close()
    await real.open(SERVER, NOW_US)
    assert await ids_found(real, formal()) == [one.id]


async def test_a_cancelled_commit_makes_the_store_open_again(
    real: PostgresStore, beside: Beside
) -> None:
    async with beside.transaction():
        await beside.execute("LOCK TABLE utuple.templates IN ACCESS EXCLUSIVE MODE")
        committing = asyncio.create_task(real.commit(Transaction(1, templates=[stored(formal())])))
        await waiting_backend(beside)
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
    with pytest.raises(StoreUnavailable):
        await real.commit(Transaction(2))
    assert (await real.open(SERVER, NOW_US)).seq == 0
    await real.commit(Transaction(2))


async def test_a_reader_that_is_cut_says_so_and_the_next_one_works(
    real: PostgresStore, beside: Beside
) -> None:
    one = event()
    await keep(real, one)
    assert await ids_found(real, formal()) == [one.id]
    readers = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name LIKE 'utuple-server %' AND query NOT LIKE '%COMMIT%'"
    )
    await beside.execute(readers)
    with pytest.raises(StoreUnavailable):
        await ids_found(real, formal())
    assert await ids_found(real, formal()) == [one.id]
    await real.commit(Transaction(2))


async def test_ten_thousand_rows_of_mixed_lifetimes_are_copied_as_they_are(
    real: PostgresStore,
) -> None:
    lifetimes = [60.0, HOUR_S, 86_400.0]
    events = [
        event(f"truck-{n}", NOW_US + n, (n / 1000, -n / 1000), {"n": n}, lifetimes[n % 3])
        for n in range(9_999)
    ]
    thousands = [batch(events[at : at + 1_000], at + 1) for at in range(0, 9_999, 1_000)]
    single = batch([event("é" * 300, data={"text": "x" * 100_000})], 10_000)
    await real.commit(Transaction(10_000, events=[*thousands, single]))
    found = await chunks(real, formal())
    assert [seq for part in found for seq in part.seqs] == list(range(1, 10_001))
    kept = [part.columns.utuple_at(row).metadata for part in found for row in range(len(part))]
    assert kept[:-1] == [one.metadata for one in events]
    assert found[-1].columns.payloads[-1] == single.columns.payloads[0]
    assert (await real.stats()).events == 10_000


async def test_an_empty_batch_is_no_reason_to_fail(real: PostgresStore) -> None:
    empty = batch([])
    assert empty.seqs == array("Q")
    await real.commit(Transaction(1, events=[empty], devices=[empty]))
    await real.commit(Transaction(2, events=[empty, batch([event()], 2)]))
    assert len(await ids_found(real, formal())) == 1


async def test_everything_answered_survives_kill_9_of_postgresql(
    own_postgres: EmbeddedPostgres,
) -> None:
    store = PostgresStore(own_postgres.dsn("kept"), create=True)
    await store.open(SERVER, NOW_US)
    events, thing, asked = [event() for _ in range(100)], device(), formal()
    await keep(store, *events, thing)
    await store.commit(Transaction(200, templates=[stored(asked)]))
    pid = own_postgres.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StoreUnavailable):
        while True:  # a backend may outlive its postmaster for a moment
            await store.commit(Transaction(201))
    own_postgres.start()
    recovered = await store.open(SERVER, NOW_US)
    assert recovered.seq in (200, 201)
    assert [kept.utuple for kept in recovered.templates] == [asked]
    assert await ids_found(store, formal()) == [one.id for one in events]
    assert ids_of([part async for part in store.devices(NOW_US)]) == [thing.id]
    await store.close()


async def test_a_commit_leaves_nothing_dead_while_somebody_holds_a_snapshot(
    real: PostgresStore, beside: Beside
) -> None:
    """A row that every commit updates grew by a page for each sixty, and every commit looked at all of them: during a
    backup of a minute `emit` came to take twice as long."""
    await keep(real, event())
    async with beside.transaction():
        await beside.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await beside.execute("SELECT 1 FROM utuple.families")
        for seq in range(2, 502):
            await keep(real, event(), first_seq=seq)
    sizes = "SELECT pg_relation_size('utuple.meta'), pg_relation_size('utuple.committed')"
    assert await (await beside.execute(sizes)).fetchall() == [(8_192, 8_192)]
    assert (await real.open(SERVER, NOW_US)).seq == 501


async def test_a_few_eas_that_were_cut_may_have_been_stored(
    real: PostgresStore, beside: Beside
) -> None:
    first, second = event(), event()
    await keep(real, first)
    await keep(real, second, first_seq=2)  # its statement is prepared from now on
    cut = Transaction(3, [batch([event()], 3)])
    error = await cut_while_waiting_for(THE_END, real, cut, beside)
    assert error.maybe_committed
    assert (await real.open(SERVER, NOW_US)).seq == 2
    assert await ids_found(real, formal()) == [first.id, second.id]
