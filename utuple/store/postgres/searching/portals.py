"""The pool of readers' connections, and portals: result sets read piece by piece, in seq order.

A portal holds a connection, a snapshot and locks while it is open. A consumer that stalls must not keep
those from collection or from others, so after STALL_LIMIT_S the portal is closed behind its back; when it
comes back the search is opened anew after the last seq it was given. So is one that has taken longer than its
turn (`turns`): others are next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.rows import TupleRow

from utuple.store.contract import OnSearch, nobody_asks
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.searching.prepared import ByColumn, columns_of
from utuple.store.postgres.statements import Statement
from utuple.store.turns import CONNECTIONS, Lane, Turns, limit_s

READERS_MAX = len(CONNECTIONS)
SEARCHES_AT_ONCE = READERS_MAX - CONNECTIONS.count(Lane.CHORE)
STALL_LIMIT_S = 2.0

FIRST_ROWS = 16
PIECE_BYTES = 4 << 20
"""A payload may have a megabyte: pieces begin small and grow only while payloads are small."""

BEGIN = "BEGIN READ ONLY"

ID_COLUMN = 0
PAYLOAD_COLUMN = 1
SEQ_COLUMN = 3
"""Where rows hold these: see `conditions.event_columns`."""


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class ReaderPool:
    """A small pool. A connection that breaks is dropped and replaced when it is next needed."""

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], on_search: OnSearch = nobody_asks
    ) -> None:
        self._connect = connect
        self._on_search = on_search
        self._idle: list[Connection] = []
        self._turns: Turns[asyncio.Future[Lane]] = Turns()
        self._in_use: dict[Connection, Lane] = {}
        """Those in use, and in whose turn."""
        self._closed = False

    async def acquire(self, lane: Lane, who: Hashable = None) -> Connection:
        own = await self._turn(lane, who)
        try:
            connection = await self._open()
        except BaseException:
            self._end_turn(own)
            raise
        self._in_use[connection] = own
        return connection

    async def _open(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
            await connection.close()
        return await self._connect()

    async def _turn(self, lane: Lane, who: Hashable) -> Lane:
        turn: asyncio.Future[Lane] = asyncio.get_running_loop().create_future()
        self._turns.ask(lane, who, turn)
        self._begin_next()
        try:
            return await turn
        except asyncio.CancelledError:
            self._turns.withdraw(lane, who, turn)
            if turn.done() and not turn.cancelled():
                self._end_turn(turn.result())
            raise

    def _begin_next(self) -> None:
        while (next_one := self._turns.begin()) is not None:
            own, turn = next_one
            if turn.done():  # cancelled, and not withdrawn yet
                self._turns.end(own)
            else:
                turn.set_result(own)

    def _end_turn(self, own: Lane) -> None:
        self._turns.end(own)
        self._begin_next()

    async def release(self, connection: Connection) -> None:
        """In whatever state it is: an open transaction is rolled back, a broken connection dropped."""
        try:
            if not self._closed and not connection.closed:
                if not connection.is_idle:
                    await connection.rollback()
                self._idle.append(connection)
        except psycopg.Error:
            await connection.close()
        except BaseException:
            connection.pgconn.finish()
            raise
        finally:
            self._end_turn(self._in_use.pop(connection))
            if self._closed or connection.closed:
                await connection.close()

    @asynccontextmanager
    async def connection(
        self, lane: Lane = Lane.CHORE, who: Hashable = None
    ) -> AsyncIterator[Connection]:
        connection = await self.acquire(lane, who)
        began_s = _now_s()
        try:
            yield connection
        finally:
            if lane is not Lane.CHORE:
                self.note_search(who, began_s)
            await self.release(connection)

    def note_search(self, who: Hashable, since_s: float) -> None:
        """It has kept one of the connections busy since then."""
        self._on_search(who, (_now_s() - since_s) / SEARCHES_AT_ONCE)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()


class Portal:
    """One statement being read. `fetch` gives None if the portal has been closed for stalling, and raises TimeoutError
    when its turn is over."""

    def __init__(
        self, readers: ReaderPool, connection: Connection, until_s: float, who: Hashable
    ) -> None:
        self._readers = readers
        self._who = who
        self._connection: Connection | None = connection
        self._until_s = until_s
        self._cursor = connection.cursor(name="portal", binary=True)
        self._busy = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, readers: ReaderPool, statement: Statement, begin: str, who: Hashable, broken_off: int
    ) -> Portal:
        connection = await readers.acquire(Lane(min(broken_off, Lane.LONG)), who)
        until_s = asyncio.get_running_loop().time() + limit_s(broken_off)
        portal = cls(readers, connection, until_s, who)
        began_s = _now_s()
        try:
            async with asyncio.timeout_at(until_s):
                await connection.execute(begin.encode())
                await portal._cursor.execute(statement.text, statement.parameters)
        except BaseException:
            await portal.close()
            raise
        finally:
            readers.note_search(who, began_s)
        return portal

    async def fetch(self, most: int) -> list[TupleRow] | None:
        self._stop_timer()
        async with self._busy:
            if self._connection is None:
                return None
            began_s = _now_s()
            try:
                async with asyncio.timeout_at(self._until_s):
                    rows = await self._cursor.fetchmany(most)
            finally:
                self._readers.note_search(self._who, began_s)
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
                await self._readers.release(connection)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def read_few(
    readers: ReaderPool, statement: Statement, most: int, who: Hashable
) -> ByColumn | None:
    """All rows of a statement for few, in seq order; None: they are as many as `most`, one is large, or to find them
    takes long."""
    async with readers.connection(Lane.SHORT, who) as connection:
        try:
            async with asyncio.timeout(limit_s(0)):
                columns = await columns_of(connection, statement)
        except TimeoutError:
            return None
    if not columns:
        return columns
    seqs = columns[SEQ_COLUMN]
    if len(seqs) >= most or None in columns[PAYLOAD_COLUMN]:
        return None
    if sorted(seqs) != [*seqs]:  # seldom: they lie in that order
        order = sorted(range(len(seqs)), key=seqs.__getitem__)
        columns = [[column[row] for row in order] for column in columns]
    return columns


async def count_few(readers: ReaderPool, statement: Statement, who: Hashable) -> int | None:
    """How many rows a statement for few has; None: to count them takes long. Of a circle's bounding box, if it asks for
    one: who would read them all to know?"""
    counting = b"SELECT count(*) FROM (" + statement.text + b") AS few"
    async with readers.connection(Lane.MEDIUM, who) as connection:
        try:
            async with asyncio.timeout(limit_s(Lane.MEDIUM)):
                cursor = await connection.execute(counting, statement.parameters, prepare=False)
                found = await cursor.fetchone()
        except TimeoutError:
            return None
    return int(found[0]) if found is not None else 0


async def read_on(
    readers: ReaderPool,
    statement_after: Callable[[int], Statement],
    after: int,
    most: int,
    begin: str = BEGIN,
    *,
    who: Hashable,
    broken_off: int = 1,
) -> AsyncGenerator[list[TupleRow]]:
    """The rows of a statement that can be asked again from any seq, in pieces of at most `most`. By default
    `read_few` has been in vain: that was its short turn."""
    portal: Portal | None = None
    wanted = min(most, FIRST_ROWS)
    try:
        while True:
            try:
                if portal is None:
                    asked = statement_after(after)
                    portal = await Portal.open(readers, asked, begin, who, broken_off)
                rows = await portal.fetch(wanted)
            except TimeoutError:
                broken_off += 1
                rows = None
            if rows is None:
                if portal is not None:
                    await portal.close()
                portal = None
                continue
            if rows:
                after = rows[-1][SEQ_COLUMN]
                yield rows
            if len(rows) < wanted:
                return
            wanted = min(most, next_piece(rows))
    finally:
        if portal is not None:
            await portal.close()


def next_piece(rows: list[TupleRow]) -> int:
    """How many rows to ask for next, going by the size of these."""
    return max(1, min(2 * len(rows), PIECE_BYTES * len(rows) // max(1, size_bytes_of(rows))))


def size_bytes_of(rows: list[TupleRow]) -> int:
    """Of their payloads."""
    return sum(len(row[PAYLOAD_COLUMN]) for row in rows)
