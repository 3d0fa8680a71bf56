"""`utuple plan forecast`: when servers run out, and how many to order by when, from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.plan.options import MASTER_DEFAULT, Cost, Master, make_folder
from utuple.cli.plan.report import ReportFolder, write_report
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from ops_sim.policy import Policy

Telemetry = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Samples of the load monitor: `utuple up --telemetry DIR`."),
]
Recording = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Instead: any table of address, time, lat, lon, subject, type (.csv, .csv.gz, .parquet).",
    ),
]
Tables = Annotated[
    Path | None,
    typer.Option("--tables", metavar="DIR", help="Write the daily tables there, as Parquet."),
]


def forecast(
    telemetry: Telemetry = None,
    recording: Recording = None,
    devices: Annotated[
        float | None, typer.Option(help="Scale a recording to so many devices.")
    ] = None,
    lead_days: Annotated[int, typer.Option(help="From an order to the installation.")] = 30,
    horizon_days: Annotated[int, typer.Option(help="How far ahead an order looks.")] = 60,
    cost: Cost = "paper",
    json: Json = False,
    tables: Tables = None,
    report: ReportFolder = None,
    master: Master = MASTER_DEFAULT,
) -> None:
    """Say when each server runs out, and how many to order by which date, with bands."""
    from ops_sim import forecast as planning
    from ops_sim.costs import cost_named
    from ops_sim.policy import Policy
    from ops_sim.recording import check
    from ops_sim.session import SessionConfig, on_spark
    from ops_sim.telemetry import daily_cluster, files_in

    if (telemetry is None) == (recording is None):
        given = "both" if telemetry is not None else "neither"
        raise InvalidInput("--telemetry", given, "give either --telemetry DIR or --recording FILE")
    if devices is not None and not devices > 0:
        raise InvalidInput("--devices", devices, "must be above 0")
    make_folder("--tables", tables)
    make_folder("--report", report)
    model = cost_named(cost)
    question = planning.Question(Policy(horizon_days=horizon_days), lead_days)
    files = files_in(str(telemetry)) if telemetry is not None else []
    if recording is not None:
        check(str(recording))

    def work(spark: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if recording is not None:
            answer, made = planning.from_recording(
                spark, str(recording), model, devices, question.policy
            )
        else:
            answer, made = planning.from_telemetry(spark, files, question)
        if tables is not None:
            for name, table in made.items():
                table.write.mode("overwrite").parquet(str(tables / name))
        return answer, daily_cluster(made["daily_servers"]) if report and telemetry else []

    answer, history = on_spark(SessionConfig(master=master), work)
    if report is not None:
        _write_report(answer, history, question.policy, report)
    if json:
        print_json(answer)
    else:
        typer.echo("\n".join(_said(answer)))


def _write_report(
    answer: dict[str, Any], history: list[dict[str, Any]], policy: Policy, folder: Path
) -> None:
    from ops_sim.report.forecast import forecast_report, recording_report

    said = _said(answer)[0]
    if "recording" in answer:
        write_report(recording_report(answer, said), folder)
    else:
        write_report(forecast_report(answer, said, history, policy), folder)


_DAYS_LEAST = 2
"""Of samples: a line through an hour says nothing about months."""


def _said(answer: dict[str, Any]) -> list[str]:
    if "recording" in answer:
        return _said_of_recording(answer)
    read, likely, early = answer["telemetry"], answer["order"]["likely"], answer["order"]["early"]
    lines = [_order_said(likely, early, answer)]
    lines.append(
        f"From {read['rows']:,} rows of {read['files']:,} files, {read['first']} to {read['last']}; "
        f"{read['repeated_rows']:,} repeated, {read['late_rows']:,} late, {read['broken']} files broken."
    )
    lines += [f"  broken: {broken}" for broken in read["broken_files"]]
    for resource, demand in answer["demand"].items():
        lines.append(
            f"{resource}: {demand['servers']:.2f} of {answer['servers_now']} servers now, in "
            f"{answer['horizon_days']} days {demand['ahead']:.2f} "
            f"({demand['ahead_low']:.2f} to {demand['ahead_high']:.2f})"
        )
        if not demand["can_tell"]:
            lines.append("  too few samples to tell how it grows")
    for server in answer["servers"]:
        for resource in ("processing", "memory"):
            said = server[resource]
            full = said["full"] or "not within ten years"
            lines.append(
                f"{server['name']}: {resource} {said['load']:.1%}, full {full} "
                f"(earliest {said['full_early'] or 'never'}, latest {said['full_late'] or 'never'})"
            )
    return lines + _keys_said(answer["hot_keys"], "{arrival_per_s:,.1f}/s")


def _order_said(likely: Any, early: Any, answer: dict[str, Any]) -> str:
    from ops_sim.report.words import count

    if (days := answer["telemetry"]["days"]) < _DAYS_LEAST:
        return (
            f"Too early to say: these samples are of {days * 24:.1f} hours, and load differs between day and night. "
            f"Ask again after {_DAYS_LEAST} days, better weeks."
        )
    if likely is None and early is None:
        return "Nothing to order: demand stays below what the servers can bear for ten years."
    due = likely or early
    servers = count(due["servers"], "server")
    said = f"Order {servers} by {due['by']} (installed {due['installed']})"
    if early is not None and early != likely:
        said += f"; to be safe {early['servers']} by {early['by']}"
    return said + "."


def _said_of_recording(answer: dict[str, Any]) -> list[str]:
    from ops_sim.report.words import count

    read = answer["recording"]
    return [
        f"{count(answer['servers_needed'], 'server')} for {answer['devices']:,.0f} devices like these.",
        f"From {read['rows']:,} rows of {read['devices']:,} devices on {read['days']} days, "
        f"{read['first']} to {read['last']}; {read['bad_rows']:,} rows without a time or a name.",
        f"{answer['eas_a_day']:,.0f} EAs a day; the busiest hour is {answer['peak_over_mean']:.1f} times "
        f"the mean. Processing {answer['processing_servers']:.3f} servers, memory "
        f"{answer['memory_servers']:.3f}, by the cost model {answer['cost']}.",
        *_keys_said(answer["hot_keys"], "{eas:,} EAs"),
    ]


def _keys_said(keys: list[dict[str, Any]], form: str) -> list[str]:
    return [
        f"  {key['subject']} / {key['type']}: {form.format(**key)}, {key['share'] or 0:.1%}"
        for key in keys
    ]
