"""`utuple plan calibrate`: what uTuples cost a server of this machine (section 4.1.1, figures 6 and 7)."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from utuple.cli.options import Json, print_json
from utuple.cli.outcome import INTERRUPTED
from utuple.cli.plan.options import make_folder
from utuple.cli.plan.printing import print_cautions, print_table, write_report
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from ops_sim.cost.calibration import Calibration, Points


def calibrate(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where cost.json and the figures go.",
            show_default="~/.local/share/utuple",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small and short: whether it works, not what it costs.")
    ] = False,
    memory_gb: Annotated[
        float,
        typer.Option("--memory-gb", metavar="GB", help="What a server holds; the paper's has 140."),
    ] = 140.0,
    json: Json = False,
) -> None:
    """Measure a real uTupleServer, fit the cost model, and draw figures 6 and 7."""
    from ops_sim.cost import calibration as work
    from ops_sim.cost.catalogue import last_calibration
    from ops_sim.cost.model import GB
    from ops_sim.report.calibration import calibration_report
    from utuple.model.settings import number

    number("--memory-gb", memory_gb, least=0.001)
    if quick and out is None:
        raise InvalidInput("--quick", True, "needs --out: it must not replace the last calibration")
    folder = out or last_calibration().parent
    make_folder("--out", folder)
    found = work.calibrate(_measure(quick), memory_gb * GB, quick)
    told = {**asdict(found), "quick": quick}
    (folder / "cost.json").write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    write_report(calibration_report(told), folder)
    if json:
        print_json({**told, "folder": str(folder)})
    else:
        _show(found, folder)


def _measure(quick: bool) -> dict[str, Points]:
    from ops_sim.cost.calibration import Points
    from utuple.cli.plan.measuring import QUICK, Size, measure
    from utuple.local.temporary import temporary_folder, until_interrupted

    def say(said: str) -> None:
        print(said, file=sys.stderr, flush=True)

    with temporary_folder("calibrate") as place:
        working = measure(place, QUICK if quick else Size(), say)
        measured = asyncio.run(until_interrupted(working))
    if measured is None:
        say("interrupted: everything is stopped")
        raise typer.Exit(INTERRUPTED)
    return {name: Points(**points) for name, points in asdict(measured).items()}


def _show(found: Calibration, folder: Path) -> None:
    from rich.console import Console

    from ops_sim.report.formatting import plain

    rows = []
    for name, fit in found.fits.items():
        numbers = (fit.intercept, fit.intercept_95, fit.slope, fit.slope_95)
        rows.append((name, *(plain(number, 3) for number in numbers), str(fit.points)))
    columns = ("line", "at 0", "± 95 %", "for each more", "± 95 %", "points")
    print_table("Costs of one server", columns, rows)
    print_cautions(found.model.cautions(None))
    console = Console()
    console.print("In seconds and bytes. Assumed: " + "; ".join(found.assumed) + ".")
    console.print(f"cost.json is in {folder}, with figures 6 and 7 in report.html and page.png")
