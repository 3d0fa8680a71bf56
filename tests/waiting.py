"""Waiting in tests: ask until it is so, with a deadline. The one place that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_S = 60.0
"""A loaded machine is not a bug."""

_INTERVAL_S = 0.05

Answer = TypeVar("Answer")


def until(ask: Callable[[], Answer], what: str, limit_s: float = LIMIT_S) -> Answer:
    """The first answer that is true; `what` says in the failure what was waited for."""
    deadline_s = time.monotonic() + limit_s
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() >= deadline_s:
            raise AssertionError(f"not so after {limit_s:g} s: {what}; last answer {answer!r}")
        time.sleep(_INTERVAL_S)
