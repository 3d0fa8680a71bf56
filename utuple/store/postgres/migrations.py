"""The schema's history: each version once and for ever, as the statements that lead to it.

A change of the schema is a new entry at the end, and `tables.py` brought into line. Each version is
applied in one transaction, by a process that holds the store's lock.
"""

from __future__ import annotations

import psycopg

from utuple.store.contract import StoreRefused

_FIRST = """
CREATE TABLE meta (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    version integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL
);
CREATE TABLE families (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    key bigint NOT NULL,
    subject text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    UNIQUE (subject, type)
);
CREATE TABLE events (
    seq bigint NOT NULL,
    time_us bigint NOT NULL,
    expires_us bigint NOT NULL,
    lat double precision NOT NULL,
    lon double precision NOT NULL,
    id uuid NOT NULL,
    family integer NOT NULL,
    origin smallint NOT NULL,
    address text COLLATE "C" NOT NULL,
    data text COLLATE "C" NOT NULL
);
CREATE TABLE devices (
    seq bigint NOT NULL,
    time_us bigint NOT NULL,
    expires_us bigint NOT NULL,
    lifetime_us bigint NOT NULL,
    lat double precision NOT NULL,
    lon double precision NOT NULL,
    id uuid PRIMARY KEY,
    family integer NOT NULL,
    address text COLLATE "C" NOT NULL,
    reader text COLLATE "C" NOT NULL,
    wanted text COLLATE "C" NOT NULL
);
CREATE INDEX devices_address ON devices (family, address);
CREATE INDEX devices_expiry ON devices (expires_us);
CREATE TABLE templates (
    id uuid PRIMARY KEY,
    family integer NOT NULL,
    seq bigint NOT NULL,
    expires_us bigint NOT NULL,
    lifetime_s double precision NOT NULL,
    kind text COLLATE "C" NOT NULL,
    reader text COLLATE "C",
    metadata text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL
);
CREATE TABLE positions (
    formal uuid NOT NULL,
    origin text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (formal, origin)
);
CREATE TABLE lines (
    start_key numeric PRIMARY KEY,
    end_key numeric NOT NULL,
    epoch bigint NOT NULL,
    members text COLLATE "C" NOT NULL
);
CREATE TABLE servers (
    name text COLLATE "C" PRIMARY KEY,
    address text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    since_us bigint NOT NULL
);
"""

_SECOND = """
ALTER TABLE devices ADD COLUMN origin smallint NOT NULL DEFAULT 0;
CREATE INDEX devices_origin ON devices (origin) WHERE origin > 0;
CREATE INDEX families_key ON families (key);
CREATE TABLE origins (
    number smallint PRIMARY KEY CHECK (number > 0),
    name text COLLATE "C" NOT NULL,
    move uuid,
    UNIQUE (name, move)
);
CREATE TABLE notes (
    name text COLLATE "C" PRIMARY KEY,
    body bytea NOT NULL
);
DO $$
DECLARE leaf regclass;
BEGIN
    FOR leaf IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'events'::regclass LOOP
        EXECUTE format('ALTER TABLE %s ADD CHECK (origin = 0)', leaf);
    END LOOP;
END $$;
"""
"""What moves of load need: notes, and uTuples of other servers. Leaves of version 1 hold own EAs only,
and say so from now on, as new ones do (`partitions.py`); checking that reads them once."""

_THIRD = """
CREATE SEQUENCE committed AS bigint MINVALUE 0 START 0;
SELECT setval('committed', seq) FROM meta;
"""
"""The seq of the last commit. A sequence is written in its place; a row that is updated with every commit leaves a dead
one each time, and while somebody holds a snapshot (a backup) none of them can go, and each commit looks at all of
them. `meta.seq` is no longer kept."""

_FOURTH = """
ALTER TABLE templates ADD COLUMN terms text COLLATE "C" NOT NULL DEFAULT '';
"""
"""An EF's terms of delivery; those of before have the default."""

MIGRATIONS: tuple[tuple[int, str], ...] = ((1, _FIRST), (2, _SECOND), (3, _THIRD), (4, _FOURTH))
NEWEST = MIGRATIONS[-1][0]


async def migrate(writer: psycopg.AsyncConnection, name: str) -> None:
    """Bring the schema up to date; refuse another server's store, or one from the future."""
    version = 0
    if await _has_schema(writer):
        version, owner = await _version_and_owner(writer)
        if owner != name:
            raise StoreRefused(
                f"this database holds the store of server {owner!r}, not of {name!r}: start "
                f"{owner!r} here, or give {name!r} a database of its own"
            )
        if version > NEWEST:
            raise StoreRefused(
                f"this store has schema version {version}, and this program knows versions up to "
                f"{NEWEST}: start the newer program"
            )
    for target, statements in MIGRATIONS:
        if target > version:
            async with writer.transaction():
                await writer.execute(statements.encode())
                await _note(writer, target, name)


async def _has_schema(writer: psycopg.AsyncConnection) -> bool:
    found = await (await writer.execute("SELECT to_regclass('meta') IS NOT NULL")).fetchone()
    return found is not None and bool(found[0])


async def _version_and_owner(writer: psycopg.AsyncConnection) -> tuple[int, str]:
    found = await (await writer.execute("SELECT version, name FROM meta")).fetchone()
    assert found is not None, "the first migration writes the row of meta"
    return found[0], found[1]


async def _note(writer: psycopg.AsyncConnection, version: int, name: str) -> None:
    await writer.execute(
        "INSERT INTO meta (version, name, seq) VALUES (%s, %s, 0) "
        "ON CONFLICT (single) DO UPDATE SET version = excluded.version",
        (version, name),
    )
