"""The report of a calibration: figures 6 and 7 with the lines fitted to them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ops_sim.cost.model import CostModel
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
from ops_sim.report.words import said

Found = Mapping[str, Any]
"""As cost.json holds it: `model`, `fits` and `measured`, by the names below, and what is `assumed`."""
_STEPS = 40
_LINES = {
    "ea_s": (
        "figure-6-ea",
        "Figure 6: registering an EA",
        "EFs registered in advance",
        Unit.SECONDS,
    ),
    "ef_s": (
        "figure-6-ef",
        "Figure 6: registering an EF",
        "EAs registered in advance",
        Unit.SECONDS,
    ),
    "ca_s": (
        "figure-6-ca",
        "Figure 6: registering a CA",
        "CFs registered in advance",
        Unit.SECONDS,
    ),
    "ea_bytes": ("figure-7-ea", "Figure 7: memory of EAs", "EAs stored", Unit.BYTES),
    "ef_bytes": ("figure-7-ef", "Figure 7: memory of EFs", "EFs stored", Unit.BYTES),
    "cf_bytes": ("figure-7-cf", "Figure 7: memory of CFs", "CFs stored", Unit.BYTES),
}


def calibration_report(found: Found) -> Report:
    model, fits = found["model"], found["fits"]
    plots = {name: _plot(name, found["measured"][name], fits[name]) for name in _LINES}
    rate = 1 / model["ea_s"] if model["ea_s"] else 0.0
    return Report(
        "calibration",
        "What uTuples cost a server of this machine (figures 6 and 7)",
        f"One server registers {rate:,.0f} EAs a second and holds {said(model['ea_bytes'], Unit.BYTES)} for each.",
        f"{_caution(found['model'])}Lines are fitted to measurements of a real uTupleServer by least squares; bands are their 95 % confidence.",
        (
            KeyFigure("ea_s", "an EA with no EF stored", model["ea_s"], Unit.SECONDS),
            KeyFigure("ea_s_per_ef", "longer for each EF", model["ea_s_per_ef"], Unit.SECONDS),
            KeyFigure("ef_s", "an EF with no EA stored", model["ef_s"], Unit.SECONDS),
            KeyFigure("ef_s_per_ea", "longer for each EA", model["ef_s_per_ea"], Unit.SECONDS),
            KeyFigure("ea_bytes", "memory of an EA", model["ea_bytes"], Unit.BYTES),
            KeyFigure("ef_bytes", "memory of an EF", model["ef_bytes"], Unit.BYTES),
        ),
        (
            Section("Time (figure 6)", plots=tuple(plots[n] for n in ("ea_s", "ef_s", "ca_s"))),
            Section(
                "Memory (figure 7)",
                plots=tuple(plots[n] for n in ("ea_bytes", "ef_bytes", "cf_bytes")),
            ),
            Section("Lines", tables=(_table(fits),)),
        ),
        (
            Assumption("costs", "linear, independent, they add up", "section 4.1.2"),
            *(Assumption("calibration", what) for what in found["assumed"]),
        ),
    )


def _caution(model: Found) -> str:
    return "".join(f"{said} " for said in CostModel.from_json(model).cautions(None))


def _plot(name: str, measured: Found, fit: Found) -> Plot:
    identity, title, x_title, unit = _LINES[name]
    there, one = tuple(measured["there"]), tuple(measured["one"])
    most = max(there)
    x = tuple(most * step / _STEPS for step in range(_STEPS + 1))
    line = [fit["intercept"] + fit["slope"] * at for at in x]
    half = [half_width(fit, sum(there) / len(there), at) for at in x]
    return Plot(
        identity,
        title,
        "Points are measurements; the line is fitted to them, with its band of 95 % confidence.",
        Axis(x_title),
        Axis("time" if unit is Unit.SECONDS else "memory", unit, from_zero=True),
        (
            Series(
                *("95 %", x, tuple(y + h for y, h in zip(line, half, strict=True)), Shape.BAND),
                low=tuple(y - h for y, h in zip(line, half, strict=True)),
            ),
            Series("fitted", x, tuple(line)),
            Series("measured", there, one, Shape.MARKERS, hue=1),
        ),
    )


def half_width(fit: Found, mean: float, x: float) -> float:
    """Of the band at x: the line is surest at the mean of the points, where slope and height do not mix."""
    at_mean = max(0.0, fit["intercept_95"] ** 2 - (fit["slope_95"] * mean) ** 2)
    return math.sqrt(at_mean + (fit["slope_95"] * (x - mean)) ** 2)


def _table(fits: Mapping[str, Found]) -> Table:
    names = ("intercept", "intercept_95", "slope", "slope_95", "points")
    data = {"line": [_LINES[name][1] for name in _LINES]}
    columns = {column: [fits[name][column] for name in _LINES] for column in names}
    units = {"line": Unit.TEXT}
    titles = dict(zip(names, ("at 0", "± 95 %", "for each more", "± 95 %", "points"), strict=True))
    return Table(
        *("lines", "Lines, in seconds and bytes", pa.table(data | columns)),
        columns=tuple(
            Column(name, titles.get(name, name), units.get(name, Unit.NUMBER))
            for name in ("line", *names)
        ),
    )
