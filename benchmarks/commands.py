"""The commands `utuple bench` and `utuple chaos`, and what they show. The command line adds them where there is a checkout."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.catalogue import ENTRIES, Entry
from utuple.cli.options import Json, print_json
from utuple.cli.outcome import FAILED, INTERRUPTED, told
from utuple.errors import InvalidInput, UTupleError

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
Into = Annotated[Path, typer.Option(help="Folder for the results, one JSON file each.")]
Only = Annotated[str, typer.Option(help="Some of them: names with commas between.")]
From = Annotated[Path, typer.Option("--from", help="Folder with results of `bench all`.")]
To = Annotated[Path, typer.Option(help="Where performance.md and its folder of plots lie.")]

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


@bench.command("all")
@told
def all_(
    into: Into = Path("results"),
    runs: Runs = None,
    quick: Quick = False,
    only: Only = "",
    keep: Keep = False,
) -> None:
    """Every benchmark, one after the other; the results as JSON files in a folder."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    unknown = sorted(set(names).difference(entry.name for entry in ENTRIES))
    if unknown:
        known = ", ".join(entry.name for entry in ENTRIES)
        raise InvalidInput("--only", unknown[0], f"must be one of {known}")
    chosen = [entry for entry in ENTRIES if not names or entry.name in names]
    raise typer.Exit(_run_all(chosen, runs, into, quick=quick, keep=keep))


@bench.command("page")
@told
def page_(from_: From = Path("results"), to: To = Path("docs")) -> None:
    """Write the results page, performance.md, and its plots again from such a folder."""
    from benchmarks.page import page
    from benchmarks.plots import draw
    from benchmarks.results import read_results

    names = [entry.name for entry in ENTRIES]
    results = read_results(from_, names)
    plots = to / "performance"
    drawn = draw(results, plots)
    said = {name: (plots / f"{name}.md") for name in names}
    text = page(
        results,
        {name: path.read_text() for name, path in said.items() if path.exists()},
        {entry.name: entry.what for entry in ENTRIES},
        drawn,
    )
    (to / "performance.md").write_text(text)
    print(f"{to / 'performance.md'}: {len(results)} of {len(names)} benchmarks")


def _run_all(
    entries: Sequence[Entry], runs: int | None, into: Path, *, quick: bool, keep: bool
) -> int:
    """The worst exit code. One that fails does not keep the others from running."""
    from benchmarks.results import write_result

    worst = 0
    for number, entry in enumerate(entries, 1):
        print(f"--- {entry.name} ({number} of {len(entries)})", file=sys.stderr, flush=True)
        try:
            times = runs or (1 if quick else entry.runs)
            summary = _measured(entry, times, quick=quick, keep=keep)
        except UTupleError as error:
            print(f"{entry.name} failed: {error}", file=sys.stderr, flush=True)
            worst = FAILED
            continue
        if summary is None:
            return INTERRUPTED
        path = write_result(into, {**summary.to_json(), "quick": quick})
        _show(summary)
        print(f"{path}", file=sys.stderr, flush=True)
        if summary.breaks_a_law:
            worst = FAILED
    return worst


def _run(entry: Entry, runs: int, *, quick: bool, json: bool, keep: bool) -> int:
    """The exit code: a target that is missed is a result, a law that is broken a failure."""
    summary = _measured(entry, runs, quick=quick, keep=keep)
    if summary is None:
        return INTERRUPTED
    if json:
        print_json(summary.to_json())
    else:
        _show(summary)
    return FAILED if summary.breaks_a_law else 0


def _measured(entry: Entry, runs: int, *, quick: bool, keep: bool) -> Summary | None:
    """None if it was interrupted."""
    from benchmarks.benchmark import Options
    from benchmarks.running import run

    began_s = time.monotonic()

    def say(said: str) -> None:
        print(f"{time.monotonic() - began_s:6.1f} s  {said}", file=sys.stderr, flush=True)

    return asyncio.run(run(entry, Options(quick=quick), runs, say, keep=keep))


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


def chaos(
    minutes: Annotated[
        float, typer.Option(min=0.0, help="How long faults and moves go on.")
    ] = 10.0,
    json: Json = False,
    seed: Annotated[
        int | None, typer.Option(help="Which faults come is drawn from it.", show_default="random")
    ] = None,
    servers: Annotated[int, typer.Option(min=1, max=8, help="How many uTupleServers.")] = 4,
    scas: Annotated[int, typer.Option(min=1, max=3, help="How many sCA servers.")] = 2,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep logs and history also if all went well.")
    ] = False,
    secure: Annotated[
        bool, typer.Option("--secure", help="On a secured cluster: TLS, and grants.")
    ] = False,
) -> None:
    """Run a cluster of its own under load, kill, stop and cut its parts, and check every delivery."""
    from benchmarks.chaos.command import run

    code = run(
        minutes=minutes,
        json=json,
        seed=seed,
        servers=servers,
        scas=scas,
        keep=keep,
        secure=secure,
    )
    raise typer.Exit(code)
