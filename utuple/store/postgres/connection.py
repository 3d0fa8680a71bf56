"""A connection to PostgreSQL whose socket the event loop watches for as long as it is open.

psycopg begins to watch it with each statement and ends that with each answer: eight system calls and a timer, and whoever
waits is woken for each piece of an answer. Everything else is psycopg's (decision 94).
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.abc import PQGen, Transformer
from psycopg.adapt import Transformer as NewTransformer
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

LOOK_AGAIN_S = 0.1
"""A socket that has said nothing for so long is watched anew: uvloop stops to watch one whose other end is gone, even if only a part
of what is left there was read. psycopg looks as often."""
CANCEL_LIMIT_S = 5.0
"""PostgreSQL that does not end a statement within this is left to notice by itself."""
TELL_AGAIN_S = 0.1
"""PostgreSQL takes no notice of a cancellation that comes before the statement."""

T = TypeVar("T")


class _Hearing(Generic[T]):
    """What is being listened to, piece by piece."""

    def __init__(self, gen: PQGen[T], over: asyncio.Future[Wait | None]) -> None:
        self._gen = gen
        self.over = over
        """None: it has ended; else what it waits for is not to be heard."""
        self.values: list[T] = []

    def goes_on(self) -> bool:
        """False: it has failed, and the socket may be closed."""
        if self.over.done():
            return True
        try:
            wanted = self._gen.send(Ready.R)
        except StopIteration as end:
            self.values.append(end.value)
            self.over.set_result(None)
        except Exception as error:  # noqa: BLE001  for whoever waits
            self.over.set_exception(error)
            return False
        else:
            if wanted != Wait.R:
                self.over.set_result(wanted)
        return True


class Connection(psycopg.AsyncConnection[TupleRow]):
    prepared: dict[bytes, bytes]
    """Statements by name: see `asking`."""
    last_prepared = 0
    _hearing: _Hearing[Any] | None = None
    """Somebody waits for what PostgreSQL has to say."""
    _watched: int | None = None
    """The socket, while the event loop watches it."""
    _look: asyncio.TimerHandle | None = None
    """When it is looked again whether whoever waits is still being told."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.prepared = {}

    @cached_property
    def values_of(self) -> Transformer:
        """Reads the values of rows. It remembers how, of each type."""
        return NewTransformer(self)

    async def wait(
        self, gen: PQGen[T], interval: float = LOOK_AGAIN_S, timeout: float | None = None
    ) -> T:
        """As long as PostgreSQL is only to be listened to; a socket that is full, or a limit, is for psycopg."""
        try:
            wanted = next(gen)
        except StopIteration as end:
            value: T = end.value
            return value
        except BaseException:  # the socket may be closed
            self.let_go()
            raise
        if wanted == Wait.R and timeout is None:
            hearing = _Hearing(gen, asyncio.get_running_loop().create_future())
            try:
                self._listen(hearing)
                left = await hearing.over
            except asyncio.CancelledError:
                await self._break_off(hearing)
                raise
            except BaseException:
                self.let_go()
                raise
            finally:
                self._hearing = None
            if left is None:
                return hearing.values[0]
            wanted = left
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

    def _listen(self, hearing: _Hearing[Any]) -> None:
        self._hearing = hearing
        self._watch()
        if self._look is None:
            self._look_soon(hearing)

    def _watch(self) -> None:
        if self._watched is None:
            socket = self.pgconn.socket
            asyncio.get_running_loop().add_reader(socket, self._can_be_heard)
            self._watched = socket

    def _look_soon(self, hearing: _Hearing[Any]) -> None:
        """One timer for all statements."""
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(LOOK_AGAIN_S, self._look_again, hearing)

    def _look_again(self, before: _Hearing[Any]) -> None:
        self._look = None
        if self._hearing is not None:
            if self._hearing is before:
                self.let_go()
                self._watch()
            self._look_soon(self._hearing)

    def _can_be_heard(self) -> None:
        """Rows come in pieces of 8 kB: whoever waits is woken when all are here."""
        if self._hearing is None or not self._hearing.goes_on():  # or nobody asked
            self.let_go()

    async def _break_off(self, hearing: _Hearing[Any]) -> None:
        """As psycopg does: what was asked is cancelled, so that the connection can be used again."""
        if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
            self.let_go()
            return
        hearing.over = asyncio.get_running_loop().create_future()
        self._listen(hearing)
        try:
            async with asyncio.timeout(CANCEL_LIMIT_S):
                while not hearing.over.done():
                    await self.cancel_safe(timeout=CANCEL_LIMIT_S)
                    await asyncio.wait([hearing.over], timeout=TELL_AGAIN_S)
            is_over = hearing.over.result() is None
        except psycopg.errors.QueryCanceled:
            is_over = True
        except (psycopg.Error, TimeoutError, asyncio.CancelledError):
            is_over = False
        if not is_over:
            self.let_go()
            self.pgconn.finish()


def _begun(gen: PQGen[T], wanted: Wait) -> PQGen[T]:
    """One that was begun already, for whoever begins it. When psycopg is broken off it begins it once more, to hear the
    end of it, and what was being sent would take that for an answer: it is told that nothing is ready yet."""
    try:
        while True:
            ready: Ready | int | None = yield wanted
            wanted = gen.send(Ready.NONE if ready is None else ready)
    except StopIteration as end:
        value: T = end.value
        return value
