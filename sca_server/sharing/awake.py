"""The time this program has lived through: pauses in which it stood still do not count. Pure.

A machine with too much to do, or a long turn of the loop, may stop a program for seconds. What others sent meanwhile is there, and
waits to be read. By the clock on the wall such a program would say first thing that they were silent, or that a device had the time
to come and did not; it is the one that was away.
"""

from __future__ import annotations

import math


class Awake:
    def __init__(self, most_s: float, now_s: float, *, late_s: float = math.inf) -> None:
        """From one beat to the next no more than `most_s` counts. Who stood still for `late_s` may have been given up by others."""
        self._most_s = most_s
        self._late_s = late_s
        self._beat_s = self._lived_s = now_s

    def at(self, now_s: float) -> float:
        return self._lived_s + min(now_s - self._beat_s, self._most_s)

    def is_late(self, now_s: float) -> bool:
        """It stood still for so long since the last beat that what it knows of the others may be over."""
        return now_s - self._beat_s >= self._late_s

    def beat(self, now_s: float) -> None:
        """The loop goes round: what had come before has been read."""
        self._lived_s, self._beat_s = self.at(now_s), now_s
