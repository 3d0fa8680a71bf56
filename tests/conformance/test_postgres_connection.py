"""The connection to PostgreSQL: what is asked, what is broken off, what is lost (design, 4.1)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
import uvloop

from tests.conformance.building import event, formal, ids_found, keep, until
from tests.strategies import NOW_US
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.searching.conditions import question
from utuple.store.postgres.searching.portals import ReaderPool
from utuple.store.postgres.searching.prepared import MOST_PREPARED, columns_of
from utuple.store.postgres.session import Sessions
from utuple.store.postgres.statements import Statement
from utuple.store.postgres.store import PostgresStore
from utuple.store.turns import Lane

MANY = 50_000
CANCEL_LIMIT_S = 5.0
"""psycopg waits so long for a statement it has cancelled."""
LARGE_BYTES = 16 << 20
"""More than a socket's buffers hold."""


@pytest.fixture
def sessions(database: str) -> Sessions:
    return Sessions(database, "test")


async def number(connection: Connection, sql: str) -> int:
    found = await (await connection.execute(sql.encode())).fetchone()
    assert found is not None
    return int(found[0])


async def broken_off(connection: Connection, sql: str) -> asyncio.Task[object]:
    """While PostgreSQL is being asked."""
    asking: asyncio.Task[object] = asyncio.create_task(connection.execute(sql.encode()))
    await until(lambda: not connection.is_idle)
    asking.cancel()
    return asking


