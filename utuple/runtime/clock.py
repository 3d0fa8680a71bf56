"""Time, for shells: cores are given it as an argument.

A clock is a matter of the context, so that many programs run in one thread, each by its own clock
(tests/virtual). Nobody else sets one: the system's is the default.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int: ...

    def monotonic_s(self) -> float: ...


CLOCK: ContextVar[Clock | None] = ContextVar("clock", default=None)
"""None: the system's."""


def now_us() -> int:
    """Wall time: what uTuples carry and expire by."""
    clock = CLOCK.get()
    return time.time_ns() // 1_000 if clock is None else clock.now_us()


def monotonic_s() -> float:
    """For waits and rates: never jumps."""
    clock = CLOCK.get()
    return time.monotonic() if clock is None else clock.monotonic_s()
