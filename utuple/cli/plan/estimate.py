"""`utuple plan estimate`: throughput and accumulatable uTuples by the number of servers (figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.plan.options import Cost, ReportFolder, make_places
from utuple.cli.plan.printing import print_cautions, print_table, write_report
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from ops_sim.cost.estimate import Estimate

_SERVERS_MAX = 1_000_000


def estimate(
    cost: Cost = "paper",
    servers: Annotated[
        str, typer.Option(metavar="N,N,…", help="Numbers of servers.")
    ] = "1,2,5,10,20,50,100",
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE.parquet", help="Write the rows there.")
    ] = None,
    report: ReportFolder = None,
    json: Json = False,
) -> None:
    """Estimate the whole space from one server's costs: applications A and B, best and worst condition."""
    from ops_sim.cost.application import APPLICATIONS
    from ops_sim.cost.catalogue import cost_named
    from ops_sim.cost.estimate import cautions, estimates

    make_places(rows, report)
    model = cost_named(cost)
    found = list(estimates(APPLICATIONS.values(), model, _numbers(servers)))
    told, careful = list(map(asdict, found)), cautions(found, model)
    if rows is not None:
        from pyarrow import parquet

        from ops_sim.report.estimate import estimates_table

        parquet.write_table(estimates_table(told), rows)
    if report is not None:
        from ops_sim.report.estimate import estimate_report

        write_report(estimate_report(told, model.to_json(), careful), report)
    if json:
        print_json({"cost": model.to_json(), "cautions": careful, "estimates": told})
    else:
        print_cautions(careful)
        _show(found, model.name)


_SHOWN = (
    ("uTuples registered a second", "throughput_per_s"),
    ("accumulatable uTuples", "accumulatable"),
)


def _numbers(servers: str) -> list[int]:
    try:
        found = [int(part) for part in servers.split(",")]
    except ValueError:
        found = []
    if not found or not all(1 <= number <= _SERVERS_MAX for number in found):
        raise InvalidInput("--servers", servers, f"must be whole numbers, 1 to {_SERVERS_MAX}")
    return found


def _show(found: Sequence[Estimate], cost: str) -> None:
    sides = list(dict.fromkeys((row.method, row.condition) for row in found))
    cells = {(r.application, r.servers, (r.method, r.condition)): r for r in found}
    numbers = dict.fromkeys(row.servers for row in found)
    for application in dict.fromkeys(row.application for row in found):
        for what, name in _SHOWN:
            rows = (
                (
                    f"{n:,}",
                    *(f"{getattr(cells[application, n, side], name):,.0f}" for side in sides),
                )
                for n in numbers
            )
            title = f"{application}: {what} (figure 8; costs: {cost})"
            columns = ("servers", *("\n".join(side) for side in sides))
            print_table(title, columns, rows, first="right")
