"""`utuple plan sweep`: thousands of scenarios, and the policy to take."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from utuple.cli.options import Json, print_json
from utuple.cli.outcome import INTERRUPTED
from utuple.cli.plan.options import MASTER_DEFAULT, Master, make_folder
from utuple.cli.plan.printing import print_cautions, print_table, progress_bar, write_report
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ops_sim.operation.scenario import Scenario

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Where results go.", show_default="FILE without .toml"
    ),
]
_SHOWN = 12
"""Policies in the table for people; all are in policies.csv."""


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.toml", help="A scenario; see utuple plan new.")
    ],
    out: Out = None,
    json: Json = False,
    master: Master = MASTER_DEFAULT,
) -> None:
    """Simulate every scenario of a file and recommend a policy. Ctrl-C leaves what is finished."""
    from ops_sim.operation.scenario import read_scenario

    scenario = read_scenario(file)
    folder = _folder(out or file.with_suffix(""), file)
    found, policies = _run(scenario, folder, master)
    (folder / "plan.json").write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))
    if json:
        print_json({**found, "policies": policies, "folder": str(folder)})
    else:
        _show(found, policies, folder)
    if found["interrupted"]:
        raise typer.Exit(INTERRUPTED)


def _folder(folder: Path, file: Path) -> Path:
    """The folder, without what an earlier sweep left."""
    make_folder("--out", folder)
    try:
        shutil.rmtree(folder / "scenarios", ignore_errors=True)
        shutil.copyfile(file, folder / "scenario.toml")
    except OSError as error:
        rule = f"cannot be written: {error.strerror}"
        raise InvalidInput("--out", str(folder), rule) from None
    return folder


def _run(
    scenario: Scenario, folder: Path, master: str
) -> tuple[dict[str, Any], Sequence[dict[str, Any]]]:
    from pyarrow import parquet

    from ops_sim.operation import sweep as work
    from ops_sim.operation.answer import answer
    from ops_sim.report.sweep import sweep_report
    from ops_sim.spark.session import spark_session

    study = scenario.study
    what = f"worlds: {study.scenarios:,} scenarios × {study.days} days"
    with progress_bar(study.worlds, what) as told:
        with spark_session(master) as spark:
            done = work.run_waves(spark, study, folder, told)
            if not done:
                raise KeyboardInterrupt  # nothing is finished
            policies, bands, days = work.sum_up(spark, study, folder, scenario.plan.risk, done)
    parquet.write_table(bands, folder / "bands.parquet")
    listed = policies.to_pylist()
    found = answer(scenario, listed, days.to_pylist(), done)
    write_report(sweep_report(found, policies, bands, days), folder)
    return found, listed


def _show(found: dict[str, Any], policies: Sequence[dict[str, Any]], folder: Path) -> None:
    from rich.console import Console

    console = Console()
    console.print(found["answer"], style="bold", markup=False)
    print_cautions(found["cautions"])
    console.print(f"Policy: {found['recommended']}. {found['reason']}", markup=False)
    shown = policies[:_SHOWN]
    print_table(
        "Policies, cheapest first",
        ("policy", "server-days", "orders", ">90 %", ">100 %", "headroom", ""),
        (_cells(row, found["front"]) for row in shown),
        green=[at for at, row in enumerate(shown) if row["policy"] == found["recommended"]],
        caption="share of scenarios above; *: no other policy beats it",
    )
    if len(policies) > _SHOWN:
        console.print(f"{len(policies) - _SHOWN} more in policies.csv")
    if found["interrupted"]:
        console.print(f"Interrupted: this is of {found['scenarios']:,} scenarios.", style="yellow")
    console.print(f"Tables are in {folder}")


def _cells(row: dict[str, Any], front: Sequence[str]) -> tuple[str, ...]:
    return (
        row["policy"],
        f"{row['server_days']:,.0f}",
        f"{row['purchases']:.1f}",
        f"{row['scenarios_above_90']:.1%}",
        f"{row['scenarios_above_100']:.1%}",
        f"{row['headroom']:.0%}",
        "*" if row["policy"] in front else "",
    )
