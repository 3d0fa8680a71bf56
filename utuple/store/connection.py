"""A connection to PostgreSQL whose socket the event loop watches for as long as it is open.

psycopg begins to watch it with each statement and ends that with each answer: eight system calls and a timer, a quarter
of what the commit of a lonely event takes beside its fdatasync. Everything else is psycopg's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

LOOK_AGAIN_S = 0.1
"""psycopg's own: how often it sees to signals while it waits."""
CANCEL_LIMIT_S = 5.0
"""PostgreSQL that does not end a statement within this is left to notice by itself."""

T = TypeVar("T")


class Connection(psycopg.AsyncConnection[TupleRow]):
    prepared: dict[bytes, bytes]
    """Statements by name: see `asking`."""
    last_prepared = 0
    _heard: asyncio.Future[None] | None = None
    """Of whoever waits until PostgreSQL says something."""
    _watched: int | None = None
    """The socket, while the event loop watches it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.prepared = {}

    async def wait(
        self, gen: PQGen[T], interval: float = LOOK_AGAIN_S, timeout: float | None = None
    ) -> T:
        """As long as PostgreSQL is only to be listened to; a socket that is full, or a limit, is for psycopg."""
        wanted = Wait.R
        try:
            wanted = next(gen)
            while wanted == Wait.R and timeout is None:
                await self._hear()
                wanted = gen.send(Ready.R)
        except StopIteration as end:
            value: T = end.value
            return value
        except asyncio.CancelledError:
            await self._break_off(_begun(gen, wanted))
            raise
        except BaseException:
            self.let_go()
            raise
        self.let_go()
        return await super().wait(_begun(gen, wanted), interval, timeout)

    @property
    def is_idle(self) -> bool:
        """In no transaction."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    async def close(self) -> None:
        self.let_go()
        await super().close()

    def let_go(self) -> None:
        """The socket may be closed, or watched by others, from now on."""
        watched, self._watched = self._watched, None
        if watched is not None:
            asyncio.get_running_loop().remove_reader(watched)

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        if self._watched is None:
            socket = self.pgconn.socket
            loop.add_reader(socket, self._can_be_heard)
            self._watched = socket
        self._heard = loop.create_future()
        try:
            await self._heard
        finally:
            self._heard = None

    def _can_be_heard(self) -> None:
        if self._heard is None:  # nobody asked: it is read with the next answer
            self.let_go()
        elif not self._heard.done():
            self._heard.set_result(None)

    async def _break_off(self, rest: PQGen[object]) -> None:
        """As psycopg does: what was asked is cancelled, so that the connection can be used again."""
        self.let_go()
        if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return
        try:
            async with asyncio.timeout(CANCEL_LIMIT_S):
                await self.cancel_safe(timeout=CANCEL_LIMIT_S)
                with suppress(psycopg.errors.QueryCanceled):
                    await super().wait(rest)
        except (psycopg.Error, TimeoutError):
            self.pgconn.finish()


def _begun(gen: PQGen[T], wanted: Wait) -> PQGen[T]:
    """One that was begun already, for whoever begins it."""
    try:
        while True:
            wanted = gen.send((yield wanted))
    except StopIteration as end:
        value: T = end.value
        return value
