"""The report of a calibration: figures 6 and 7 with the lines fitted to them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa

from ops_sim.cost.model import CostModel
from ops_sim.report.formatting import before, formatted
from ops_sim.report.value import (
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Row,
    Section,
    Series,
    Shape,
    Table,
    Unit,
)

_STEPS = 40
_TIMES = {
    "ea_s": ("figure-6-ea", "Figure 6: registering an EA", "EFs registered in advance"),
    "ef_s": ("figure-6-ef", "Figure 6: registering an EF", "EAs registered in advance"),
    "ca_s": ("figure-6-ca", "Figure 6: registering a CA", "CFs registered in advance"),
}
_SIZES = {
    "ea_bytes": ("figure-7-ea", "Figure 7: memory of EAs", "EAs stored"),
    "ef_bytes": ("figure-7-ef", "Figure 7: memory of EFs", "EFs stored"),
    "cf_bytes": ("figure-7-cf", "Figure 7: memory of CFs", "CFs stored"),
}
_LINES = _TIMES | _SIZES
_TIME = Axis("time", Unit.SECONDS, from_zero=True)
_MEMORY = Axis("memory", Unit.BYTES, from_zero=True)
_FIGURES = (
    ("ea_s", "an EA with no EF stored", Unit.SECONDS),
    ("ea_s_per_ef", "longer for each EF", Unit.SECONDS),
    ("ef_s", "an EF with no EA stored", Unit.SECONDS),
    ("ef_s_per_ea", "longer for each EA", Unit.SECONDS),
    ("ea_bytes", "memory of an EA", Unit.BYTES),
    ("ef_bytes", "memory of an EF", Unit.BYTES),
)


def calibration_report(found: Row) -> Report:
    """`found` is what cost.json holds: `model`, `fits` and `measured` by the names above, and what is `assumed`."""
    model, fits, measured = found["model"], found["fits"], found["measured"]
    rate = 1 / model["ea_s"] if model["ea_s"] else 0.0
    caution = before(CostModel(**model).cautions(None))
    times = tuple(_plot(name, measured[name], fits[name], _TIME) for name in _TIMES)
    sizes = tuple(_plot(name, measured[name], fits[name], _MEMORY) for name in _SIZES)
    return Report(
        "calibration",
        "What uTuples cost a server of this machine (figures 6 and 7)",
        f"One server registers {rate:,.0f} EAs a second and holds {formatted(model['ea_bytes'], Unit.BYTES)} for each.",
        f"{caution}Lines are fitted to measurements of a real uTupleServer by least squares; bands are their 95 % confidence.",
        tuple(KeyFigure(name, title, model[name], unit) for name, title, unit in _FIGURES),
        (
            Section("Time (figure 6)", plots=times),
            Section("Memory (figure 7)", plots=sizes),
            Section("Lines", tables=(_table(fits),)),
        ),
        (
            Assumption("costs", "linear, independent, they add up", "section 4.1.2"),
            *(Assumption("calibration", what) for what in found["assumed"]),
        ),
    )


def _plot(name: str, measured: Row, fit: Row, axis: Axis) -> Plot:
    identity, title, x_title = _LINES[name]
    there, one = tuple(measured["there"]), tuple(measured["one"])
    x = tuple(max(there) * step / _STEPS for step in range(_STEPS + 1))
    line = [fit["intercept"] + fit["slope"] * at for at in x]
    half = [half_width(fit, sum(there) / len(there), at) for at in x]
    low, high = (tuple(y + sign * h for y, h in zip(line, half, strict=True)) for sign in (-1, 1))
    return Plot(
        identity,
        title,
        "Points are measurements; the line is fitted to them, with its band of 95 % confidence.",
        Axis(x_title),
        axis,
        (
            Series("95 %", x, high, Shape.BAND, low),
            Series("fitted", x, tuple(line)),
            Series("measured", there, one, Shape.MARKERS, hue=1),
        ),
    )


def half_width(fit: Row, mean: float, x: float) -> float:
    """Half the width of the band at x. It is narrowest at the mean of the points: there only the height is unsure, and further
    away the slope counts as well."""
    at_mean = max(0.0, fit["intercept_95"] ** 2 - (fit["slope_95"] * mean) ** 2)
    return math.sqrt(at_mean + (fit["slope_95"] * (x - mean)) ** 2)


def _table(fits: Mapping[str, Row]) -> Table:
    columns = (
        Column.number("intercept", "at 0"),
        Column.number("intercept_95", "± 95 %"),
        Column.number("slope", "for each more"),
        Column.number("slope_95", "± 95 %"),
        Column.number("points"),
    )
    data = {"line": [title for _, title, _ in _LINES.values()]}
    data |= {column.name: [fits[name][column.name] for name in _LINES] for column in columns}
    shown = (Column.text("line"), *columns)
    return Table("lines", "Lines, in seconds and bytes", pa.table(data), shown)
