"""`utuple plan compare`: two reports side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.plan.options import ReportFolder
from utuple.cli.plan.printing import print_table, write_report

if TYPE_CHECKING:
    from ops_sim.report.compare import Comparison


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

    from ops_sim.report.compare import only_said, row_said

    console = Console()
    for name, side in ((a_name, found.a), (b_name, found.b)):
        console.print(f"{name}: {side.answer}", style="bold", markup=False)
    for line in only_said(found, a_name, b_name):
        console.print(line, markup=False)
    for _, title, rows in found.kinds:
        if rows:
            print_table(title, ("", a_name, b_name, "change"), map(row_said, rows))
