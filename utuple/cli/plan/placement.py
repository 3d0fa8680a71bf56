"""`utuple plan placement`: where load lies when keys are uneven, by the planner that runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.outcome import INTERRUPTED
from utuple.cli.plan.options import MASTER_DEFAULT, Cost, Master, ReportFolder, make_places
from utuple.cli.plan.printing import print_cautions, print_table, progress_bar, write_report

if TYPE_CHECKING:
    from ops_sim.placement.on_spark import Placement

DEVICES_PER_SERVER = 140_000.0
"""With the paper's cost model a bit less than half of what a server can bear, so that help has somewhere to go."""

Skews = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SKEW",
        help="even, zipf:EXPONENT or hot:SHARE (one key is that share); may be given several times.",
        show_default="zipf:1.1",
    ),
]
Churn = Annotated[
    float, typer.Option(help="Share of the keys that vanish a day, others appearing.")
]
Night = Annotated[float, typer.Option(help="Share by which load falls at night and rises by day.")]
Rows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="FILE.parquet", help="Write every day of every scenario there."),
]
Knobs = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME=VALUE",
        help="A knob of the planner, such as members_max=1000, T_p=0.7 or split_at=half (or key, the default); "
        "all: python -m load_monitor --help.",
    ),
]


def placement(
    servers: Annotated[int, typer.Option(help="uTupleServers on the last day.")] = 100,
    servers_start: Annotated[
        int | None, typer.Option(help="On the first day.", show_default="half of them")
    ] = None,
    devices: Annotated[
        float | None, typer.Option(help="On the last day.", show_default="140,000 a server")
    ] = None,
    keys: Annotated[int, typer.Option(help="Different (subject, type).")] = 100_000,
    days: Annotated[int, typer.Option(help="How long.")] = 365,
    skew: Skews = None,
    churn: Churn = 0.0,
    night: Night = 0.0,
    seed: Annotated[int, typer.Option(help="What is drawn follows from it.")] = 1,
    policy: Knobs = None,
    cost: Cost = "paper",
    json: Json = False,
    rows: Rows = None,
    report: ReportFolder = None,
    master: Master = MASTER_DEFAULT,
) -> None:
    """Simulate day by day how the planner spreads uneven load, beside a traditional DHT.

    The planner is the one that runs in the load monitor. Devices and servers grow
    together, from half to the given number. Ctrl-C leaves the days that are finished.
    """
    from pyarrow import parquet

    from load_monitor.planning.policy import Policy, adjusted, knobs_from
    from ops_sim.cost.catalogue import cost_named
    from ops_sim.placement import on_spark as simulation
    from ops_sim.placement.scenario import Scenario, skew_from
    from ops_sim.spark.session import spark_session

    first = max(1, servers // 2) if servers_start is None else servers_start
    last_devices = servers * DEVICES_PER_SERVER if devices is None else devices
    scenarios = tuple(
        Scenario(
            servers=servers,
            servers_first=first,
            devices=last_devices,
            devices_first=last_devices * first / max(1, servers),
            keys=keys,
            days=days,
            skew=skew_from(text),
            churn=churn,
            night=night,
            seed=seed,
        )
        for text in skew or ["zipf:1.1"]
    )
    make_places(rows, report)
    model = cost_named(cost)
    knobs = adjusted(Policy(), knobs_from(policy or []))
    planned = simulation.Placement(scenarios, model, knobs)
    with progress_bar(days, "days") as told, spark_session(master) as spark:
        table = simulation.run_waves(spark, planned, told)
    if rows is not None:
        parquet.write_table(table, rows)
    assumed = {"keys": keys, "seed": seed, "cost": model.name}
    if _tell(table, planned, assumed, json, report) < days:
        raise typer.Exit(INTERRUPTED)


def _tell(
    table: Any, planned: Placement, assumed: dict[str, object], json: bool, report: Path | None
) -> int:
    """How many days are finished."""
    from ops_sim.placement.on_spark import figures
    from ops_sim.placement.study import PROPOSED
    from ops_sim.report.placement import placement_report

    found = figures(table.to_pylist())
    done = max(int(row["days"]) for row in found)
    assumed = {"days": done, **assumed}
    longest, careful = planned.policy.members_max, planned.cautions
    made = placement_report(table, found, PROPOSED, longest, assumed, careful)
    if report is not None:
        write_report(made, report)
    if json:
        print_json({"answer": made.answer, "cautions": careful, "scenarios": found, **assumed})
    else:
        print_cautions(careful)
        _show(made.answer, found)
    if done < planned.scenarios[0].days:
        print(f"Interrupted: this is of {done} days.", file=sys.stderr)
    return done


_SHOWN = (
    ("servers", "servers", "{:,.0f}"),
    ("devices", "devices", "{:,.0f}"),
    ("processing, mean", "processing_mean", "{:.1%}"),
    ("busiest server", "processing_max", "{:.1%}"),
    ("imbalance (max over mean)", "imbalance_mean", "{:.2f}"),
    ("fullest server", "memory_max", "{:.1%}"),
    ("days with a server above 100 %", "days_over_100", "{:.1%}"),
    ("servers above 100 %, mean", "servers_over_100_mean", "{:,.1f}"),
    ("moves on the first day", "moves_first_day", "{:,.0f}"),
    ("moves a day", "moves_a_day", "{:,.1f}"),
    ("EFs copied a day", "copied_efs_a_day", "{:,.1f}"),
    ("EAs migrated a day", "migrated_eas_a_day", "{:,.0f}"),
    ("lines", "lines", "{:,.0f}"),
    ("members per line", "members_mean", "{:.2f}"),
    ("longest line", "members_max", "{:,.0f}"),
    ("of the way to the worst condition", "worst_share", "{:.3%}"),
)


def _show(answer: str, found: list[dict[str, Any]]) -> None:
    from rich.console import Console

    Console().print(answer, style="bold")
    for name in dict.fromkeys(row["scenario"] for row in found):
        sides = [row for row in found if row["scenario"] == name]
        rows = (
            (said, *(form.format(side[column]) for side in sides)) for said, column, form in _SHOWN
        )
        print_table(name, ("second half of the days", *(side["method"] for side in sides)), rows)
