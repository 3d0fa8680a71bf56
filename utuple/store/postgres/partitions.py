"""Leaves: the tables EAs lie in, by expiry, so that collection drops tables and deletes no row; and who may make or drop one.

A leaf holds the EAs of one bucket of expiry, and buckets are as wide as the lifetimes in them: readings
kept for minutes go in minutes, readings kept for a year in steps of half a month. So however lifetimes
are mixed, about two hundred leaves are alive at most, and usually a few dozen.

Leaves are plain inheriting tables. Making one takes no lock that readers or the writer would wait for,
and dropping one locks nothing but itself; PostgreSQL's declarative partitions lock their parent.

EAs that a move has brought lie in leaves of their own. They have an index on their origin, which a
server's own EAs need not pay for, and a search of one kind never looks into the leaves of the other.

Only this process makes and drops leaves, so what `Partitions` notes is the truth. The writer makes a leaf in
its own transaction; the collector drops one on another connection. They must not meet in the same leaf:
the collector leaves alone what a commit is using, and a commit that misses a leaf waits until a drop
under way is over.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray

from utuple.store.postgres.connection import Connection

_MINUTE_S = 60
_HOUR_S = 3_600
_DAY_S = 86_400
_YEAR_S = 366 * _DAY_S
MICROSECONDS = 1_000_000

CLASSES = (
    (_HOUR_S, 5 * _MINUTE_S),
    (_DAY_S, 2 * _HOUR_S),
    (30 * _DAY_S, _DAY_S),
    (_YEAR_S, 15 * _DAY_S),
)
"""(longest lifetime, width of its buckets), in seconds."""
LAST_WIDTH_S = _YEAR_S
"""For all longer lifetimes."""

TIME_BUCKET_BITS = 34
"""2**34 us, 4.8 hours: ten readings of a device that tells something every half hour, which share an entry; and what
is read for nothing at the two ends of a time range is little (decision 10)."""
TIME_BUCKET = f"(time_us >> {TIME_BUCKET_BITS})::integer"

_LONGEST = [longest * MICROSECONDS for longest, _ in CLASSES]
_WIDTHS = [*(width for _, width in CLASSES), LAST_WIDTH_S]
_LONGEST_US = np.array(_LONGEST, np.int64)
_WIDTHS_S = np.array(_WIDTHS, np.int64)
_NAME = "events"
_MOVED = "moved"
_PATTERN = re.compile(rf"{_NAME}_(?P<width>\d+)_(?P<bucket>\d+)(?P<moved>_{_MOVED})?", re.ASCII)


class Leaf(NamedTuple):
    width_s: int
    bucket: int
    is_moved: bool = False
    """Holds EAs of other servers, and none of this one's own."""

    @property
    def name(self) -> str:
        own = f"{_NAME}_{self.width_s}_{self.bucket}"
        return f"{own}_{_MOVED}" if self.is_moved else own

    @property
    def start_us(self) -> int:
        return self.bucket * self.width_s * MICROSECONDS

    @property
    def end_us(self) -> int:
        return self.start_us + self.width_s * MICROSECONDS

    @property
    def create(self) -> bytes:
        """BRIN on seq is for readers that catch up: what they miss lies together at the end. The address's index knows
        the time as well, but coarsely: the EAs of one address and bucket share an entry."""
        name = self.name
        by_origin = (
            f"; CREATE INDEX IF NOT EXISTS {name}_origin ON {name} (origin, seq)"
            if self.is_moved
            else ""
        )
        return (
            f"CREATE TABLE IF NOT EXISTS {name} ("
            f"CHECK (expires_us >= {self.start_us} AND expires_us < {self.end_us}), "
            f"CHECK (origin {'>' if self.is_moved else '='} 0)"
            f") INHERITS ({_NAME});"
            f"CREATE INDEX IF NOT EXISTS {name}_time ON {name} (family, time_us);"
            f"CREATE INDEX IF NOT EXISTS {name}_address ON {name} (family, address, ({TIME_BUCKET}));"
            f"CREATE INDEX IF NOT EXISTS {name}_seq ON {name} USING brin (seq) "
            f"WITH (autosummarize = on){by_origin}"
        ).encode()

    @property
    def drop(self) -> bytes:
        return f"DROP TABLE IF EXISTS {self.name}".encode()


def leaf_named(name: str) -> Leaf | None:
    """The inverse of `name`; None for a table that is not ours."""
    found = _PATTERN.fullmatch(name)
    if found is None:
        return None
    return Leaf(int(found["width"]), int(found["bucket"]), found["moved"] is not None)


def leaf_of(lifetime_us: int, expires_us: int) -> Leaf:
    """Where one of a server's own goes; of many `place` says the same."""
    width_s = _WIDTHS[bisect_left(_LONGEST, lifetime_us)]
    return Leaf(width_s, expires_us // (width_s * MICROSECONDS))


def place(
    lifetimes_us: NDArray[np.int64], expires_us: NDArray[np.int64], *, is_moved: bool = False
) -> list[tuple[Leaf, NDArray[np.intp] | None]]:
    """Which rows go to which leaf; None stands for all of them, the usual case."""
    widths = _WIDTHS_S[np.searchsorted(_LONGEST_US, lifetimes_us)]
    buckets = expires_us // (widths * MICROSECONDS)
    if (widths == widths[0]).all() and (buckets == buckets[0]).all():
        return [(Leaf(int(widths[0]), int(buckets[0]), is_moved), None)]
    pairs, which = np.unique(np.stack((widths, buckets)), axis=1, return_inverse=True)
    return [
        (Leaf(int(width), int(bucket), is_moved), np.flatnonzero(which == number))
        for number, (width, bucket) in enumerate(pairs.T)
    ]


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
