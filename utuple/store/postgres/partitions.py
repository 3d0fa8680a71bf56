"""Which leaves exist, how many EAs each holds, and who may make or drop one just now.

Only this process makes and drops leaves, so what is noted here is the truth. The writer makes a leaf in
its own transaction; the collector drops one on another connection. They must not meet in the same leaf:
the collector leaves alone what a commit is using, and a commit that misses a leaf waits until a drop
under way is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import psycopg

from utuple.store.postgres.connection import Connection
from utuple.store.postgres.leaves import Leaf, leaf_named

DROP_LOCK_LIMIT_MS = 50
"""Searches that begin meanwhile queue behind the drop for as long as it waits."""

_NOTHING: Mapping[Leaf, int] = {}
_EXISTING = """
    SELECT relname, greatest(reltuples, pg_stat_get_live_tuples(oid), 0)
    FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'events'::regclass
"""


class Partitions:
    def __init__(self) -> None:
        self._rows: dict[Leaf, int] = {}
        self._in_use: set[Leaf] = set()
        self._one_changes = asyncio.Lock()

    async def load(self, writer: Connection) -> None:
        """Counts are PostgreSQL's estimates; from here on they are counted."""
        found = await (await writer.execute(_EXISTING)).fetchall()
        named = [(leaf_named(name), int(rows)) for name, rows in found]
        self._rows = {leaf: rows for leaf, rows in named if leaf is not None}

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> int:
        return sum(self._rows.values())

    def expired(self, now_us: int) -> list[Leaf]:
        return sorted(leaf for leaf in self._rows if leaf.end_us <= now_us)

    async def make(self, writer: Connection, needed: Iterable[Leaf]) -> None:
        """In the writer's transaction. From here until `release` the collector leaves these alone."""
        self._in_use.update(needed)
        missing = self._in_use - self._rows.keys()
        if missing:
            async with self._one_changes:
                for leaf in sorted(missing):
                    await writer.execute(leaf.create)

    def hold(self, leaf: Leaf) -> bool:
        """False if there is no such leaf. From here until `release` the collector leaves it alone."""
        if leaf in self._rows:
            self._in_use.add(leaf)
        return leaf in self._rows

    def hold_each(self, leaves: Iterable[Leaf]) -> bool:
        """The same for several: False if there is no such leaf among them."""
        return all(self.hold(leaf) for leaf in leaves)

    def hold_all(self) -> None:
        """From here until `release` the collector drops nothing."""
        self._in_use.update(self._rows)

    def committed(self, added: Mapping[Leaf, int], gone: Mapping[Leaf, int] = _NOTHING) -> None:
        for leaf, rows in added.items():
            self._rows[leaf] = self._rows.get(leaf, 0) + rows
        for leaf in gone.keys() & self._rows.keys():
            self._rows[leaf] = max(0, self._rows[leaf] - gone[leaf])  # which may be an estimate

    def release(self) -> None:
        self._in_use.clear()

    async def drop(self, connection: Connection, leaf: Leaf) -> bool:
        """False if a reader is in it, or the writer: the next collection tries again."""
        async with self._one_changes:
            if leaf in self._in_use or leaf not in self._rows:
                return False
            rows = self._rows.pop(leaf)
            try:
                async with connection.transaction():
                    limit = f"SET LOCAL lock_timeout = {DROP_LOCK_LIMIT_MS}"
                    await connection.execute(limit.encode())
                    await connection.execute(leaf.drop)
            except psycopg.errors.LockNotAvailable:
                self._rows[leaf] = rows
                return False
            # After any other failure it is unknown whether it is gone, so it counts as missing: making
            # a leaf that exists is harmless, writing to one that does not is not.
        return True
