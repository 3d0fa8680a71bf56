"""Readers' connections, and portals: result sets read piece by piece, in seq order.

A portal holds a connection, a snapshot and locks while it is open. A consumer that stalls must not keep
those from collection or from others, so after STALL_LIMIT_S the portal is closed behind its back; when it
comes back the search is opened anew after the last seq it was given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.rows import TupleRow

from utuple.store.asking import ByColumn, columns_of
from utuple.store.connection import Connection
from utuple.store.statements import Statement

READERS_MAX = 4
"""Connections for searches: more would only compete for the same disk."""
STALL_LIMIT_S = 2.0

FIRST_ROWS = 500
PIECE_BYTES = 4 << 20
"""A payload may have a megabyte: pieces begin small and grow only while payloads are small."""

BEGIN = "BEGIN READ ONLY"

ID_COLUMN = 0
PAYLOAD_COLUMN = 1
SEQ_COLUMN = 3
"""Where rows hold these: see `sql.event_columns`."""


class Readers:
    """A small pool. A connection that breaks is dropped and replaced when it is next needed."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(READERS_MAX)
        self._closed = False

    async def take(self) -> Connection:
        await self._free.acquire()
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
                await connection.close()
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    async def give_back(self, connection: Connection) -> None:
        """In whatever state it is: an open transaction is rolled back, a broken connection dropped."""
        try:
            if not self._closed and not connection.closed:
                if not connection.is_idle:
                    await connection.rollback()
                self._idle.append(connection)
        except psycopg.Error:
            await connection.close()
        except BaseException:
            connection.let_go()
            connection.pgconn.finish()
            raise
        finally:
            self._free.release()
            if self._closed or connection.closed:  # closed by PostgreSQL, it may still be watched
                await connection.close()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Connection]:
        connection = await self.take()
        try:
            yield connection
        finally:
            await self.give_back(connection)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()


class Portal:
    """One statement being read. `fetch` gives None if the portal has been closed for stalling."""

    def __init__(self, readers: Readers, connection: Connection) -> None:
        self._readers = readers
        self._connection: Connection | None = connection
        self._cursor = connection.cursor(name="portal", binary=True)
        self._busy = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, readers: Readers, statement: Statement, begin: str = BEGIN) -> Portal:
        connection = await readers.take()
        portal = cls(readers, connection)
        try:
            await connection.execute(begin.encode())
            await portal._cursor.execute(statement.text, statement.parameters)
        except BaseException:
            await portal.close()
            raise
        return portal

    async def fetch(self, most: int) -> list[TupleRow] | None:
        self._stop_timer()
        async with self._busy:
            if self._connection is None:
                return None
            rows = await self._cursor.fetchmany(most)
        self._timer = asyncio.get_running_loop().call_later(STALL_LIMIT_S, self._stalled)
        return rows

    def _stalled(self) -> None:
        self._closing = asyncio.create_task(self._close_quietly())

    async def _close_quietly(self) -> None:
        with suppress(psycopg.Error):  # the consumer will hear of it when it opens anew
            await self.close()

    async def close(self) -> None:
        self._stop_timer()
        async with self._busy:
            connection, self._connection = self._connection, None
            if connection is not None:
                await self._readers.give_back(connection)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def read_few(readers: Readers, statement: Statement, most: int) -> ByColumn | None:
    """All rows of a statement for few, in seq order; None: they are as many as `most`, one is large, or one is there
    twice."""
    connection = await readers.take()
    try:
        columns = await columns_of(connection, statement)
    finally:
        await readers.give_back(connection)
    if not columns:
        return columns
    seqs, ids = columns[SEQ_COLUMN], columns[ID_COLUMN]
    if len(ids) >= most or len({*ids}) < len(ids) or None in columns[PAYLOAD_COLUMN]:
        return None
    if sorted(seqs) != [*seqs]:  # seldom: they lie in that order
        order = sorted(range(len(seqs)), key=seqs.__getitem__)
        columns = [[column[row] for row in order] for column in columns]
    return columns


async def read_on(
    readers: Readers,
    statement_after: Callable[[int], Statement],
    after: int,
    most: int,
    begin: str = BEGIN,
) -> AsyncGenerator[list[TupleRow]]:
    """The rows of a statement that can be asked again from any seq, in pieces of at most `most`."""
    portal = await Portal.open(readers, statement_after(after), begin)
    wanted = min(most, FIRST_ROWS)
    try:
        while True:
            rows = await portal.fetch(wanted)
            if rows is None:
                portal = await Portal.open(readers, statement_after(after), begin)
                continue
            if rows:
                after = rows[-1][SEQ_COLUMN]
                yield rows
            if len(rows) < wanted:
                return
            wanted = min(most, next_piece(rows))
    finally:
        await portal.close()


def next_piece(rows: list[TupleRow]) -> int:
    """How many rows to ask for next, going by the size of these."""
    return max(1, min(2 * len(rows), PIECE_BYTES * len(rows) // max(1, size_bytes_of(rows))))


def size_bytes_of(rows: list[TupleRow]) -> int:
    """Of their payloads."""
    return sum(len(row[PAYLOAD_COLUMN]) for row in rows)
