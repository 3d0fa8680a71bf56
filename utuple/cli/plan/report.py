"""How commands of `utuple plan` write their report, and `utuple plan compare`, which reads two."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import Json, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from ops_sim.report.compare import Comparison, Difference
    from ops_sim.report.value import Report

ReportFolder = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="DIR",
        help="Write report.html, page.png, page.pdf and the tables as CSV and Parquet there.",
    ),
]


def write_report(report: Report, folder: Path) -> None:
    """Says where on stderr: stdout may be JSON."""
    from ops_sim.report.folder import write

    command = shlex.join(["utuple", *sys.argv[1:]])
    write(report, folder, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", command)
    print(f"The report is {folder / 'report.html'}", file=sys.stderr)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The folder of a report.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The folder of another.")],
    json: Json = False,
    report: ReportFolder = None,
) -> None:
    """Two plans side by side: answers, key figures, assumptions that differ, policies."""
    from ops_sim.report.compare import compare as compared
    from ops_sim.report.compare import comparison_report
    from ops_sim.report.folder import read

    found = compared(read(a), read(b))
    names = _names(a, b)
    if report is not None:
        write_report(comparison_report(found, *names), report)
    if json:
        print_json(found.to_json())
    else:
        _show(found, *names)


def _names(a: Path, b: Path) -> tuple[str, str]:
    """The folders' own names if they tell them apart."""
    short = a.resolve().name, b.resolve().name
    return short if short[0] != short[1] else (str(a), str(b))


def _show(found: Comparison, a_name: str, b_name: str) -> None:
    from rich.console import Console

    from ops_sim.report.compare import only_said

    console = Console()
    for name, side in ((a_name, found.a), (b_name, found.b)):
        console.print(f"{name}: {side.answer}", style="bold", markup=False)
    for line in only_said(found, a_name, b_name):
        console.print(line, markup=False)
    for title, rows in (
        ("Key figures", found.figures),
        ("Assumptions that differ", found.assumptions),
        ("Policies", found.policies),
    ):
        if rows:
            _show_rows(console, title, rows, a_name, b_name)


def _show_rows(
    console: Console, title: str, rows: tuple[Difference, ...], a_name: str, b_name: str
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from ops_sim.report.compare import changed
    from ops_sim.report.words import said

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("")
    for column in (a_name, b_name, "change"):
        table.add_column(escape(column), justify="right")
    for row in rows:
        cells = (row.title, said(row.a, row.unit), said(row.b, row.unit), changed(row))
        table.add_row(*map(escape, cells))
    console.print(table)
