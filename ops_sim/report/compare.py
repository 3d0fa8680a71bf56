"""Two reports side by side: what they answer, their key figures, what they assume, their policies. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from ops_sim.report.formatting import count, formatted
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

KINDS = {
    "figures": "Key figures",
    "assumptions": "Assumptions that differ",
    "policies": "Policies",
}
"""What is compared, with its title."""
_NAMED = {"figures": "key figure", "assumptions": "assumption", "policies": "figure of policies"}
_LISTED = 6
"""A sentence names up to so many things that only one side has; more are counted."""
_POLICY_COLUMNS = ("server_days", "purchases", "scenarios_above_90", "scenarios_above_100")


@dataclass(frozen=True, slots=True)
class Difference:
    """One row: a value of each side."""

    name: str
    title: str
    a: Any
    b: Any
    unit: Unit = Unit.TEXT

    @property
    def change(self) -> float | None:
        """How much b is more than a; None if they are not numbers."""
        both = [value for value in (self.a, self.b) if isinstance(value, int | float)]
        return both[1] - both[0] if len(both) == 2 else None


@dataclass(frozen=True, slots=True)
class Only:
    """What one side has and the other does not: there is nothing to compare."""

    side: str
    """a or b."""
    kind: str
    """figures, assumptions or policies."""
    name: str
    title: str
    value: Any
    unit: Unit = Unit.TEXT


@dataclass(frozen=True, slots=True)
class Comparison:
    a: Report
    b: Report
    figures: tuple[Difference, ...]
    """Figures that both have; the next two are of what both have, too."""
    assumptions: tuple[Difference, ...]
    """Only those that differ."""
    policies: tuple[Difference, ...]
    only: tuple[Only, ...]

    @property
    def kinds(self) -> list[tuple[str, str, tuple[Difference, ...]]]:
        """Name, title and rows of each."""
        return [(kind, title, getattr(self, kind)) for kind, title in KINDS.items()]

    @property
    def differing(self) -> list[Difference]:
        return [figure for figure in self.figures if figure.a != figure.b]

    def to_json(self) -> dict[str, Any]:
        sides = {
            side: {name: getattr(report, name) for name in ("kind", "title", "answer", "reason")}
            for side, report in (("a", self.a), ("b", self.b))
        }
        rows = {
            kind: [asdict(row) | {"change": row.change} for row in rows]
            for kind, _, rows in self.kinds
        }
        only = [asdict(one) for one in self.only]
        return {**sides, "same_answer": self.a.answer == self.b.answer, **rows, "only": only}


def compare(a: Report, b: Report) -> Comparison:
    ours, theirs = _figures_of(a), _figures_of(b)
    both = {kind: _paired(ours[kind], theirs[kind]) for kind in KINDS}
    only = tuple(
        Only(name, kind, one.name, one.title, one.value, one.unit)
        for name, side, other in (("a", ours, theirs), ("b", theirs, ours))
        for kind in KINDS
        for key, one in side[kind].items()
        if key not in other[kind]
    )
    different = tuple(row for row in both["assumptions"] if row.a != row.b)
    return Comparison(a, b, tuple(both["figures"]), different, tuple(both["policies"]), only)


def _figures_of(report: Report) -> dict[str, dict[str, KeyFigure]]:
    """What a report says, by kind and name. An assumption that is there twice counts once, with all it says."""
    assumed: dict[str, list[str]] = {}
    for item in report.assumptions:
        assumed.setdefault(item.name, []).append(item.value)
    return {
        "figures": {figure.name: figure for figure in report.figures},
        "assumptions": {
            name: KeyFigure(name, name, "; ".join(values), Unit.TEXT)
            for name, values in assumed.items()
        },
        "policies": _policy_figures(report),
    }


def _paired(a: dict[str, KeyFigure], b: dict[str, KeyFigure]) -> list[Difference]:
    """What both have."""
    return [
        Difference(name, one.title, one.value, b[name].value, one.unit)
        for name, one in a.items()
        if name in b
    ]


def _policy_figures(report: Report) -> dict[str, KeyFigure]:
    tables = [table for table in report.tables if table.name == "policies"]
    return {
        (name := f"{row['policy']}/{column.name}"): KeyFigure(
            name, f"{row['policy']}: {column.title}", row[column.name], column.unit
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
    text = [f"{a_name}: {a.answer}", f"{b_name}: {b.answer}", *only_said(found, a_name, b_name)]
    sections = [
        Section(title, tables=(_table(kind, title, rows, a_name, b_name),))
        for kind, title, rows in found.kinds
        if rows
    ]
    if found.only:
        sections.append(Section("What only one has", tables=(_only_table(found, a_name, b_name),)))
    if plots := _overlaid(a, b, a_name, b_name):
        sections.append(Section("Plots of both", plots=tuple(plots)))
    return Report(
        "compare",
        f"{a_name} and {b_name} compared",
        f"{same}; of what both have, {len(changed)} of {count(len(found.figures), 'key figure')} and "
        f"{count(len(found.assumptions), 'assumption')} differ.",
        " ".join(text),
        tuple(
            KeyFigure(
                row.name, row.title, f"{formatted(row.a, row.unit)} → {formatted(row.b, row.unit)}"
            )
            for row in changed[:6]
        ),
        tuple(sections),
        (),
    )


def only_said(found: Comparison, a_name: str, b_name: str) -> list[str]:
    """What cannot be compared, and why."""
    lines = []
    if found.a.kind != found.b.kind:
        kinds = f"{found.a.kind} and {found.b.kind}"
        lines.append(f"These are different kinds of plan, {kinds}: what both have is compared.")
    for side, name in (("a", a_name), ("b", b_name)):
        parts = []
        for kind in KINDS:
            titles = [one.title for one in found.only if (one.side, one.kind) == (side, kind)]
            if titles:
                listing = f" ({' · '.join(titles)})" if len(titles) <= _LISTED else ""
                parts.append(count(len(titles), *_plural(_NAMED[kind])) + listing)
        if parts:
            lines.append(f"Only in {name}: {'; '.join(parts)}.")
    return lines


def _plural(one: str) -> tuple[str, str]:
    return one, one.replace("figure of", "figures of") if " of " in one else f"{one}s"


def _only_table(found: Comparison, a_name: str, b_name: str) -> Table:
    names = {"a": a_name, "b": b_name}
    rows = [
        {
            "side": names[one.side],
            "kind": _NAMED[one.kind],
            "title": one.title,
            "value": formatted(one.value, one.unit),
        }
        for one in found.only
    ]
    headings = {"side": "only in", "kind": "", "title": "", "value": ""}
    columns = tuple(Column(name, title, Unit.TEXT) for name, title in headings.items())
    return Table("only", "What only one has", pa.Table.from_pylist(rows), columns)


def _table(name: str, title: str, rows: Sequence[Difference], a_name: str, b_name: str) -> Table:
    names = ("name", "title", "a", "b", "change")
    cells = [dict(zip(names, (row.name, *row_said(row)), strict=True)) for row in rows]
    columns = (
        Column("title", "", Unit.TEXT),
        Column("a", a_name),
        Column("b", b_name),
        Column("change", "change"),
    )
    different = tuple(place for place, row in enumerate(rows) if row.a != row.b)
    return Table(name, title, pa.Table.from_pylist(cells), columns, marked=different)


def row_said(row: Difference) -> tuple[str, str, str, str]:
    """Title, both values, and the change."""
    return row.title, formatted(row.a, row.unit), formatted(row.b, row.unit), _change_said(row)


def _change_said(row: Difference) -> str:
    """The change with its sign; that of a share in percentage points."""
    if row.change is None:
        return "" if row.a == row.b else "other"
    if not row.change:
        return ""
    if row.unit is Unit.SHARE:
        return f"{row.change * 100:+.1f} points".replace("-", "−")
    return f"{'+' if row.change > 0 else '−'}{formatted(abs(row.change), row.unit)}"


def _overlaid(a: Report, b: Report, a_name: str, b_name: str) -> list[Plot]:
    """Plots that both have. Bands are left out: they would hide one another."""
    others = {plot.name: plot for plot in b.plots}
    found = []
    for plot in a.plots:
        other = others.get(plot.name)
        if other is None or (plot.x.unit, plot.y.unit) != (other.x.unit, other.y.unit):
            continue
        ours = (replace(line, name=f"{a_name}: {line.name}", dashed=False) for line in _shown(plot))
        theirs = (_second(line, b_name) for line in _shown(other))
        if series := (*ours, *theirs):
            found.append(replace(plot, series=series))
    return found


def _shown(plot: Plot) -> list[Series]:
    return [line for line in plot.series if line.shape is not Shape.BAND and line.x]


def _second(line: Series, name: str) -> Series:
    """A line of the second report is dashed. Markers and bars have no dashes: they get another hue."""
    is_line = line.shape in (Shape.LINE, Shape.STEPS)
    hue = line.hue if is_line else (line.hue + 3) % 6
    return replace(line, name=f"{name}: {line.name}", dashed=True, hue=hue)
