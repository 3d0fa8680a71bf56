"""The report of `utuple plan dropping`: what to drop while a reader is away, and figures 4, 6 and 7 of paper 004. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pyarrow as pa

from ops_sim.dropping.study import MECHANISMS, Comparison, Point
from ops_sim.report.formatting import number, plain
from ops_sim.report.value import (
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Section,
    Series,
    Shape,
    Table,
    Unit,
)
from utuple.cluster.on_off_queue import OnOffQueue

_TITLES = {
    "probabilistic": "probabilistic (ζ)",
    "expiry": "expiry, fixed lifetime",
    "expiry_exponential": "expiry, exponential lifetime",
    "buffer": "finite buffers",
}
_WHILE_ON = ("probabilistic", "buffer")


def dropping_report(
    queue: OnOffQueue,
    threshold_s: float | None,
    points: Sequence[Point],
    compared: Sequence[Comparison],
) -> Report:
    """`queue` with the ζ that was found or given; the points of figure 4, the comparisons of figures 6 and 7."""
    return Report(
        "dropping",
        "Dropping what arrives while a reader is away (paper 004)",
        _answer(queue, threshold_s),
        _reason(queue),
        _figures(queue),
        (
            Section("Mean response time", (_validity(points),), (_figure_4(points),)),
            *((_mechanisms(compared, threshold_s),) if compared and threshold_s else ()),
            Section("What the paper prints", _MISPRINTS),
            Section("Every figure", tables=_tables(points, compared)),
        ),
        _assumptions(queue),
    )


def _answer(queue: OnOffQueue, threshold_s: float | None) -> str:
    kept = f"Keep {queue.zeta:.1%} of what arrives while the reader is away"
    if threshold_s is None:
        return f"{kept}: deliveries then wait {_seconds(queue.mean_response_s)} on average."
    return f"{kept}: deliveries then wait {_seconds(threshold_s)} on average, as asked."


def _reason(queue: OnOffQueue) -> str:
    late = 1 - queue.share_within(queue.off_s)
    off_share = 1 - queue.on_s / (queue.on_s + queue.zeta * queue.off_s)
    return (
        f"{queue.success_share:.1%} of all matches are delivered. A mean hides its tail: the {off_share:.0%} of deliveries "
        f"that joined while the reader was away wait for its return, and {late:.0%} of all wait {_seconds(queue.off_s)} "
        f"or longer. Ask for a share (--share) where that matters."
    )


def _seconds(value: float) -> str:
    return f"{plain(value, 3)} s"


def _figures(queue: OnOffQueue) -> tuple[KeyFigure, ...]:
    return (
        KeyFigure("zeta", "ζ, the share kept while the reader is away", queue.zeta),
        KeyFigure("mean_response_s", "mean response time", queue.mean_response_s, Unit.SECONDS),
        KeyFigure("success_rate", "matches delivered", queue.success_share, Unit.SHARE),
        KeyFigure(
            "late_share",
            f"deliveries that wait {number(queue.off_s)} s or longer",
            1 - queue.share_within(queue.off_s),
            Unit.SHARE,
        ),
    )


def _validity(points: Sequence[Point]) -> str:
    measured = [p for p in points if p.simulated_s is not None and p.interval_s is not None]
    inside = sum(abs((p.simulated_s or 0.0) - p.model_s) <= (p.interval_s or 0.0) for p in measured)
    return (
        f"The closed form lies within the simulation's 95 % interval at {inside} of {len(measured)} points; "
        f"one in twenty may lie outside by chance."
    )


def _figure_4(points: Sequence[Point]) -> Plot:
    series = []
    for hue, zeta in enumerate(dict.fromkeys(point.zeta for point in points)):
        some = [p for p in points if p.zeta == zeta and p.simulated_s is not None]
        x = tuple(p.arrival_per_s for p in some)
        if some:
            series.append(Series(f"ζ = {zeta:g}", x, tuple(p.model_s for p in some), hue=hue))
            simulated = tuple(p.simulated_s for p in some)
            name = f"ζ = {zeta:g}, simulated"
            series.append(Series(name, x, simulated, Shape.MARKERS, hue=hue))
    return Plot(
        "figure-4",
        "Figure 4: mean response time by arrival rate",
        "Lines are the closed form, points the simulation. A line ends where more arrives than can be delivered.",
        Axis("matches per second"),
        Axis("seconds", Unit.SECONDS, from_zero=True),
        tuple(series),
    )


def _mechanisms(compared: Sequence[Comparison], threshold_s: float) -> Section:
    success = Plot(
        "figure-6",
        "Figure 6: share of matches delivered by arrival rate",
        f"Each mechanism is set such that deliveries wait {_seconds(threshold_s)} on average.",
        Axis("matches per second"),
        Axis("delivered", Unit.SHARE, from_zero=True),
        tuple(_line(compared, name, "success_share", hue) for hue, name in enumerate(MECHANISMS)),
    )
    lost = Plot(
        "figure-7",
        "Figure 7: dropped although the reader was there",
        "Finite buffers also drop what arrives while the reader is connected; ζ never does.",
        Axis("matches per second"),
        Axis("dropped of what arrived while ON", Unit.SHARE, from_zero=True),
        tuple(
            _line(compared, name, "lost_while_on_share", MECHANISMS.index(name))
            for name in MECHANISMS
            if name in _WHILE_ON
        ),
    )
    return Section("Mechanisms compared", _CLAIMS, (success, lost))


def _line(compared: Sequence[Comparison], mechanism: str, measure: str, hue: int) -> Series:
    some = [row for row in compared if row.mechanism == mechanism]
    x = tuple(row.arrival_per_s for row in some)
    return Series(_TITLES[mechanism], x, tuple(getattr(row, measure) for row in some), hue=hue)


_CLAIMS = (
    "The paper says that expiry delivers most: so it does here, at every rate. It says that the success of expiry falls "
    "suddenly beyond two events per second: that cannot be reproduced, it falls evenly. It says that finite buffers "
    "deliver one or two per cent more than ζ, and lose up to 6 % while the reader is connected: both are so.",
)
_MISPRINTS = (
    "The second line of eq. 27 needs p′ = λ/(μ·P_ON); as printed, without parentheses, it is λ·P_ON/μ.",
    "In eq. 21, e is a column of ones, not the eigenvalues of R.",
    "Eq. 18, and so eqs. 19 to 28, hold only for a stable queue: G has rows that sum to one only then.",
    "The condition for ζ < 1 that is printed, 1 − λ_eff/µ < 1, is always so. The queue is stable if and only if "
    "λ(T_ON + ζT_OFF) < μT_ON.",
)


def _tables(points: Sequence[Point], compared: Sequence[Comparison]) -> tuple[Table, ...]:
    rows = [asdict(point) for point in points if point.simulated_s is not None]
    found = [
        Table(
            "response",
            "Mean response time",
            pa.Table.from_pylist(rows),
            (
                Column("zeta", "ζ"),
                Column("arrival_per_s", "matches per second"),
                Column("model_s", "closed form", Unit.SECONDS),
                Column("simulated_s", "simulated", Unit.SECONDS),
                Column("interval_s", "± (95 %)", Unit.SECONDS),
            ),
        )
    ]
    if compared:
        found.append(
            Table(
                "mechanisms",
                "Mechanisms",
                pa.Table.from_pylist([asdict(row) for row in compared]),
                (
                    Column("mechanism", "mechanism", Unit.TEXT),
                    Column("arrival_per_s", "matches per second"),
                    Column("limit", "ζ, lifetime in seconds, or places"),
                    Column("mean_response_s", "mean response time", Unit.SECONDS),
                    Column("success_share", "delivered", Unit.SHARE),
                    Column("lost_while_on_share", "dropped while ON", Unit.SHARE),
                ),
            )
        )
    return tuple(found)


def _assumptions(queue: OnOffQueue) -> tuple[Assumption, ...]:
    before = queue.input_service_per_s
    return (
        Assumption("matches", f"{queue.arrival_per_s:g} per second", "a Poisson process"),
        Assumption("deliveries", f"{queue.service_per_s:g} per second", "exponential times"),
        Assumption("there", f"{queue.on_s:g} s on average", "exponential periods"),
        Assumption("away", f"{queue.off_s:g} s on average", "exponential periods"),
        Assumption("before its queue", f"{before:g} per second" if before else "no wait", "M/M/1"),
    )
