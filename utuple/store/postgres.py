"""The PostgreSQL store: one connection that writes and holds the lock, a few that read.

What is here is order and failure; the statements are in the modules beside. The writer's connection is
used by one task at a time (`_writing`). When it is lost, or its state is in doubt, it is thrown away:
everything then raises StoreUnavailable until `open` is called again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg.rows import TupleRow

from utuple.errors import UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.store import collecting, lookup, recovery
from utuple.store.contract import (
    Batch,
    Known,
    Recovered,
    RetryKey,
    Search,
    StoreStats,
    StoreUnavailable,
    Transaction,
)
from utuple.store.copying import Rows, families_in
from utuple.store.families import Families
from utuple.store.leaves import Leaf
from utuple.store.migrations import migrate
from utuple.store.reading import Readers
from utuple.store.session import Connection, Sessions, unavailable
from utuple.store.writing import copy_events, note_seq, write_rest

COMMIT_LIMIT_S = 60.0
"""PostgreSQL that takes longer is stuck: the outcome is unknown, and a new connection is due."""


class PostgresStore:
    def __init__(self, dsn: str, *, unsafe: bool = False) -> None:
        self._dsn = dsn
        self._unsafe = unsafe
        self._sessions = Sessions(dsn, secrets.token_hex(4))
        self._writer: Connection | None = None
        self._readers: Readers | None = None
        self._families = Families()
        self._leaves: set[Leaf] = set()
        self._busy_leaves: set[Leaf] = set()
        self._writing = asyncio.Lock()
        self._changing_leaves = asyncio.Lock()
