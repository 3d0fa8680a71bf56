"""A connection to PostgreSQL: psycopg's, with what we keep beside it."""

from __future__ import annotations

import select
from functools import cached_property
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen, Transformer
from psycopg.adapt import Transformer as NewTransformer
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.waiting import Ready

LOOK_AGAIN_S = 0.1
"""How often psycopg looks again at a socket that has said nothing. uvloop stops watching a socket whose other end is
gone, even if not all of its last words were read: so a lost PostgreSQL is noticed after this at the latest."""

T = TypeVar("T")


class Connection(psycopg.AsyncConnection[TupleRow]):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.prepared: dict[bytes, bytes] = {}
        """Names of prepared statements by their text: see `searching/prepared.py`."""
        self.last_prepared = 0

    @cached_property
    def values_of(self) -> Transformer:
        """Reads the values of rows. It remembers how, of each type."""
        return NewTransformer(self)

    @property
    def is_idle(self) -> bool:
        """In no transaction."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    @property
    def has_word(self) -> bool:
        """Has PostgreSQL sent something that was not asked for, such as its last words? Looks at the socket only. Between
        statements."""
        if self.closed:
            return True
        watched = select.poll()
        watched.register(self.fileno(), select.POLLIN)
        return bool(watched.poll(0))

    async def wait(
        self, gen: PQGen[T], interval: float = LOOK_AGAIN_S, timeout: float | None = None
    ) -> T:
        return await super().wait(_restartable(gen), interval, timeout)


def _restartable(gen: PQGen[T]) -> PQGen[T]:
    """The same, for a `wait` that is cancelled while a large statement is being sent.

    psycopg then has PostgreSQL cancel the statement and waits for its end with the same generator, which it begins with
    `next`, as if it were new. The generator stands in the middle of sending and would take the None it gets so for an
    answer (a TypeError in place of the cancellation). So it is told that nothing is ready yet, and goes on sending."""
    try:
        wanted = next(gen)
        while True:
            ready: Ready | int | None = yield wanted
            wanted = gen.send(Ready.NONE if ready is None else ready)
    except StopIteration as end:
        value: T = end.value
        return value
