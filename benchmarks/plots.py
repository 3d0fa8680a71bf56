"""Pictures of results, as SVG files that need nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.page import number
from benchmarks.results import Result

MET, MISSED, PLAIN = "#2a7f62", "#b5442e", "#44617b"
_BAR_INCH = 0.32
_SETTINGS: Any = {
    "svg.hashsalt": "utuple",  # the same results give the same file
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(results: Sequence[Result], folder: Path) -> dict[str, list[str]]:
    """Paths as the page beside this folder names them, by benchmark; the overview is under the empty name."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[str]] = {}
    shares = _shares(results)
    if shares:
        found[""] = [_bars(folder / "targets.svg", "share of the target (log)", shares, line=1.0)]
    for result in results:
        name = result["benchmark"]
        rates = _rates(result)
        if rates:
            found[name] = [_bars(folder / f"{name}.svg", "per second (log)", rates, line=None)]
    return found


Bar = tuple[str, float, float, float, str, str]
"""Label, value, least, most, colour, what is written beside it."""


def _shares(results: Sequence[Result]) -> list[Bar]:
    """How much of its target each figure reaches: above 1 is better. Targets of 0 have no share."""
    bars = []
    for result in results:
        for figure, target in result["target"].items():
            sign, _, bound = target.partition(" ")
            wanted = float(bound)
            if figure not in result or not wanted or not all(result["spread"][figure]):
                continue
            values = [result[figure], *result["spread"][figure]]
            shares = [v / wanted if sign == ">=" else wanted / v for v in values]
            colour = MET if result["met_by"][figure] else MISSED
            label = f"{result['benchmark']} {figure}"
            beside = f"{number(result[figure])} ({target})"
            bars.append((label, shares[0], min(shares[1:]), max(shares[1:]), colour, beside))
    return bars


def _rates(result: Result) -> list[Bar]:
    bars = []
    for figure, (least, most) in result["spread"].items():
        if figure.endswith("_per_s") and result[figure] > 0:
            value = result[figure]
            colour = {True: MET, False: MISSED}.get(result["met_by"].get(figure), PLAIN)
            bars.append((figure.removesuffix("_per_s"), value, least, most, colour, number(value)))
    return bars


def _bars(path: Path, axis: str, bars: Sequence[Bar], line: float | None) -> str:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    with mpl.rc_context(_SETTINGS):
        figure, axes = pyplot.subplots(figsize=(8, 0.8 + _BAR_INCH * len(bars)))
        places = list(range(len(bars)))[::-1]
        for place, (_, value, least, most, colour, beside) in zip(places, bars, strict=True):
            errors: Any = [[max(0.0, value - least)], [max(0.0, most - value)]]
            axes.barh(place, value, color=colour, height=0.6, xerr=errors, ecolor="#222222")
            axes.annotate(
                beside, (max(most, value), place), (6, 0), textcoords="offset points", va="center"
            )
        axes.set_yticks(places, [bar[0] for bar in bars])
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(axis)
        axes.margins(x=0.25)
        if line is not None:
            axes.axvline(line, color="#222222", linewidth=0.8)
        figure.tight_layout()
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return f"{path.parent.name}/{path.name}"
