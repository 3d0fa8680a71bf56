"""A store of an earlier version is brought up to date with all that is in it, or left as it was."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.conformance.building import (
    AIRCON,
    SERVER,
    TRUCK,
    batch,
    command,
    event,
    formal,
    ids_found,
    ids_of_devices,
    keep,
    new_id,
    stored,
)
from tests.conformance.cutting import waiting_backend
from tests.strategies import NOW_US
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.store.contract import FormalPosition, Recovered, RetryKey, StoreUnavailable, Transaction
from utuple.store.postgres.migrations import MIGRATIONS, NEWEST
from utuple.store.postgres.store import PostgresStore

BUCKET = (NOW_US + 3_600_000_000) // 300_000_000
OLD_LEAF = f"""
CREATE TABLE events_300_{BUCKET} (
    CHECK (expires_us >= {BUCKET * 300_000_000} AND expires_us < {(BUCKET + 1) * 300_000_000})
) INHERITS (events);
CREATE INDEX events_300_{BUCKET}_time ON events_300_{BUCKET} (family, time_us);
CREATE INDEX events_300_{BUCKET}_address ON events_300_{BUCKET} (family, address);
CREATE INDEX events_300_{BUCKET}_seq ON events_300_{BUCKET} USING brin (seq)
    WITH (autosummarize = on);
"""
"""As version 1 made it."""
EXPIRES_US = NOW_US + 3_600_000_000
OLD_EVENT, OLD_DEVICE, OLD_FORMAL = new_id(), new_id(), formal()


@pytest.fixture
def first_version(database: str) -> str:
    """A database as version 1 left it, with something in every table."""
    with psycopg.connect(database, autocommit=True) as old:
        old.execute("CREATE SCHEMA utuple")
        old.execute("SET search_path = utuple, pg_catalog")
        old.execute(MIGRATIONS[0][1].encode())
        old.execute(OLD_LEAF.encode())
        old.execute("INSERT INTO meta (version, name, seq) VALUES (1, %s, 9)", (SERVER,))
        for family in (TRUCK, AIRCON):
            key = key_of(*family) - (1 << 63)
            old.execute(
                "INSERT INTO families (key, subject, type) VALUES (%s, %s, %s)", (key, *family)
            )
        old.execute(
            f"INSERT INTO events_300_{BUCKET} VALUES "
            "(7, %s, %s, 'NaN', 'NaN', %s, 1, 0, 'truck-1', '{}')".encode(),
            (NOW_US, EXPIRES_US, OLD_EVENT.hex()),
        )
        old.execute(
            "INSERT INTO devices VALUES "
            "(8, %s, %s, 1, 'NaN', 'NaN', %s, 2, 'room-101', 'driver', '{}')",
            (NOW_US, EXPIRES_US, OLD_DEVICE.hex()),
        )
        old_half = packed(OLD_FORMAL)
        old.execute(
            "INSERT INTO templates VALUES (%s, 1, 9, %s, %s, 'EF', 'reader', %s, %s)",
            (
                *(OLD_FORMAL.id.hex(), EXPIRES_US, OLD_FORMAL.lifetime_s),
                *(old_half.metadata.decode(), old_half.payload.decode()),
            ),
        )
        old.execute("INSERT INTO positions VALUES (%s, '', 5)", (OLD_FORMAL.id.hex(),))
        old.execute(
            "INSERT INTO lines VALUES (0, %s, 3, %s)",
            (HASH_SPACE, '{"members":[["server-1",true,false]]}'),
        )
        old.execute("INSERT INTO servers VALUES ('s2', 'h:1', 'server', 5)")
    return database


def version_of(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        (found,) = connection.execute("SELECT version FROM utuple.meta").fetchall()
    return int(found[0])


async def check_everything_is_there(store: PostgresStore, recovered: Recovered) -> None:
    assert recovered == Recovered(
        9,
        (Line(Section(0, HASH_SPACE), 3, (Member("server-1"),)),),
        (ServerInfo("s2", "h:1", since_us=5),),
        (stored(OLD_FORMAL, 9, EXPIRES_US),),
        (FormalPosition(OLD_FORMAL.id, "", 5),),
    )
    assert await ids_found(store, formal()) == [OLD_EVENT]
    assert await ids_found(store, command()) == await ids_of_devices(store) == [OLD_DEVICE]
    assert list(await store.known_events([RetryKey(TRUCK, NOW_US, OLD_EVENT)])) == [OLD_EVENT]
    (counted,) = await store.census([Section(0, HASH_SPACE)], NOW_US)
    assert (counted.rows, counted.is_splittable) == (2, True)


async def test_a_store_of_version_1_keeps_everything(first_version: str) -> None:
    store = PostgresStore(first_version)
    await check_everything_is_there(store, await store.open(SERVER, NOW_US))
    assert version_of(first_version) == NEWEST
    await store.close()


async def test_what_version_1_held_and_what_moves_bring_live_side_by_side(
    first_version: str,
) -> None:
    store, move = PostgresStore(first_version), new_id()
    await store.open(SERVER, NOW_US)
    own, brought = event(), event()
    await keep(store, own, first_seq=10)
    await store.commit(Transaction(10, events=[batch([brought], 1, NOW_US, "x", move)]))
    await store.commit(Transaction(10, revealed=[move]))
    assert await ids_found(store, formal()) == [OLD_EVENT, own.id]
    assert await ids_found(store, formal(), "x") == [brought.id]
    await store.commit(Transaction(10, removed=[Section(0, HASH_SPACE)]))
    assert await ids_found(store, formal()) == await ids_of_devices(store) == []
    await store.close()


async def test_a_migration_that_is_killed_leaves_the_old_version(first_version: str) -> None:
    store = PostgresStore(first_version)
    async with await psycopg.AsyncConnection.connect(first_version, autocommit=True) as beside:
        async with beside.transaction():
            await beside.execute(f"LOCK TABLE utuple.events_300_{BUCKET}".encode())
            opening = asyncio.create_task(store.open(SERVER, NOW_US))
            ending = (await waiting_backend(beside),)
            await beside.execute("SELECT pg_terminate_backend(%s)", ending)
            with pytest.raises(StoreUnavailable):
                await opening
    assert version_of(first_version) == 1
    await check_everything_is_there(store, await store.open(SERVER, NOW_US))
    await store.close()
