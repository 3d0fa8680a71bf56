"""Ctrl-C while Spark works. A call to the JVM that is cut short leaves a connection nobody can use again, so another
thread makes the calls, which no signal reaches; the main thread waits, and is interrupted instead."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

_AGAIN_S = 0.5
"""A job may begin just after the jobs were cancelled."""

Found = TypeVar("Found")


def interruptible(work: Callable[[], Found], cancel: Callable[[], object]) -> Found:
    """What `work` gives; if interrupted, `work` has ended when KeyboardInterrupt is raised."""
    with ThreadPoolExecutor(1) as other:
        running = other.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            with uninterrupted():
                while not running.done():
                    cancel()
                    wait([running], _AGAIN_S)
            raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """An impatient second Ctrl-C must not cut the cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
