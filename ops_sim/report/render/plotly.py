"""A plot as plotly draws it: traces and layout as plain dicts. Pure; colours are names that the page resolves.

Plotly reads a little HTML in every text it is given, so texts are escaped here as in the page.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

from ops_sim.report.value import Axis, Plot, Series, Shape, Threshold, Unit

Json = dict[str, Any]
SHORT_FROM = 10_000
"""Numbers from here on are said as 10k, 3M."""


def drawn(plot: Plot) -> Json:
    layout: Json = {
        "autosize": True,
        "margin": {"l": 56, "r": 56 if plot.right else 16, "t": 12, "b": 48},
        "font": {"color": "--ink", "family": "system-ui, sans-serif", "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "x unified" if _unified(plot) else "closest",
        "hoverlabel": {
            "bgcolor": "--panel",
            "bordercolor": "--grid",
            "font": {"color": "--ink"},
            "namelength": -1,
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "--soft", "activecolor": "--ink"},
        "barmode": "group",
        "bargap": 0.5,
        "xaxis": _axis(plot.x, _values(plot, "x")) | {"showgrid": False, "ticks": "outside"},
        "yaxis": _axis(plot.y, _values(plot, "y", right=False)),
        "shapes": [_line(threshold) for threshold in plot.thresholds],
        "annotations": [_label(threshold, plot.y.log) for threshold in plot.thresholds],
    }
    if plot.right is not None:
        layout["yaxis2"] = _axis(plot.right, _values(plot, "y", right=True)) | {
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "tickmode": "auto",  # else plotly sets ticks where those of the left axis are
        }
    traces = [trace for series in plot.series for trace in _traces(plot, series)]
    return {"name": plot.name, "data": traces, "layout": layout}


def _unified(plot: Plot) -> bool:
    """One label for all series at a day; clouds of points have one each."""
    return all(series.shape not in (Shape.MARKERS, Shape.BARS) for series in plot.series)


def _values(plot: Plot, name: str, right: bool | None = None) -> list[float]:
    chosen = [s for s in plot.series if right is None or s.right is right]
    found = [v for series in chosen for v in getattr(series, name) if isinstance(v, int | float)]
    return found + ([t.value for t in plot.thresholds] if name == "y" and not right else [])


def _axis(axis: Axis, values: list[float]) -> Json:
    drawn_axis: Json = {
        "title": {"text": escape(axis.title), "standoff": 8},
        "automargin": True,
        "gridcolor": "--grid",
        "linecolor": "--grid",
        "zerolinecolor": "--grid",
        "tickcolor": "--grid",
        "tickformat": _format(axis.unit, values, exact=False),
        "hoverformat": _format(axis.unit, values, exact=True),
    }
    if axis.unit is Unit.TEXT or not values:  # dates and categories have formats of their own
        del drawn_axis["tickformat"], drawn_axis["hoverformat"]
    if axis.unit in (Unit.SECONDS, Unit.BYTES):
        drawn_axis["ticksuffix"] = "s" if axis.unit is Unit.SECONDS else "B"
    if axis.log:
        drawn_axis |= {"type": "log", "dtick": 1}
    elif axis.from_zero:
        drawn_axis["range"] = [0, top(values)]
    return drawn_axis


def top(values: list[float]) -> float:
    """The end of an axis that starts at zero, with room for what is written above the highest value."""
    return 1.1 * max(values, default=0) or 1.0


def _format(unit: Unit, values: list[float], exact: bool) -> str:
    """The format of numbers on an axis, in the notation of d3."""
    if unit is Unit.SHARE:
        return ".1%" if exact else ".0%"
    if unit in (Unit.SECONDS, Unit.BYTES):
        return ".3~s" if exact else "~s"
    if max(map(abs, values), default=0) >= SHORT_FROM:
        return ",.4~r" if exact else "~s"
    return ",.3~f" if exact else ",~g"


def _exact(plot: Plot, series: Series) -> str:
    axis = plot.right if series.right and plot.right else plot.y
    return _format(axis.unit, _values(plot, "y", right=series.right), exact=True)


def _line(threshold: Threshold) -> Json:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": threshold.value,
        "y1": threshold.value,
        "line": {"color": f"--h{threshold.hue}", "width": 1.2, "dash": "dot"},
    }


def _label(threshold: Threshold, is_log: bool) -> Json:
    return {
        "text": escape(threshold.label),
        "xref": "paper",
        "x": 0.005,
        "y": math.log10(threshold.value) if is_log else threshold.value,  # unlike a line's
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "bottom",
        "font": {"color": f"--h{threshold.hue}", "size": 11},
        "bgcolor": "--paper@0.7",
        "borderpad": 0,
    }


def _traces(plot: Plot, series: Series) -> list[Json]:
    colour = f"--h{series.hue}"
    trace: Json = {
        "type": "scatter",
        "name": escape(series.name),
        "x": [escape(x) if isinstance(x, str) else x for x in series.x],
        "y": series.y,
        "mode": "lines",
        "line": {"color": colour, "width": 2, "dash": "dash" if series.dashed else "solid"},
    }
    if series.right:
        trace["yaxis"] = "y2"
    if series.labels:
        trace |= {"text": [escape(label) for label in series.labels]}
        trace["hovertemplate"] = (
            "%{text} (%{x})"
            if _unified(plot)
            else f"%{{text}}<br>%{{x}}, %{{y:{_exact(plot, series)}}}<extra></extra>"
        )
    if series.shape is Shape.BAND:
        return _band(plot, series, trace, colour)
    return [trace | _shape(series, colour, _unified(plot))]


def _shape(series: Series, colour: str, unified: bool) -> Json:
    """What makes a line into another shape."""
    line = {"color": colour, "width": 2.2, "dash": "dash" if series.dashed else "solid"}
    edge = {"color": "--paper", "width": 1}
    match series.shape:
        case Shape.STEPS:
            return {"line": {**line, "shape": "hv"}}
        case Shape.MARKERS:
            mark = {"color": colour, "size": 9, "opacity": 0.85, "line": edge}
            return {"mode": "markers", "marker": mark, "cliponaxis": False}
        case Shape.STARS:
            mark = {"color": colour, "size": 13, "symbol": "star", "line": edge}
            mode = "markers+text" if series.labels else "markers"
            font = {"color": colour, "size": 12}
            side = "top center" if unified else "top right"  # long names near the left axis
            place = {"textposition": side, "textfont": font, "cliponaxis": False}
            return {"mode": mode, "marker": mark, **place}
        case Shape.BARS:
            return {"type": "bar", "marker": {"color": colour}}
        case _:
            return {}


def _band(plot: Plot, series: Series, trace: Json, colour: str) -> list[Json]:
    unit = _exact(plot, series)
    thin = {"line": {"width": 0, "color": colour}}
    lower = trace | thin | {"y": series.low, "showlegend": False, "hoverinfo": "skip"}
    upper = (
        trace
        | thin
        | {
            "fill": "tonexty",
            "fillcolor": f"{colour}@0.18",
            "customdata": series.low,
            "hovertemplate": f"%{{customdata:{unit}}} – %{{y:{unit}}}",
        }
    )
    return [lower, upper]
