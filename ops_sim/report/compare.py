"""Two reports side by side: what they answer, their key figures, what they assume, their policies. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from ops_sim.report.value import (
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
from ops_sim.report.words import count, said

_POLICY_COLUMNS = ("server_days", "purchases", "scenarios_above_90", "scenarios_above_100")


@dataclass(frozen=True, slots=True)
class Difference:
    """One row: a value of each side, None where that side has none."""

    name: str
    title: str
    a: Any
    b: Any
    unit: Unit = Unit.TEXT

    @property
    def change(self) -> float | None:
        """From a to b."""
        both = [value for value in (self.a, self.b) if isinstance(value, int | float)]
        return both[1] - both[0] if len(both) == 2 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    a: Report
    b: Report
    figures: tuple[Difference, ...]
    assumptions: tuple[Difference, ...]
    """Only those that differ."""
    policies: tuple[Difference, ...]

    @property
    def differing(self) -> list[Difference]:
        return [figure for figure in self.figures if figure.a != figure.b]

    def to_json(self) -> dict[str, Any]:
        sides = {
            side: {name: getattr(report, name) for name in ("kind", "title", "answer", "reason")}
            for side, report in (("a", self.a), ("b", self.b))
        }
        rows = {
            name: [asdict(row) | {"change": row.change} for row in getattr(self, name)]
            for name in ("figures", "assumptions", "policies")
        }
        return {**sides, "same_answer": self.a.answer == self.b.answer, **rows}


def compare(a: Report, b: Report) -> Comparison:
    figures = _paired(
        {figure.name: figure for figure in a.figures}, {figure.name: figure for figure in b.figures}
    )
    assumptions = _paired(
        {
            item.name: KeyFigure(item.name, item.name, item.value, Unit.TEXT)
            for item in a.assumptions
        },
        {
            item.name: KeyFigure(item.name, item.name, item.value, Unit.TEXT)
            for item in b.assumptions
        },
    )
    different = tuple(row for row in assumptions if row.a != row.b)
    return Comparison(a, b, tuple(figures), different, tuple(_policies(a, b)))


def _paired(a: dict[str, KeyFigure], b: dict[str, KeyFigure]) -> list[Difference]:
    rows = []
    for name in dict.fromkeys((*a, *b)):
        one = a.get(name) or b[name]
        left, right = (side[name].value if name in side else None for side in (a, b))
        rows.append(Difference(name, one.title, left, right, one.unit))
    return rows


def _policies(a: Report, b: Report) -> list[Difference]:
    """Each column of each policy that both have, or one of them."""
    sides = [_policy_figures(report) for report in (a, b)]
    return _paired(*sides)


def _policy_figures(report: Report) -> dict[str, KeyFigure]:
    tables = [table for table in report.tables if table.name == "policies"]
    return {
        f"{row['policy']}/{column.name}": KeyFigure(
            *(f"{row['policy']}/{column.name}", f"{row['policy']}: {column.title}"),
            *(row[column.name], column.unit),
        )
        for table in tables
        for row in table.data.to_pylist()
        for column in table.columns
        if column.name in _POLICY_COLUMNS
    }


def comparison_report(found: Comparison, a_name: str, b_name: str) -> Report:
    a, b = found.a, found.b
    changed = found.differing
    same = "Both answer the same" if a.answer == b.answer else "The answers differ"
    text = [f"{a_name}: {a.answer}", f"{b_name}: {b.answer}"]
    if a.kind != b.kind:
        text.append(f"These are different kinds of plan: {a.kind} and {b.kind}.")
    sections = [
        Section(
            "Answers",
            tuple(text),
            tables=(_table("figures", "Key figures", found.figures, a_name, b_name),),
        )
    ]
    if found.assumptions:
        table = _table("assumptions", "Assumptions that differ", found.assumptions, a_name, b_name)
        sections.append(Section("Assumptions that differ", tables=(table,)))
    if found.policies:
        table = _table("policies", "Policies", found.policies, a_name, b_name)
        sections.append(Section("Policies", tables=(table,)))
    if plots := _overlaid(a, b, a_name, b_name):
        sections.append(Section("Plots of both", plots=tuple(plots)))
    return Report(
        "compare",
        f"{a_name} and {b_name} compared",
        f"{same}; {len(changed)} of {count(len(found.figures), 'key figure')} and "
        f"{count(len(found.assumptions), 'assumption')} differ.",
        " ".join(text),
        tuple(
            KeyFigure(row.name, row.title, f"{said(row.a, row.unit)} → {said(row.b, row.unit)}")
            for row in changed[:6]
        ),
        tuple(sections),
        (),
    )


def _table(name: str, title: str, rows: tuple[Difference, ...], a_name: str, b_name: str) -> Table:
    data = pa.table(
        {
            "name": pa.array([row.name for row in rows], pa.string()),
            "title": pa.array([row.title for row in rows], pa.string()),
            "a": pa.array([said(row.a, row.unit) for row in rows], pa.string()),
            "b": pa.array([said(row.b, row.unit) for row in rows], pa.string()),
            "change": pa.array([changed(row) for row in rows], pa.string()),
        }
    )
    columns = [
        Column("title", "", Unit.TEXT),
        Column("a", a_name),
        Column("b", b_name),
        Column("change", "change"),
    ]
    different = tuple(place for place, row in enumerate(rows) if row.a != row.b)
    return Table(name, title, data, tuple(columns), marked=different)


def changed(row: Difference) -> str:
    """With its sign; shares in points."""
    if row.change is None:
        return "" if row.a == row.b else "other"
    if not row.change:
        return ""
    if row.unit is Unit.SHARE:
        return f"{row.change * 100:+.1f} points"
    return f"{'+' if row.change > 0 else '−'}{said(abs(row.change), row.unit)}"


def _overlaid(a: Report, b: Report, a_name: str, b_name: str) -> list[Plot]:
    """Plots that both have, the lines of b dashed. Bands would hide one another."""
    others = {plot.name: plot for plot in b.plots}
    found = []
    for plot in a.plots:
        other = others.get(plot.name)
        if other is None or (plot.x.unit, plot.y.unit) != (other.x.unit, other.y.unit):
            continue
        series = [
            replace(line, name=f"{name}: {line.name}", dashed=dashed)
            for name, side, dashed in ((a_name, plot, False), (b_name, other, True))
            for line in side.series
            if line.shape is not Shape.BAND and line.x
        ]
        if series:
            found.append(replace(plot, series=tuple(_marked_apart(series))))
    return found


def _marked_apart(series: list[Series]) -> list[Series]:
    """Markers have no dashes: those of the second side get another hue."""
    return [
        replace(line, hue=(line.hue + 3) % 6)
        if line.dashed and line.shape in (Shape.MARKERS, Shape.STARS, Shape.BARS)
        else line
        for line in series
    ]
