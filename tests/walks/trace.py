"""Which functions of the product ran, in the order of their first call, with counts.

Programs also work when nobody asks anything of them (announcements, gossip, ticks). So a walk is taken several
times, and idle windows of the same length beside it; what ran no more often than in idleness, or not in every
run, is left out.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[2]
PRODUCT = ("utuple", "assignment_manager", "load_monitor", "sca_server")
RUNS = 5
Function = tuple[str, str]
"""File, from the root, and qualified name."""
Walk = dict[Function, int]
"""In the order of first calls, with the fewest calls of all runs."""


class Trace:
    """Counts calls while it is on. A coroutine counts each time it goes on."""

    def __init__(self) -> None:
        self.calls: Counter[Function] = Counter()
        self._known: dict[CodeType, Function | None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self._known:
                self._known[code] = _function(code)
            function = self._known[code]
            if function is not None:
                self.calls[function] += 1

    def __enter__(self) -> Trace:
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def _function(code: CodeType) -> Function | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or "_pb2" in path.name:
        return None
    relative = path.relative_to(ROOT)
    return (relative.as_posix(), code.co_qualname) if relative.parts[0] in PRODUCT else None


async def traced(act: Callable[[], Awaitable[None]], runs: int = RUNS) -> Walk:
    taken, idle = [], []
    loop = asyncio.get_running_loop()
    for _ in range(runs):
        with Trace() as trace:
            began_s = loop.time()
            await act()
            took_s = loop.time() - began_s
        taken.append(trace.calls)
        with Trace() as trace:
            await asyncio.sleep(took_s)
        idle.append(trace.calls)
    fewest = min(taken, key=len)
    counts = {function: min(calls[function] for calls in taken) for function in fewest}
    beside = {function: max(calls[function] for calls in idle) for function in fewest}
    return {function: count for function, count in counts.items() if count > beside[function]}


VALUES = (
    *("utuple/model/", "utuple/cluster/", "utuple/errors.py", "utuple/store/contract.py"),
    *("utuple/runtime/clock.py", "utuple/runtime/logs.py", "utuple/runtime/tasks.py"),
)
"""The words a way is told in, not steps on it: values, the clock, the log, the owner of tasks. Listed apart."""


def files(walk: Walk) -> list[str]:
    """The steps of the way."""
    return [file for file in _entered(walk) if not file.startswith(VALUES)]


def values(walk: Walk) -> list[str]:
    return [file for file in _entered(walk) if file.startswith(VALUES)]


def _entered(walk: Walk) -> list[str]:
    return list(dict.fromkeys(file for file, _ in walk))
