"""`utuple plan forecast`: when servers run out, and how many to order by when, from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.plan.options import MASTER_DEFAULT, Cost, Master, ReportFolder, make_folder
from utuple.cli.plan.printing import write_report
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from ops_sim.operation.policy import Policy

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
        float | None, typer.Option(help="Scale a recording to so many devices a day.")
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
    from ops_sim.cost.catalogue import cost_named
    from ops_sim.forecast import recording as recordings
    from ops_sim.forecast import samples
    from ops_sim.forecast.order import Question
    from ops_sim.operation.policy import Policy
    from ops_sim.spark.session import on_spark

    if (telemetry is None) == (recording is None):
        given = "both" if telemetry is not None else "neither"
        raise InvalidInput("--telemetry", given, "give either --telemetry DIR or --recording FILE")
    if devices is not None and not devices > 0:
        raise InvalidInput("--devices", devices, "must be above 0")
    if devices is not None and telemetry is not None:
        raise InvalidInput("--devices", devices, "scales a recording; samples are of real devices")
    make_folder("--tables", tables)
    make_folder("--report", report)
    model = cost_named(cost)
    question = Question(Policy(horizon_days=horizon_days), lead_days)
    files = samples.files_in(str(telemetry)) if telemetry is not None else []
    if recording is not None:
        recordings.check(str(recording))

    def work(spark: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if recording is not None:
            path = str(recording)
            answer, made = recordings.load_of(spark, path, model, devices, question.policy)
        else:
            answer, made = samples.forecast(spark, files, question)
        if tables is not None:
            for name, table in made.items():
                table.write.mode("overwrite").parquet(str(tables / name))
        return answer, samples.daily_cluster(made["daily_servers"]) if report and telemetry else []

    answer, history = on_spark(master, work)
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

    if "recording" in answer:
        write_report(recording_report(answer), folder)
    else:
        write_report(forecast_report(answer, history, policy), folder)


def _said(answer: dict[str, Any]) -> list[str]:
    if "recording" in answer:
        return _said_of_recording(answer)
    read = answer["telemetry"]
    lines = [answer["answer"]]
    lines.append(
        f"From {read['rows']:,} rows of {read['files']:,} files, {read['first']} to {read['last']}; "
        f"{read['repeated_rows']:,} repeated, {read['late_rows']:,} late, {read['broken']} files broken."
    )
    lines += [f"  broken: {broken}" for broken in read["broken_files"]]
    for resource, demand in answer["demand"].items():
        now = f"{resource}: {demand['servers']:.2f} of {answer['servers_now']} servers now"
        if demand["can_tell"]:
            band = f"({demand['ahead_low']:.2f} to {demand['ahead_high']:.2f})"
            now += f", in {answer['horizon_days']} days {demand['ahead']:.2f} {band}"
        lines.append(now)
    for server in answer["servers"]:
        for resource in ("processing", "memory"):
            lines.append(f"{server['name']}: {resource} {_full_said(server[resource])}")
    return lines + _keys_said(answer["hot_keys"], "{arrival_per_s:,.1f}/s")


def _full_said(load: dict[str, Any]) -> str:
    if not load["can_tell"]:
        return f"{load['load']:.1%}; too few samples to say when it is full"
    early, late = load["full_early"] or "never", load["full_late"] or "never"
    full = load["full"] or "not within ten years"
    return f"{load['load']:.1%}, full {full} (earliest {early}, latest {late})"


def _said_of_recording(answer: dict[str, Any]) -> list[str]:
    from ops_sim.forecast.sizing import scaling_said
    from ops_sim.report.formatting import count, number

    read = answer["recording"]
    lines = [
        answer["answer"],
        *answer["cautions"],
        f"From {read['rows']:,} rows on {count(read['days'], 'day')}, {read['first']} to {read['last']}; "
        f"{read['bad_rows']:,} rows without a time or a name.",
        scaling_said(answer),
        f"{number(answer['eas_per_s_mean'])} EAs a second; the busiest hour is {answer['peak_over_mean']:.1f} times the mean.",
    ]
    if answer["servers_needed"] is not None:
        lines.append(
            f"{answer['eas_a_day']:,.0f} EAs a day. Processing {answer['processing_servers']:.3f} servers, memory "
            f"{answer['memory_servers']:.3f}, by the cost model {answer['cost']}."
        )
    return lines + _keys_said(answer["hot_keys"], "{eas:,} EAs")


def _keys_said(keys: list[dict[str, Any]], form: str) -> list[str]:
    return [
        f"  {key['subject']} / {key['type']}: {form.format(**key)}, {key['share'] or 0:.1%}"
        for key in keys
    ]
