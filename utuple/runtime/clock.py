"""Time, for shells: cores are given it as an argument."""

from __future__ import annotations

import time


def now_us() -> int:
    """Wall time: what uTuples carry and expire by."""
    return time.time_ns() // 1_000


def monotonic_s() -> float:
    """For waits and rates: never jumps."""
    return time.monotonic()
