"""Leaves: the tables EAs lie in, by expiry, so that collection drops tables and deletes no row.

A leaf holds the EAs of one bucket of expiry, and buckets are as wide as the lifetimes in them: readings
kept for minutes go in minutes, readings kept for a year in steps of half a month. So however lifetimes
are mixed, about two hundred leaves are alive at most, and usually a few dozen.

Leaves are plain inheriting tables. Making one takes no lock that readers or the writer would wait for,
and dropping one locks nothing but itself; PostgreSQL's declarative partitions lock their parent.
"""

from __future__ import annotations

from dataclasses import dataclass

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

_LONGEST_US = np.array([longest for longest, _ in CLASSES], np.int64) * MICROSECONDS
_WIDTHS_S = np.array([*(width for _, width in CLASSES), LAST_WIDTH_S], np.int64)
_NAME = "events"


@dataclass(frozen=True, slots=True, order=True)
class Leaf:
    width_s: int
    bucket: int

    @property
    def name(self) -> str:
        return f"{_NAME}_{self.width_s}_{self.bucket}"

    @property
    def start_us(self) -> int:
        return self.bucket * self.width_s * MICROSECONDS

    @property
    def end_us(self) -> int:
        return self.start_us + self.width_s * MICROSECONDS

    @property
    def create(self) -> bytes:
        """BRIN on seq is for readers that catch up: what they miss lies together at the end."""
        name = self.name
        return (
            f"CREATE TABLE IF NOT EXISTS {name} ("
            f"CHECK (expires_us >= {self.start_us} AND expires_us < {self.end_us})"
            f") INHERITS ({_NAME});"
            f"CREATE INDEX IF NOT EXISTS {name}_time ON {name} (family, time_us);"
            f"CREATE INDEX IF NOT EXISTS {name}_address ON {name} (family, address);"
            f"CREATE INDEX IF NOT EXISTS {name}_seq ON {name} USING brin (seq) "
            "WITH (autosummarize = on)"
        ).encode()

    @property
    def drop(self) -> bytes:
        return f"DROP TABLE IF EXISTS {self.name}".encode()


def leaf_named(name: str) -> Leaf | None:
    """The inverse of `name`; None for a table that is not ours."""
    head, _, rest = name.partition("_")
    width, _, bucket = rest.partition("_")
    if head != _NAME or not (width.isdecimal() and bucket.isdecimal()):
        return None
    return Leaf(int(width), int(bucket))


def place(
    lifetimes_us: NDArray[np.int64], expires_us: NDArray[np.int64]
) -> list[tuple[Leaf, NDArray[np.intp] | None]]:
    """Which rows go to which leaf; None stands for all of them, the usual case."""
    widths = _WIDTHS_S[np.searchsorted(_LONGEST_US, lifetimes_us)]
    buckets = expires_us // (widths * MICROSECONDS)
    if (widths == widths[0]).all() and (buckets == buckets[0]).all():
        return [(Leaf(int(widths[0]), int(buckets[0])), None)]
    pairs, which = np.unique(np.stack((widths, buckets)), axis=1, return_inverse=True)
    return [
        (Leaf(int(width), int(bucket)), np.flatnonzero(which == number))
        for number, (width, bucket) in enumerate(pairs.T)
    ]
