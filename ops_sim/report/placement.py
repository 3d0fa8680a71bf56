"""The report of `utuple plan placement`: uneven keys under the planner that runs, beside a traditional DHT. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import pyarrow as pa

from ops_sim.report.formatting import before, formatted, listed
from ops_sim.report.value import (
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Row,
    Rows,
    Section,
    Series,
    Table,
    Threshold,
    Unit,
)

_HUES = (0, 1, 3, 4)
"""Hues of the methods, the proposed one first."""
_FIGURES = (
    ("processing_max", "busiest server", Unit.SHARE),
    ("imbalance_mean", "imbalance (max over mean)", Unit.NUMBER),
    ("memory_max", "fullest server", Unit.SHARE),
    ("days_over_100", "days with a server above 100 %", Unit.SHARE),
    ("moves_a_day", "moves a day", Unit.NUMBER),
    ("copied_efs_a_day", "EFs copied a day", Unit.NUMBER),
    ("migrated_eas_a_day", "EAs migrated a day", Unit.NUMBER),
    ("members", "members of all lines: table size", Unit.NUMBER),
    ("members_mean", "members per line", Unit.NUMBER),
    ("members_max", "longest line", Unit.NUMBER),
    ("worst_share", "of the way to the worst condition", Unit.SHARE),
)
_PLOTS = (
    ("busiest", "Busiest server", "processing_max", Axis("usage (%)", Unit.SHARE, from_zero=True)),
    ("imbalance", "Imbalance", "imbalance", Axis("processing, max over mean", from_zero=True)),
    ("moves", "Moves", "moves", Axis("moves a day", from_zero=True)),
    ("table", "Size of the table", "members", Axis("members of all lines", from_zero=True)),
)
_CAPTIONS = {
    "busiest": "Processing of the busiest server at the worst moment of each day. Above 100 % it cannot keep up.",
    "imbalance": "1 is even: each server as busy as the mean.",
    "moves": "Of all kinds: helps, flips, splits, releases; for a traditional DHT, virtual servers handed on.",
    "table": "What assignment managers hold, and clients ask for.",
}
_FLAT = 20.0
"""A mean so many times smaller than another looks flat beside it."""
_LIMITS = (Threshold(1.0, "full"),)


def placement_report(
    days: pa.Table,
    figures: Rows,
    proposed: str,
    members_max: int,
    assumed: Mapping[str, object],
    cautions: Sequence[str] = (),
) -> Report:
    """`days` as `schema.PLACEMENT_DAYS`, `figures` of `placement.figures`; `proposed` is our method's name, `members_max`
    the longest line its policy allows."""
    scenarios = list(dict.fromkeys(row["scenario"] for row in figures))
    rows = days.to_pylist()
    ours = [row for row in figures if row["method"] == proposed]
    worst = max(ours, key=lambda row: row["processing_max"])
    others = [
        row for row in figures if row["method"] != proposed and row["scenario"] == worst["scenario"]
    ]
    return Report(
        "placement",
        f"Where load lies when keys are uneven: {listed(scenarios)}",
        _answer(worst, members_max),
        before(cautions) + _reason(worst, others),
        tuple(
            KeyFigure(
                *(name, title, worst[name], unit),
                "; ".join(f"{row['method']}: {formatted(row[name], unit)}" for row in others),
            )
            for name, title, unit in _FIGURES[:6]
        ),
        (
            *(_section(rows, name, place, proposed) for place, name in enumerate(scenarios)),
            Section("Figures", tables=(_figures_table(figures), _days_table(days))),
        ),
        (
            Assumption("planner", "that of the live load monitor", "imported, not copied"),
            Assumption("figures", "over the second half of the days", "once it has settled"),
            Assumption("longest line allowed", f"{members_max} members", "--policy members_max=N"),
            *(Assumption(name, str(value)) for name, value in assumed.items()),
        ),
    )


def _answer(worst: Row, members_max: int) -> str:
    keys = worst["scenario"].partition(" · ")[0]
    servers = f"{worst['servers']:,.0f} servers"
    if worst["days_over_100"]:
        said = f"above 100 % on {worst['days_over_100']:.0%} of the days."
        if worst["members_max"] >= members_max:
            return (
                f"Keys {keys}: one key is more than the {members_max} servers of a line can bear, which were {said} More "
                f"servers would not help: the mean of all is {worst['processing_mean']:.0%}. Allow longer lines, or make "
                "several keys of it."
            )
        return f"{servers} are too few for keys {keys}: one was {said}"
    return (
        f"{servers} carry {worst['devices']:,.0f} devices with keys {keys}: once settled, none was busier "
        f"than {worst['processing_max']:.0%}."
    )


def _reason(worst: Row, others: Rows) -> str:
    words = [f"The busiest carries {worst['imbalance_mean']:.2f} times the mean."]
    for row in others:
        words.append(
            f"With {row['method']}, as in a traditional DHT, the busiest would reach {row['processing_max']:.0%}, "
            f"{row['imbalance_mean']:.2f} times the mean, and a server would be above 100 % on "
            f"{row['days_over_100']:.0%} of the days."
        )
    return " ".join(words)


def _section(rows: Rows, scenario: str, place: int, proposed: str) -> Section:
    chosen = sorted((r for r in rows if r["scenario"] == scenario), key=lambda row: row["day"])
    methods = sorted({row["method"] for row in chosen}, key=lambda method: method != proposed)
    plots = []
    for name, title, column, axis in _PLOTS:
        lines = tuple(
            Series.of([r for r in chosen if r["method"] == method], method, "day", column, hue=hue)
            for hue, method in zip(_HUES, methods, strict=False)
        )
        plots.append(
            Plot(
                f"{name}-{place}",
                f"{title}: {scenario}",
                _CAPTIONS[name],
                Axis("day", Unit.DAY),
                _fitting(axis, lines),
                lines,
                thresholds=_LIMITS if name == "busiest" else (),
            )
        )
    return Section(scenario, plots=tuple(plots))


def _fitting(axis: Axis, lines: Sequence[Series]) -> Axis:
    """Logarithmic where one method would press the other flat onto the ground."""
    least, most = min(map(_mean, lines)), max(map(_mean, lines))
    if 0 < least * _FLAT < most and min(y for line in lines for y in line.y if y is not None) > 0:
        return Axis(f"{axis.title}, logarithmic", axis.unit, log=True)
    return axis


def _mean(line: Series) -> float:
    return fmean(y for y in line.y if y is not None)


def _figures_table(figures: Rows) -> Table:
    data = pa.Table.from_pylist([dict(row) for row in figures])
    columns = (
        Column.text("scenario"),
        Column.text("method"),
        Column.number("servers"),
        *(Column(name, title, unit) for name, title, unit in _FIGURES),
    )
    return Table("figures", "Second half of the days", data, columns)


def _days_table(days: pa.Table) -> Table:
    columns = (
        Column.text("scenario"),
        Column.text("method"),
        Column.day("day"),
        Column.number("servers"),
        Column.share("processing_max", "busiest"),
        Column.number("imbalance"),
        Column.number("moves"),
        Column.number("copied_efs", "EFs copied"),
        Column.number("members"),
        Column.number("members_max", "longest line"),
    )
    return Table("days", "Every day", days, columns)
