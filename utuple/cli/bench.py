"""`utuple bench`, and what it shows. The benchmarks themselves are in `benchmarks/`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.catalogue import ENTRIES, Entry
from utuple.cli.options import Json, print_json
from utuple.cli.outcome import FAILED, INTERRUPTED, told

if TYPE_CHECKING:
    from benchmarks.figures import Summary

Runs = Annotated[
    int | None,
    typer.Option(min=1, help="How often; the median counts.", show_default="3, or 1 with --quick"),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Small and short: whether it works, not how fast it is.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep logs and data of each run.")]

bench = typer.Typer(help="Benchmarks, on a cluster of their own.", no_args_is_help=True)


def _command(entry: Entry) -> Callable[..., None]:
    def measure(
        json: Json = False, runs: Runs = None, quick: Quick = False, keep: Keep = False
    ) -> None:
        runs = runs or (1 if quick else entry.runs)
        raise typer.Exit(_run(entry, runs, quick=quick, json=json, keep=keep))

    measure.__doc__ = entry.what
    return measure


for _entry in ENTRIES:
    bench.command(_entry.name)(told(_command(_entry)))


def _run(entry: Entry, runs: int, *, quick: bool, json: bool, keep: bool) -> int:
    """The exit code: a target that is missed is a result, a law that is broken a failure."""
    from benchmarks.benchmark import Options
    from benchmarks.running import run

    began_s = time.monotonic()

    def say(said: str) -> None:
        print(f"{time.monotonic() - began_s:6.1f} s  {said}", file=sys.stderr, flush=True)

    summary = asyncio.run(run(entry, Options(quick=quick), runs, say, keep=keep))
    if summary is None:
        return INTERRUPTED
    if json:
        print_json(summary.to_json())
    else:
        _show(summary)
    return FAILED if summary.breaks_a_law else 0


def _show(summary: Summary) -> None:
    from rich.console import Console
    from rich.table import Table

    targets = {target.figure: target for target in summary.targets}
    missed = {target.figure for target in summary.missed_targets}
    table = Table(title=f"{summary.name}, {len(summary.runs)} runs", title_justify="left")
    table.add_column("figure")
    for column in ("median", "least", "most", "target"):
        table.add_column(column, justify="right")
    table.add_column("met")
    for name, value in summary.figures.items():
        least, most = summary.spread[name]
        wanted = str(targets[name]) if name in targets else ""
        met = "" if name not in targets else "NO" if name in missed else "yes"
        table.add_row(name, *(f"{number:,}" for number in (value, least, most)), wanted, met)
    for name, reason in summary.skipped.items():
        table.add_row(name, "", "", "", str(targets[name]), f"skipped: {reason}")
    console = Console()
    console.print(table)
    for name, note in summary.notes.items():
        console.print(f"{name}: {note}", highlight=False)
    console.print(", ".join(f"{name} {value}" for name, value in summary.machine.items()))
