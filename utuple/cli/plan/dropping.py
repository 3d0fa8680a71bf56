"""`utuple plan dropping`: what to drop while a reader is away (paper 004)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json
from utuple.cli.plan.options import ReportFolder, make_folder
from utuple.cli.plan.printing import write_report
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from ops_sim.dropping.study import Comparison
    from utuple.cluster.on_off_queue import OnOffQueue

_ZETAS = (0.25, 0.5, 0.75, 1.0)
_EVENTS = 200_000
_SEED = 4
_RATES = 9
_LEAST_SHARE = 0.0065
_FIGURE_4_TO = 0.875
_FIGURE_6_TO = 0.9625
"""The figures' arrival rates, as the paper has them: from 0.05 to 3.5 of the 4 per second at which nothing may be dropped any
more, and to 7.7 of the 8 that are delivered while the reader is there."""


def dropping(
    arrival: Annotated[
        float | None, typer.Option(metavar="PER_S", help="λ: matches per second.")
    ] = None,
    service: Annotated[
        float | None,
        typer.Option(metavar="PER_S", help="μ: deliveries per second while the reader is there."),
    ] = None,
    on: Annotated[
        float | None, typer.Option("--on", metavar="S", help="Mean time the reader is there.")
    ] = None,
    off: Annotated[
        float | None, typer.Option("--off", metavar="S", help="Mean time it is away.")
    ] = None,
    from_reader: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Those of the four that are not given, as measured of this reader."
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="S", help="The mean response time to meet.")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(metavar="P", help="This share within --threshold, instead of the mean."),
    ] = None,
    zeta: Annotated[
        float | None, typer.Option(metavar="Z", help="Evaluate this ζ, instead of finding one.")
    ] = None,
    input_service: Annotated[
        float | None,
        typer.Option(metavar="PER_S", help="μ_in: the rate of a queue that matches pass before."),
    ] = None,
    events: Annotated[
        int, typer.Option(min=1_000, max=10_000_000, help="Simulated per point of the report.")
    ] = _EVENTS,
    report: ReportFolder = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """How much of what arrives while a reader is away may be kept, so that deliveries wait as long as asked.

    The paper's example: --arrival 2 --service 8 --on 20 --off 20 --input-service 16 --threshold 7. The report has its
    figures 4, 6 and 7 for these values; it simulates, which takes a minute.
    """
    from utuple.cluster.on_off_queue import OnOffQueue

    make_folder("--report", report)
    said = {"--arrival": arrival, "--service": service, "--on": on, "--off": off}
    if from_reader is not None:
        said = _measured(at, from_reader) | {k: v for k, v in said.items() if v is not None}
    for option, value in said.items():
        if value is None:
            raise InvalidInput(option, value, "must be given, or --from-reader NAME")
    rates = [value or 0.0 for value in said.values()]
    asked = OnOffQueue(rates[0], rates[1], rates[2], rates[3], input_service_per_s=input_service)
    queue = replace(asked, zeta=_zeta(asked, threshold, share, zeta))
    if report is not None:
        _write(queue, threshold, events, report)
    if json:
        print_json(_told(queue, threshold))
    else:
        _show(queue, threshold)


def _measured(at: str, name: str) -> dict[str, float | None]:
    """What the servers know of a reader with respond_within: the rates of all of them, the times of the one that knows most."""
    from utuple.admin.snapshot import snapshot_of

    servers = asyncio.run(snapshot_of(addresses(at))).servers
    found = [one for server in servers for one in server.readers if one.reader == name and one.on_s]
    if not found:
        rule = "no server has measured such a reader: it needs a drop policy, and must have come and gone"
        raise InvalidInput("--from-reader", name, rule)
    best = max(found, key=lambda one: one.arrival_per_s)
    return {
        "--arrival": best.arrival_per_s or None,
        "--service": best.service_per_s or None,
        "--on": best.on_s,
        "--off": best.off_s or None,
    }


def _zeta(
    queue: OnOffQueue, threshold: float | None, share: float | None, zeta: float | None
) -> float:
    from utuple.cluster.on_off_queue import zeta_for_mean, zeta_for_share

    if (threshold is None) == (zeta is None):
        raise InvalidInput("--threshold", threshold, "give either a threshold to meet or --zeta")
    if threshold is None:
        if share is not None:
            raise InvalidInput("--share", share, "goes with --threshold")
        return replace(queue, zeta=zeta).zeta if zeta is not None else 1.0
    return (
        zeta_for_mean(queue, threshold)
        if share is None
        else zeta_for_share(queue, threshold, share)
    )


def _told(queue: OnOffQueue, threshold: float | None) -> dict[str, object]:
    """What is infinite is null: JSON has no infinity."""
    return {
        "zeta": queue.zeta,
        "stable": queue.is_stable,
        "mean_response_s": queue.mean_response_s if queue.is_stable else None,
        "success_rate": queue.success_share if queue.is_stable else None,
        "share_within_threshold": _within(queue, threshold),
        "joining_per_s": queue.joining_per_s,
    }


def _within(queue: OnOffQueue, threshold: float | None) -> float | None:
    if threshold is None or not queue.is_stable:
        return None
    return queue.share_within(threshold - queue.input_wait_s)


def _show(queue: OnOffQueue, threshold: float | None) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if not queue.is_stable:
        console.print(
            f"Not stable: with ζ = {queue.zeta:.5g}, {queue.joining_per_s:.4g} matches per second join and "
            f"{queue.service_per_s * queue.on_s / (queue.on_s + queue.off_s):.4g} can be delivered. Keep less."
        )
        return
    console.print(
        f"Keep {queue.zeta:.2%} of what arrives while the reader is away (ζ = {queue.zeta:.5f})."
    )
    console.print(f"  mean response time   {queue.mean_response_s:.3f} s")
    console.print(f"  matches delivered    {queue.success_share:.1%}")
    if (within := _within(queue, threshold)) is not None:
        console.print(f"  within {threshold:g} s          {within:.1%} of deliveries")


def _write(queue: OnOffQueue, threshold: float | None, events: int, folder: Path) -> None:
    from rich.console import Console

    from ops_sim.dropping.study import response_points
    from ops_sim.report.dropping import dropping_report

    if not queue.is_stable:
        raise InvalidInput("--zeta", queue.zeta, "is not stable: there is nothing to report")
    most = queue.service_per_s
    full = most * queue.on_s / (queue.on_s + queue.off_s)
    with Console(stderr=True).status("Simulating figure 4"):
        alone = replace(queue, input_service_per_s=None)
        rates = _rates(_FIGURE_4_TO * full)
        points = list(response_points(alone, _ZETAS, rates, events, _SEED))
    compared = []
    if threshold is not None:
        with Console(stderr=True).status("Simulating figures 6 and 7") as status:
            for rate in _rates(_FIGURE_6_TO * most):
                status.update(f"Simulating figures 6 and 7: {rate:.3g} matches per second")
                compared += _compared_at(queue, rate, threshold, events)
    write_report(dropping_report(queue, threshold, points, compared), folder)


def _rates(top: float) -> list[float]:
    step = (1 - _LEAST_SHARE) / (_RATES - 1)
    return [top * (_LEAST_SHARE + n * step) for n in range(_RATES)]


def _compared_at(queue: OnOffQueue, rate: float, threshold: float, events: int) -> list[Comparison]:
    """Nothing where the threshold cannot be met."""
    from ops_sim.dropping.study import comparisons

    try:
        return list(comparisons(queue, [rate], threshold, events, _SEED))
    except InvalidInput:
        return []
