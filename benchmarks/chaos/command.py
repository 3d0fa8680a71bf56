"""`utuple chaos`, and what it shows."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.chaos.ground import BLOCKS, Ground
from benchmarks.chaos.report import Report
from benchmarks.chaos.run import Run
from utuple.cli.options import print_json
from utuple.cli.outcome import FAILED, INTERRUPTED
from utuple.local.ports import claimed
from utuple.local.temporary import new_folder, until_interrupted

RATE_PER_S = 150.0
"""Events of all sensors together: modest, because all of this may have to run on two cores."""


class Shown:
    """Words on standard error and in a log; standard output is for the result."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a")
        self._began_s = time.monotonic()

    def say(self, said: str) -> None:
        """For the log only."""
        self._log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ} {said}\n")
        self._log.flush()

    def show(self, said: str) -> None:
        self.say(said)
        print(f"{time.monotonic() - self._began_s:6.1f} s  {said}", file=sys.stderr, flush=True)


def run(
    *,
    minutes: float,
    json: bool,
    seed: int | None,
    servers: int,
    keep: bool,
    scas: int = 2,
    secure: bool = False,
) -> int:
    """The exit code."""
    seed = seed if seed is not None else Random().randrange(1 << 32)
    place = new_folder("chaos")
    shown = Shown(place / "chaos.log")
    shown.show(f"seed {seed}, in {place}")
    kept = True
    try:
        with claimed(BLOCKS) as port:
            ground = Ground(
                *(place / "cluster", servers, port, seed, RATE_PER_S, shown.say),
                scas=scas,
                secure=secure,
            )
            work = Run(ground, seed, minutes, shown.say, shown.show)
            report = asyncio.run(until_interrupted(_report(ground, work)))
        kept = keep or (report is not None and not report.is_good)
    finally:
        if kept:
            shown.show(f"logs and history are in {place}")
        else:
            shutil.rmtree(place, ignore_errors=True)
    if report is None:
        return INTERRUPTED
    if kept:
        (place / "report.json").write_bytes(orjson.dumps(report.summary))
    for failure in report.failures:
        shown.show(failure)
    if json:
        print_json(report.summary)
    else:
        _show(report)
    return 0 if report.is_good else FAILED


async def _report(ground: Ground, work: Run) -> Report:
    """Nothing is left running, whatever happens."""
    try:
        return await work.run()
    except asyncio.CancelledError:
        work.show("interrupted: stopping everything")
        raise
    finally:
        await ground.stop()


def _show(report: Report) -> None:
    console = Console()
    summary = report.summary
    table = Table(title="What happened", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("how often", justify="right")
    for kind, count in summary["faults"]["by_kind"].items():
        table.add_row(kind, f"{count:,}")
    for kind, count in summary["moves"]["by_kind"].items():
        table.add_row(f"move: {kind}", f"{count:,}")
    console.print(table)
    console.print(
        f"{summary['faults']['total']} faults ({summary['kills']} kills), "
        f"{summary['moves']['total']} moves; registered {summary['registered']:,}, had to be "
        f"delivered {summary['deliveries_expected']:,}: missed {summary['missed']}, repeated "
        f"{summary['repeated']}, phantom {summary['phantom']}, lost {summary['lost']}; recovery "
        f"{summary['recovery_s_max']} s at most; seed {summary['seed']}"
    )
