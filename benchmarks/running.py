"""Several runs of one benchmark, each in an empty folder of its own, and nothing left behind, also when it is
interrupted."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from benchmarks.benchmark import Options, Prepared, Say
from benchmarks.catalogue import Entry
from benchmarks.figures import Figures, Summary
from benchmarks.machine import machine

Found = TypeVar("Found")


async def run(entry: Entry, options: Options, runs: int, say: Say, *, keep: bool) -> Summary | None:
    """None if it was interrupted."""
    return await until_interrupted(_run(entry, options, runs, say, keep=keep), say)


async def until_interrupted(work: Coroutine[None, None, Found], say: Say) -> Found | None:
    """None if a signal came to end it: then it has cleaned up."""
    running = asyncio.create_task(work)
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if not running.cancelling():  # an impatient second Ctrl-C must not cut the cleaning up
            running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupt)
    try:
        return await running
    except asyncio.CancelledError:
        say("interrupted: everything is stopped")
        return None


async def _run(entry: Entry, options: Options, runs: int, say: Say, *, keep: bool) -> Summary:
    benchmark = entry.make(options)
    found: list[Figures] = []
    before = machine()
    async with AsyncExitStack() as stack:
        if isinstance(benchmark, Prepared):
            place = stack.enter_context(own_place(entry.name, say, keep=keep))
            await stack.enter_async_context(benchmark.prepared(place, say))
        for number in range(1, runs + 1):
            say(f"run {number} of {runs}")
            with own_place(entry.name, say, keep=keep) as place:
                found.append(await benchmark.run(place, say))
            shown = ", ".join(
                f"{name} {found[-1][name]:g}"
                for name in (t.figure for t in benchmark.targets)
                if name in found[-1]
            )
            say(f"run {number}: {shown}")
    return Summary(entry.name, found, benchmark.targets, before, benchmark.notes)


@contextmanager
def own_place(name: str, say: Say, *, keep: bool) -> Iterator[Path]:
    place = _new_place(name)
    try:
        yield place
    finally:
        if keep:
            say(f"logs and data are in {place}")
        else:
            shutil.rmtree(place, ignore_errors=True)


def _new_place(name: str) -> Path:
    place = Path(tempfile.mkdtemp(prefix=f"utuple-bench-{name}-"))
    # PostgreSQL does not run as root: whoever it runs as must get to its folder.
    place.chmod(0o755)
    return place
