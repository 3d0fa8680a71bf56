"""Several runs of one benchmark, each in an empty folder of its own, and nothing left behind, also when it is
interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from benchmarks.benchmark import Options, Prepared, Say
from benchmarks.catalogue import Entry
from benchmarks.figures import Figures, Summary
from benchmarks.machine import machine
from utuple.local.temporary import new_folder, until_interrupted


async def run(entry: Entry, options: Options, runs: int, say: Say, *, keep: bool) -> Summary | None:
    """None if it was interrupted."""
    found = await until_interrupted(_run(entry, options, runs, say, keep=keep))
    if found is None:
        say("interrupted: everything is stopped")
    return found


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
    place = new_folder(f"bench-{name}")
    try:
        yield place
    finally:
        if keep:
            say(f"logs and data are in {place}")
        else:
            shutil.rmtree(place, ignore_errors=True)
