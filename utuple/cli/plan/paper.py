"""`utuple plan paper`: the operation of 1000 days of section 4.2, beside what the paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.plan.options import MASTER_DEFAULT, Master, ReportFolder, make_places
from utuple.cli.plan.printing import print_table, write_report

Rows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="FILE.parquet", help="Write every day of both readings there."),
]


def paper(
    json: Json = False,
    rows: Rows = None,
    report: ReportFolder = None,
    master: Master = MASTER_DEFAULT,
) -> None:
    """Simulate the paper's 1000 days: ten servers at the start, 10,000 devices more every day."""
    from ops_sim.operation import paper as simulation
    from ops_sim.spark.session import on_spark

    make_places(rows, report)
    found = on_spark(master, lambda spark: simulation.days(spark).toArrow())
    days = found.sort_by([("policy", "ascending"), ("day", "ascending")])
    written, variant = (
        simulation.figures(simulation.days_under(reading, days))
        for reading in (simulation.AS_WRITTEN, simulation.VARIANT)
    )
    if rows is not None:
        from pyarrow import parquet

        parquet.write_table(days, rows)
    if report is not None:
        from ops_sim.report.paper import paper_report

        write_report(paper_report(days), report)
    if json:
        print_json({**written, "variant": variant, "printed": simulation.PRINTED})
    else:
        _show(written, variant, simulation.PRINTED)


def _show(written: dict[str, Any], variant: dict[str, Any], printed: dict[str, Any]) -> None:
    from rich.console import Console

    from ops_sim.operation.paper import DIFFERENCE

    sides = (written, variant, printed)
    rows = [("servers on day 1000", *(str(side["servers_day_1000"]) for side in sides))]
    for name in ("memory", "processing"):
        rows.append((f"{name}, days 500–1000", *(f"{side[f'{name}_mean']:.1%}" for side in sides)))
    columns = ("", "the rule as written", "for installation + 60", "the paper prints")
    print_table("1000 days (section 4.2)", columns, rows)
    console = Console()
    for name, side in (("as written", written), ("the variant", variant)):
        bought = ", ".join(f"{p['servers']} on day {p['day']}" for p in side["purchases"])
        console.print(f"Bought {name}: {bought}.")
    console.print(DIFFERENCE)
