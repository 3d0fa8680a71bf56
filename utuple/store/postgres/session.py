"""Connections to PostgreSQL, and how a process takes a store for itself alone.

The lock is an advisory one of the database, held by the writer's connection for as long as it lives. A
process that dies, however, gives it free only when its backend has noticed, and that backend may still
be committing until then; so whoever has the lock knows that no earlier commit is under way. Only after
that are remaining backends of the predecessor (readers) ended. A living predecessor keeps its lock, and
the newcomer is refused.
"""

from __future__ import annotations

import socket
from contextlib import suppress

import psycopg
from psycopg import conninfo
from psycopg.sql import SQL, Identifier, Literal
from psycopg.types.string import ByteaBinaryLoader

from utuple.store.contract import StoreRefused, StoreUnavailable
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.tables import SCHEMA

LOCK_KEY = 0x75_54_75_70_6C_65  # "uTuple"
LOCK_WAIT_S = 10
"""A dead predecessor's backend must be gone by then: see the keep-alives below."""
CONNECT_LIMIT_S = 5
TERMINATE_LIMIT_S = 10
STATEMENT_LIMIT_S = 300
"""No statement of ours needs this long; one that does is stuck."""
IDLE_IN_TRANSACTION_LIMIT_S = 60
"""A wedged process must not hold back vacuum and collection for ever."""
SENT_BYTES = 4 << 20
"""On their way to PostgreSQL: more than a batch of EAs that the SDK sends in one call."""
OLDEST_SERVER = 140_000
MAINTENANCE_DATABASE = "postgres"

SERVING = "utuple-server"
OPENING = "utuple-opening"

_AS_BYTES = ("uuid", "varchar")
"""Read as they are, not as an object a row. No column of ours is a varchar: see `statements.raw_text`."""

_KEEPALIVES = {
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 6_000,
}
_SETTINGS = f"""
SET search_path = {SCHEMA}, pg_catalog;
SET jit = off;
SET client_min_messages = warning;
SET statement_timeout = '{STATEMENT_LIMIT_S}s';
SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION_LIMIT_S}s';
SET client_connection_check_interval = '1s';
SET tcp_keepalives_idle = 3;
SET tcp_keepalives_interval = 1;
SET tcp_keepalives_count = 3;
"""


class Sessions:
    """Opens connections to one database for one process."""

    def __init__(self, dsn: str, token: str) -> None:
        self._dsn = dsn
        self._token = token

    def label(self, name: str) -> str:
        """The application_name of a serving backend: at most 63 bytes of ASCII."""
        return f"{SERVING} {self._token} {name.encode('ascii', 'replace').decode()}"[:63]

    async def connect(self, application_name: str) -> Connection:
        connection = await _connect(self._dsn, application_name)
        for type_ in _AS_BYTES:
            connection.adapters.register_loader(type_, ByteaBinaryLoader)
        await connection.execute(_SETTINGS.encode())
        return connection

    async def connect_reader(self, name: str) -> Connection:
        """What it prepares is planned once, whatever the parameters (`searching/prepared.py`). So nothing is prepared but what is meant
        to be."""
        connection = await self.connect(self.label(name))
        connection.prepare_threshold = None
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        return connection

    async def open_writer(self, name: str, *, unsafe: bool, create: bool) -> Connection:
        """The writer's connection, holding the lock, with every other backend of ours gone. With `create` a database and a
        store that are missing are made; without, that is refused: a misspelt name must not begin an empty store."""
        writer = await self._first_connection(create=create)
        _widen(writer)
        try:
            await _check_server(writer, unsafe=unsafe)
            await _terminate(writer, f"{SERVING} {self._token} %")  # our own, if we open again
            await _lock(writer)
            await _terminate(writer, f"{SERVING} %")
            await writer.execute(SQL("SET application_name = {}").format(Literal(self.label(name))))
            if create:
                await writer.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
            else:
                await _require_store(writer, self._dsn)
        except psycopg.Error as error:
            await writer.close()
            raise unavailable(error, self._dsn) from error
        except BaseException:
            await writer.close()
            raise
        return writer

    async def _first_connection(self, *, create: bool) -> Connection:
        try:
            return await self.connect(f"{OPENING} {self._token}")
        except psycopg.OperationalError as error:
            # libpq gives connection errors no code: ask PostgreSQL whether the database is missing.
            if not await _is_missing(self._dsn):
                raise unavailable(error, self._dsn) from error
            if not create:
                raise _refused(self._dsn, "does not exist") from None
            await _create_database(self._dsn)
        except psycopg.ProgrammingError as error:  # nothing that waiting would cure
            raise StoreRefused(
                f"PostgreSQL at {_place(self._dsn)} is refused: {_said(error)} Give --database an address such as "
                "postgresql://user@host/database, of PostgreSQL 14 or newer"
            ) from error
        except psycopg.Error as error:
            raise unavailable(error, self._dsn) from error
        try:
            return await self.connect(f"{OPENING} {self._token}")
        except psycopg.Error as error:
            raise unavailable(error, self._dsn) from error


def _widen(writer: Connection) -> None:
    """A local PostgreSQL has a whole batch to work on while we do other things; the system may allow less. Over TCP
    the system widens its buffers by itself."""
    if writer.info.host.startswith("/"):
        with socket.fromfd(writer.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as shared:
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_BYTES)


