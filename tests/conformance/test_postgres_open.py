"""Taking a PostgreSQL store: one process alone, on a schema and settings it can trust (design, 4.1)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Boolean, Double, LargeBinary, Numeric, SmallInteger, Text, Uuid
from sqlalchemy.types import BigInteger, Integer

from tests.conformance.building import SERVER, event, formal, ids_found, keep, until
from tests.strategies import NOW_US
from utuple.store.contract import StoreRefused, StoreUnavailable, Transaction
from utuple.store.postgres import session, tables
from utuple.store.postgres.migrations import NEWEST
from utuple.store.postgres.store import PostgresStore

ROOT = Path(__file__).parents[2]
SOON_S = 0.05


def run_sql(dsn: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


async def test_what_is_no_address_is_refused_and_a_postgresql_that_is_away_is_not() -> None:
    with pytest.raises(StoreRefused, match="postgresql://user@host/database"):
        await PostgresStore("server_1 on that machine").open(SERVER, NOW_US)
    with pytest.raises(StoreUnavailable) as caught:
        await PostgresStore("postgresql://u@127.0.0.1:1/d").open(SERVER, NOW_US)
    assert "?." not in str(caught.value)


async def test_a_missing_database_is_created_when_told(new_database: Callable[[], str]) -> None:
    store = PostgresStore(new_database(), create=True)
    assert (await store.open(SERVER, NOW_US)).seq == 0
    one = event("é\U0001f600")
    await keep(store, one)
    assert await ids_found(store, formal()) == [one.id]
    await store.close()


async def test_a_misspelt_database_is_refused_and_nothing_is_made(
    database: str, new_database: Callable[[], str]
) -> None:
    """Never create what was not asked for."""
    missing = new_database()
    with pytest.raises(StoreRefused, match=r"does not exist.*--database.*--create"):
        await PostgresStore(missing).open(SERVER, NOW_US)
    name = missing.rpartition("/")[2].partition("?")[0]
    assert run_sql(database, f"SELECT 1 FROM pg_database WHERE datname = '{name}'") == []


async def test_a_database_of_others_is_refused_and_left_as_it_is(database: str) -> None:
    run_sql(database, "CREATE TABLE invoices (id int)")
    with pytest.raises(StoreRefused, match=r"holds no store.*--create"):
        await PostgresStore(database).open(SERVER, NOW_US)
    assert run_sql(database, "SELECT 1 FROM pg_namespace WHERE nspname = 'utuple'") == []


async def test_a_store_that_is_gone_when_it_is_opened_again_is_not_made_anew(
    database: str, real: PostgresStore
) -> None:
    """It was new once; what is missing now was lost."""
    await real.close()
    run_sql(database, "DROP SCHEMA utuple CASCADE")
    with pytest.raises(StoreRefused, match="holds no store"):
        await real.open(SERVER, NOW_US)


async def test_an_unreachable_postgresql_is_unavailable_and_the_error_says_what_to_do() -> None:
    store = PostgresStore("postgresql://me:secret@/x?host=/nowhere/at/all")
    with pytest.raises(StoreUnavailable, match="--database") as caught:
        await store.open(SERVER, NOW_US)
    assert "secret" not in str(caught.value)
    assert not caught.value.maybe_committed


async def test_a_second_process_is_refused_and_the_first_goes_on(
    database: str, real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LOCK_WAIT_S", SOON_S)
    with pytest.raises(StoreRefused, match=r"another process serves this store .*utuple-server"):
        await PostgresStore(database).open(SERVER, NOW_US)
    one = event()
    await keep(real, one)
    assert await ids_found(real, formal()) == [one.id]


async def test_a_newcomer_waits_for_a_predecessor_that_is_going(
    database: str, real: PostgresStore
) -> None:
    await real.commit(Transaction(7))
    newcomer = PostgresStore(database)
    opening = asyncio.create_task(newcomer.open(SERVER, NOW_US))
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    await until(lambda: bool(run_sql(database, waiting)))
    await real.close()
    assert (await opening).seq == 7
    await newcomer.close()


async def test_the_readers_a_predecessor_left_behind_are_ended(
    database: str, real: PostgresStore
) -> None:
    left = psycopg.connect(database, application_name="utuple-server dead")
    with pytest.raises(psycopg.OperationalError):
        await real.open(SERVER, NOW_US)
        left.execute("SELECT 1")
    await real.commit(Transaction(1))


async def test_a_process_that_lost_its_store_knows_it_without_asking(
    database: str, real: PostgresStore
) -> None:
    """Law 7: what is of lifetime 0 is accepted without a commit, so no commit would tell."""
    await keep(real, event())
    assert real.is_held()
    ending = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'utuple-server %'"
    run_sql(database, ending)
    assert not real.is_held()
    newcomer = PostgresStore(database)
    await newcomer.open(SERVER, NOW_US)
    assert newcomer.is_held() and not real.is_held()
    await newcomer.close()
    assert not newcomer.is_held()


async def test_other_programs_connections_are_left_alone(
    database: str, real: PostgresStore
) -> None:
    with psycopg.connect(database, application_name="psql") as other:
        await real.open(SERVER, NOW_US)
        assert other.execute("SELECT 1").fetchone() == (1,)


CHILD = """
import asyncio, sys
from tests.conformance.building import SERVER, batch, event
from tests.strategies import NOW_US
from utuple.store.contract import Transaction
from utuple.store.postgres.store import PostgresStore