@contextmanager
def standing_still(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_answers_in_many_pieces_and_in_one_are_told_apart(sessions: Sessions) -> None:
    async with await sessions.connect("test") as connection:
        for count in (1, MANY, 0, 2):
            asked = f"SELECT n, repeat('x', 20) FROM generate_series(1, {count}) AS n"
            rows = await (await connection.execute(asked.encode())).fetchall()
            assert [n for n, _ in rows] == [*range(1, count + 1)]


async def test_a_statement_that_is_broken_off_leaves_the_connection_as_it_was(
    sessions: Sessions,
) -> None:
    async with await sessions.connect("test") as connection:
        sleeping = await broken_off(connection, "SELECT pg_sleep(60)")
        await asyncio.wait([sleeping], timeout=CANCEL_LIMIT_S - 1)
        assert sleeping.cancelled(), "PostgreSQL was told"
        assert connection.is_idle
        assert await number(connection, "SELECT 7") == 7


async def test_a_large_statement_that_is_broken_off_while_it_is_sent_leaves_the_connection_as_it_was(
    sessions: Sessions,
) -> None:
    """It was a TypeError of psycopg's own, and a bug to the caller: see `_restartable`."""
    async with await sessions.connect("test") as connection:
        with standing_still(await number(connection, "SELECT pg_backend_pid()")):
            asked = b"SELECT octet_length('" + b"x" * LARGE_BYTES + b"')"
            asking: asyncio.Task[object] = asyncio.create_task(connection.execute(asked))
            await until(lambda: not connection.is_idle)
            asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        assert connection.is_idle
        assert await number(connection, "SELECT 7") == 7


async def test_a_statement_that_postgresql_does_not_end_costs_the_connection(
    sessions: Sessions,
) -> None:
    """It takes no notice of a cancellation that comes before the statement, nor while it stands still."""
    connection = await sessions.connect("test")
    with standing_still(await number(connection, "SELECT pg_backend_pid()")):
        waiting = await broken_off(connection, "SELECT 1")
        await asyncio.wait([waiting], timeout=2 * CANCEL_LIMIT_S)
        assert waiting.cancelled() and connection.closed


async def test_a_connection_that_is_lost_while_it_waits_says_so(sessions: Sessions) -> None:
    async with await sessions.connect("killer") as killer:
        connection = await sessions.connect("test")
        pid = await number(connection, "SELECT pg_backend_pid()")
        waiting = asyncio.create_task(connection.execute("SELECT pg_sleep(60)"))
        await until(lambda: not connection.is_idle)
        await killer.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        with pytest.raises(psycopg.OperationalError):
            await waiting
        again = await sessions.connect("test")  # perhaps with the same socket's number
        assert await number(again, "SELECT 8") == 8
        await connection.close()
        assert await number(again, "SELECT 9") == 9
        await again.close()


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_is_lost_with_words_left_to_be_read_says_so(
    database: str, make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """PostgreSQL's last words and its end come at once, and it has not read what it was asked."""

    async def lose() -> None:
        connection = await Sessions(database, "test").connect("test")
        pid = await number(connection, "SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGSTOP)
        waiting = asyncio.create_task(connection.execute("SELECT 1"))
        await until(lambda: not connection.is_idle)
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        with psycopg.connect(database) as other:  # nobody has a turn before it is gone
            asked = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
            while other.execute(asked, (pid,)).fetchone() != (0,):
                other.rollback()
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(5.0):
                await waiting
        await connection.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(lose())


async def test_a_connection_that_is_lost_while_nobody_asks_says_so_when_it_is_asked(
    sessions: Sessions,
) -> None:
    async with await sessions.connect("killer") as killer:
        connection = await sessions.connect("test")
        pid = await number(connection, "SELECT pg_backend_pid()")
        await killer.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("SELECT 1")
        await connection.close()


async def test_a_readers_connection_that_is_lost_is_not_lent_again(
    sessions: Sessions, database: str
) -> None:
    readers = ReaderPool(lambda: sessions.connect_reader("test"))
    lost_in_use, lost_idle = await readers.acquire(Lane.LONG), await readers.acquire(Lane.LONG)
    pid = await number(lost_in_use, "SELECT pg_backend_pid()")
    few = Statement(b"SELECT %(family)s::INTEGER", {"family": 3}, True)
    for connection in (lost_in_use, lost_idle):
        assert await columns_of(connection, few) == [[3]]
    with psycopg.connect(database, autocommit=True) as other:  # nobody hears of it
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with pytest.raises(psycopg.OperationalError):
        await columns_of(lost_in_use, few)
    await readers.release(lost_in_use)
    await readers.release(lost_idle)
    lost_idle.pgconn.finish()
    again = await readers.acquire(Lane.SHORT)
    assert again not in (lost_in_use, lost_idle)
    assert await number(again, "SELECT 8") == 8
    await readers.release(again)
    await readers.close()


async def test_more_statements_than_are_kept_prepared_are_answered_all(sessions: Sessions) -> None:
    async with await sessions.connect_reader("test") as connection:
        for count in [*range(MOST_PREPARED + 5), 0, 1]:
            text = f"SELECT {count} + %(family)s::INTEGER".encode()
            assert await columns_of(connection, Statement(text, {"family": 3}, True)) == [
                [count + 3]
            ]
        assert (
            await number(connection, "SELECT count(*) FROM pg_prepared_statements") <= MOST_PREPARED
        )


@pytest.mark.parametrize("in_pieces", [True, False])
async def test_a_usual_question_that_postgresql_refuses_says_why_also_after_some_rows(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, in_pieces: bool
) -> None:
    monkeypatch.setattr("utuple.store.postgres.searching.prepared.IN_PIECES", in_pieces)
    text = f"SELECT n, 1 / (n - %(family)s::INTEGER) FROM generate_series(1, {MANY}) AS n".encode()
    async with await sessions.connect_reader("test") as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await columns_of(connection, Statement(text, {"family": MANY - 1}, True))
        numbers, shares = await columns_of(connection, Statement(text, {"family": 0}, True))
        assert numbers == [*range(1, MANY + 1)] and shares == [1] + [0] * (MANY - 1)
        nothing = Statement(b"SELECT 1 WHERE %(family)s::INTEGER = 0", {"family": 1}, True)
        assert not await columns_of(connection, nothing)


async def test_a_usual_question_that_is_broken_off_while_rows_come_leaves_the_connection_as_it_was(
    sessions: Sessions,
) -> None:
    text = b"SELECT repeat('x', 9000), CASE n WHEN %(family)s::INTEGER THEN pg_sleep(60) END"
    asked = Statement(text + b" FROM generate_series(1, 99) AS n", {"family": 99}, True)
    async with await sessions.connect_reader("test") as connection:
        waiting = asyncio.create_task(columns_of(connection, asked))
        await until(lambda: connection.prepared != {} and not connection.is_idle)
        waiting.cancel()
        await asyncio.wait([waiting], timeout=CANCEL_LIMIT_S - 1)
        assert waiting.cancelled()
        few = Statement(b"SELECT %(family)s::INTEGER", {"family": 3}, True)
        assert await columns_of(connection, few) == [[3]]


async def test_a_search_from_the_start_leaves_the_index_on_seqs_aside(
    sessions: Sessions, real: PostgresStore
) -> None:
    """Planned for any parameters, PostgreSQL took it for a good one: it would read all there is."""
    await keep(real, event())
    assert len(await ids_found(real, formal())) == 1
    plans = []
    async with await sessions.connect_reader("test") as connection:
        await connection.execute("SET enable_seqscan = off")
        for after in (0, 1):
            asked = question(formal(since_us=NOW_US), 1, after, 9, NOW_US, few=2_000)
            assert asked.is_usual == (after == 0)
            explained = await connection.execute(b"EXPLAIN " + asked.text, asked.parameters)
            plans.append("\n".join(line for (line,) in await explained.fetchall()))
    assert "seq <=" not in plans[0] and "(seq + 0) <=" in plans[0]
    assert "seq <=" in plans[1]