async def rolled_back(connection: Connection) -> bool:
    """Has PostgreSQL ended its transaction, and is the connection as good as before?"""
    with suppress(psycopg.Error):
        await connection.rollback()
        return not connection.closed
    return False


def unavailable(
    error: BaseException, dsn: str, *, maybe_committed: bool = False
) -> StoreUnavailable:
    return StoreUnavailable(
        f"PostgreSQL at {_place(dsn)} cannot be used: {_said(error)} See that it runs and that --database "
        "names it rightly; its own log says more",
        maybe_committed=maybe_committed,
    )


def _said(error: BaseException) -> str:
    """As one sentence."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if said[-1] in ".?!" else f"{said}."


def _place(dsn: str) -> str:
    """Where, without the password."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        return "the given address"
    return f"{parts.get('host') or 'localhost'}, database {parts.get('dbname') or '(default)'}"


async def _connect(dsn: str, application_name: str, **changes: str) -> Connection:
    given = conninfo.conninfo_to_dict(dsn)
    settings = {"connect_timeout": CONNECT_LIMIT_S, **_KEEPALIVES, **given, **changes}
    return await Connection.connect(
        conninfo.make_conninfo(
            "", **settings, application_name=application_name, client_encoding="UTF8"
        ),
        autocommit=True,
    )


async def _is_missing(dsn: str) -> bool:
    """Does PostgreSQL answer, and say that there is no such database?"""
    try:
        connection = await _connect(dsn, OPENING, dbname=MAINTENANCE_DATABASE)
        async with connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            found = await connection.execute(query, (_database(dsn),))
            return await found.fetchone() is None
    except psycopg.Error:
        return False


async def _create_database(dsn: str) -> None:
    create = "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
    try:
        connection = await _connect(dsn, OPENING, dbname=MAINTENANCE_DATABASE)
        async with connection:
            await connection.execute(SQL(create).format(Identifier(_database(dsn))))
    except psycopg.errors.DuplicateDatabase:
        return  # somebody else was faster
    except psycopg.Error as error:
        raise unavailable(error, dsn) from error


def _database(dsn: str) -> str:
    return str(conninfo.conninfo_to_dict(dsn).get("dbname") or MAINTENANCE_DATABASE)


async def _require_store(writer: Connection, dsn: str) -> None:
    query = f"SELECT to_regclass('{SCHEMA}.meta') IS NOT NULL"
    if await (await writer.execute(query.encode())).fetchone() != (True,):
        raise _refused(dsn, "holds no store of a uTupleServer")


def _refused(dsn: str, why: str) -> StoreRefused:
    return StoreRefused(
        f"PostgreSQL at {_place(dsn)}: this database {why}. See that --database names the one this server had; "
        "a new server makes its own when it is started with --create"
    )


async def _check_server(writer: Connection, *, unsafe: bool) -> None:
    if writer.info.server_version < OLDEST_SERVER:
        raise StoreRefused("PostgreSQL 14 or newer is needed")
    names = ("server_encoding", "fsync", "full_page_writes", "synchronous_commit")
    query = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
    rows = await (await writer.execute(query, (list(names),))).fetchall()
    found: dict[str, str] = {name: setting for name, setting in rows}  # noqa: C416
    if found["server_encoding"] != "UTF8":
        raise StoreRefused(
            f"the database's encoding is {found['server_encoding']}: create it with ENCODING 'UTF8'"
        )
    off = [name for name in names if found[name] == "off"]
    if off and not unsafe:
        raise StoreRefused(
            f"PostgreSQL runs with {' and '.join(off)} off, so a crash may lose what was answered OK: "
            "turn it on, or start with --unsafe"
        )


async def _lock(writer: Connection) -> None:
    await writer.execute(f"SET lock_timeout = '{LOCK_WAIT_S}s'".encode())
    try:
        await writer.execute("SELECT pg_advisory_lock(%s)", (LOCK_KEY,))
    except psycopg.errors.LockNotAvailable:
        holder = await _holder(writer)
        raise StoreRefused(
            f"another process serves this store ({holder}): stop it first, or give this server a "
            "database of its own"
        ) from None
    await writer.execute("SET lock_timeout = 0")


async def _holder(writer: Connection) -> str:
    query = """
        SELECT format('%%s, backend %%s, from %%s', application_name, pid,
                      coalesce(client_addr::text, 'this machine'))
        FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE locktype = 'advisory' AND granted AND pg_locks.database = datid
          AND datname = current_database() AND ((classid::bigint << 32) | objid::bigint) = %s
    """
    found = await (await writer.execute(query, (LOCK_KEY,))).fetchone()
    return str(found[0]) if found is not None else "it has just ended; try again"


async def _terminate(writer: Connection, pattern: str) -> None:
    """End these backends of this database and wait until they are gone."""
    query = """
        SELECT pid, pg_terminate_backend(pid, %s) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE %s AND pid <> pg_backend_pid()
    """
    limit_ms = TERMINATE_LIMIT_S * 1000
    ended = await (await writer.execute(query, (limit_ms, pattern))).fetchall()
    # One that was gone before it could be ended is reported as not ended: look again.
    if not all(done for _, done in ended):
        ended = await (await writer.execute(query, (limit_ms, pattern))).fetchall()
    left = [pid for pid, done in ended if not done]
    if left:
        raise StoreUnavailable(
            f"backends of an earlier process do not end: {left}; look into PostgreSQL's log"
        )