async def main():
    store = PostgresStore(sys.argv[1], create=True)
    await store.open(SERVER, NOW_US)
    seq = 0
    while True:
        rows = batch([event() for _ in range(50)], seq + 1)
        await store.commit(Transaction(seq + 50, events=[rows]))
        seq += 50
        print(seq, flush=True)

asyncio.run(main())
"""


async def test_what_a_killed_process_was_answered_is_there_for_the_next_at_once(
    database: str,
) -> None:
    command = [sys.executable, "-c", CHILD, database]
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    answered = [int(await child.stdout.readline()) for _ in range(20)]
    child.kill()
    store = PostgresStore(database)
    recovered = await store.open(SERVER, NOW_US)
    answered += [int(line) for line in (await child.stdout.read()).split()]
    await child.wait()
    assert recovered.seq in (answered[-1], answered[-1] + 50)
    assert len(await ids_found(store, formal())) == recovered.seq
    await store.close()


async def test_settings_that_lose_commits_are_refused_unless_told(
    new_database: Callable[[], str],
) -> None:
    dsn = new_database()
    store = PostgresStore(dsn, create=True)
    await store.open(SERVER, NOW_US)
    await store.close()
    (name,) = run_sql(dsn, "SELECT current_database()")[0]
    run_sql(dsn, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(StoreRefused, match=r"synchronous_commit off.*--unsafe"):
        await store.open(SERVER, NOW_US)
    told = PostgresStore(dsn, unsafe=True)
    await told.open(SERVER, NOW_US)
    await told.close()


async def test_a_store_from_the_future_is_refused(database: str, real: PostgresStore) -> None:
    await real.close()
    run_sql(database, f"UPDATE utuple.meta SET version = {NEWEST + 1}")
    with pytest.raises(StoreRefused, match=f"version {NEWEST + 1}.*newer program"):
        await real.open(SERVER, NOW_US)


async def test_opening_again_changes_nothing_in_the_schema(
    database: str, real: PostgresStore
) -> None:
    query = (
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'utuple' ORDER BY 1, 2"
    )
    before = run_sql(database, query)
    await real.open(SERVER, NOW_US)
    assert run_sql(database, query) == before


SQL_TYPES: dict[type, str] = {
    BigInteger: "bigint",
    Boolean: "boolean",
    Double: "double precision",
    Integer: "integer",
    LargeBinary: "bytea",
    Numeric: "numeric",
    SmallInteger: "smallint",
    Text: "text",
    Uuid: "uuid",
}


async def test_the_tables_are_what_the_migrations_make(database: str, real: PostgresStore) -> None:
    query = (
        "SELECT table_name, column_name, data_type, is_nullable, collation_name "
        "FROM information_schema.columns WHERE table_schema = 'utuple'"
    )
    expected = {
        (
            table.name,
            column.name,
            SQL_TYPES[type(column.type)],
            "YES" if column.nullable else "NO",
            "C" if isinstance(column.type, Text) else None,
        )
        for table in tables.metadata.tables.values()
        for column in table.columns
    }
    assert set(run_sql(database, query)) == expected


async def test_families_that_share_a_key_are_told_apart(
    real: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 64-bit key is a hash; only the names say which family a row is of."""
    monkeypatch.setattr("utuple.store.postgres.families.key_of", lambda subject, type_: 5)
    one, other = event(), event(family=formal().family._replace(subject="bus"))
    await keep(real, one, other)
    assert await ids_found(real, formal()) == [one.id]
    assert await ids_found(real, formal(family=other.family)) == [other.id]
