"""Strangers are elsewhere, and on one machine they are not: what they take of its processors would be taken for the server's doing.

So what is attacked has the first core for itself, everything else has the others, and there whoever attacks gives way (`step_back`). How
much it still said is told beside the figures. Where the system cannot do that (one core, no Linux), it merely gives way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NICE = 10

Give = Callable[[int], None]
"""The core that is left free, to the process of this number."""


@contextmanager
def others_apart() -> Iterator[Give]:
    """This process, and what it starts from now on, leaves the first core free; what is yielded gives that to a process."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield lambda pid: None
        return
    os.sched_setaffinity(0, cores[1:])
    try:
        yield lambda pid: _move(pid, cores[0])
    finally:
        os.sched_setaffinity(0, cores)


def _move(pid: int, core: int) -> None:
    """With all its threads; those that it starts later are where it is."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread.name), {core})


def step_back() -> None:
    """This process gets a tenth of what the others get, where they want it too. Not less: an attack that is not made shows nothing."""
    os.nice(NICE)
