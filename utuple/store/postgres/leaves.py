"""Leaves: the tables EAs lie in, by expiry, so that collection drops tables and deletes no row.

A leaf holds the EAs of one bucket of expiry, and buckets are as wide as the lifetimes in them: readings
kept for minutes go in minutes, readings kept for a year in steps of half a month. So however lifetimes
are mixed, about two hundred leaves are alive at most, and usually a few dozen.

Leaves are plain inheriting tables. Making one takes no lock that readers or the writer would wait for,
and dropping one locks nothing but itself; PostgreSQL's declarative partitions lock their parent.

EAs that a move has brought lie in leaves of their own. They have an index on their origin, which a
server's own EAs need not pay for, and a search of one kind never looks into the leaves of the other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
is read for nothing at the two ends of a time range is little (decision 55)."""
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
