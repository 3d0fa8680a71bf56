"""A report on one page, for mail: the answer, the key figures and the first plots, as PNG and PDF."""

from __future__ import annotations

from datetime import date, timedelta
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ops_sim.report.formatting import formatted, number
from ops_sim.report.render import palette
from ops_sim.report.render.text import Ruler, label_thresholds
from ops_sim.report.value import Axis, KeyFigure, Plot, Report, Series, Shape, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_INCHES = (11.69, 8.27)
"""A4, lying."""
PNG_DPI = 120
PLOTS_MAX = 4
FIGURES_MAX = 6
LEGEND_COLUMNS = 4
TICK_SIZE = 7
TEXT_POINTS = 0.92 * PAGE_INCHES[0] * 72
"""The width between the margins."""
GAP_POINTS = 10.0
"""The distance between two key figures."""
BARS_MAX = 12
"""A plot of the picture shows so many bars, the first ones: more names cannot be read."""
BARS_ROOM = 6
"""A plot of fewer bars leaves room for so many: one alone would be a wall."""
DATES_MAX = 6
"""Written along half a page."""
INK, SOFT, GRID = palette.INK["light"], palette.SOFT["light"], palette.GRID["light"]


def pages(report: Report, made: str) -> dict[str, bytes]:
    """The content of the files, by name."""
    figure = page(report, made)
    found = {}
    for name, dpi in (("page.png", PNG_DPI), ("page.pdf", 72)):
        buffer = BytesIO()
        figure.savefig(buffer, format=name.rpartition(".")[2], dpi=dpi, facecolor="white")
        found[name] = buffer.getvalue()
    return found


def page(report: Report, made: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=PAGE_INCHES, dpi=PNG_DPI)  # text is measured as it is drawn
    ruler = Ruler(figure)
    _write(figure, 0.04, 0.955, f"uTupleSpace capacity plan · {report.title} · {made}", 8.5, SOFT)
    bottom = 0.94
    for line in ruler.wrapped(report.answer, TEXT_POINTS, 15, 3, "bold"):
        bottom -= 0.036
        _write(figure, 0.04, bottom, line, 15, INK, weight="bold")
    bottom -= 0.012
    for line in ruler.wrapped(report.reason, TEXT_POINTS, 8.8, 4):
        bottom -= 0.021
        _write(figure, 0.04, bottom, line, 8.8, SOFT)
    bottom -= 0.03
    _figures(figure, ruler, report.figures[:FIGURES_MAX], bottom)
    _plots(figure, ruler, report.plots[:PLOTS_MAX], bottom - 0.125)
    return figure


def _figures(figure: Figure, ruler: Ruler, figures: tuple[KeyFigure, ...], bottom: float) -> None:
    room = TEXT_POINTS / max(1, len(figures)) - GAP_POINTS
    for place, key in enumerate(figures):
        left = 0.04 + 0.92 * place / len(figures)
        value = formatted(key.value, key.unit)
        is_large = ruler.width(value, 15, "bold") <= room
        size, rise = (15, 0.0) if is_large else (8.5, 0.017)
        for at, line in enumerate(ruler.wrapped(value, room, size, 1 if is_large else 2, "bold")):
            _write(figure, left, bottom - 0.02 + rise * (1 - at), line, size, INK, weight="bold")
        for at, line in enumerate(ruler.wrapped(key.title, room, 8, 2)):
            _write(figure, left, bottom - 0.042 - 0.018 * at, line, 8, SOFT)


def _write(
    figure: Figure, x: float, y: float, text: str, size: float, colour: str, **more: Any
) -> None:
    figure.text(x, y, _plain(text), fontsize=size, color=colour, **more)


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # between two of them matplotlib reads mathematics


def _plots(figure: Figure, ruler: Ruler, plots: tuple[Plot, ...], top: float) -> None:
    if not plots:
        return
    columns = 1 if len(plots) == 1 else 2
    rows = -(-len(plots) // columns)
    area = {"left": 0.07, "right": 0.93, "top": top, "bottom": 0.08}
    grid = figure.add_gridspec(rows, columns, **area, hspace=0.5, wspace=0.32)
    for place, plot in enumerate(plots):
        last_alone = place == len(plots) - 1 and len(plots) % columns
        where = grid[place // columns, :] if last_alone else grid[place // columns, place % columns]
        axes = figure.add_subplot(where)
        _draw(axes, plot, ruler)


def _draw(axes: Axes, plot: Plot, ruler: Ruler) -> None:
    right = axes.twinx() if plot.right else None
    sides = [axes, *([right] if right else [])]
    dated = _dated(plot)
    for series in plot.series:
        _series(right if series.right and right else axes, series, plot, dated)
    for line in plot.thresholds:
        axes.axhline(line.value, color=palette.LIGHT[line.hue], linewidth=0.8, linestyle=":")
    lines = -(-len(plot.series) // LEGEND_COLUMNS)
    axes.set_title(_plain(plot.title), fontsize=9, color=INK, loc="left", pad=5 + 11 * lines)
    _axis(axes.xaxis, plot.x, axes.set_xscale)
    _axis(axes.yaxis, plot.y, axes.set_yscale)
    if plot.y.from_zero and not plot.y.log:
        highest = axes.get_ylim()[1] / 1.05  # matplotlib has added a margin
        axes.set_ylim(0, 1.1 * max(highest, *(line.value for line in plot.thresholds), 0))
    if right and plot.right:
        _axis(right.yaxis, plot.right, right.set_yscale)
        if plot.right.from_zero:
            right.set_ylim(bottom=0)
    if dated:
        _dates(axes, plot)
    if any(series.shape is Shape.BARS for series in plot.series):
        _names(axes, plot, ruler)
    for side in sides:
        side.tick_params(labelsize=TICK_SIZE, colors=SOFT, length=2)
        side.spines[:].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    colours = [palette.LIGHT[line.hue] for line in plot.thresholds]
    label_thresholds(sides, plot.thresholds, ruler, 6, colours)
    _legend(axes, right)


def _dates(axes: Axes, plot: Plot) -> None:
    from matplotlib.dates import AutoDateFormatter, AutoDateLocator

    days = sorted({date.fromisoformat(str(x)) for series in plot.series for x in series.x})
    if len(days) <= 2:  # nothing between them to be told
        axes.set_xticks(days, [day.isoformat() for day in days])  # type: ignore[arg-type]  # dates are a unit of the axis
        axes.set_xlim(days[0] - timedelta(days=1), days[-1] + timedelta(days=1))  # type: ignore[arg-type]
        return
    locator = AutoDateLocator(minticks=2, maxticks=DATES_MAX)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(AutoDateFormatter(locator))  # type: ignore[no-untyped-call]


def _names(axes: Axes, plot: Plot, ruler: Ruler) -> None:
    """Below the bars, each within its own room."""
    names = [str(x) for x in plot.series[0].x[:BARS_MAX]]
    spare = max(0, BARS_ROOM - len(names)) / 2
    axes.set_xlim(-0.5 - spare, len(names) - 0.5 + spare)
    wide = axes.get_window_extent().width / axes.figure.dpi * 72
    room = wide / max(len(names), BARS_ROOM) - 3
    lines = ("\n".join(ruler.wrapped(name, room, TICK_SIZE, 3)) for name in names)
    axes.set_xticks(range(len(names)), [_plain(line) for line in lines])


def _legend(axes: Axes, right: Axes | None) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if right:
        more = right.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.99),
        borderaxespad=0.0,
        fontsize=6.5,
        frameon=False,
        ncols=LEGEND_COLUMNS,
        labelcolor=SOFT,
        columnspacing=1.2,
        handlelength=1.4,
    )


def _axis(axis: Any, told: Axis, scale: Any) -> None:
    from matplotlib.ticker import FuncFormatter, PercentFormatter

    axis.set_label_text(_plain(told.title), fontsize=7.5, color=SOFT)
    if told.log:
        scale("log")
    if told.unit is Unit.SHARE:
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    elif told.unit in (Unit.SECONDS, Unit.BYTES):
        axis.set_major_formatter(FuncFormatter(lambda value, _: formatted(value, told.unit)))
    elif told.unit is Unit.NUMBER:
        axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return number(value)


def _dated(plot: Plot) -> bool:
    return any(isinstance(x, str) and _is_date(x) for series in plot.series for x in series.x)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _series(axes: Axes, series: Series, plot: Plot, dated: bool) -> None:
    colour = palette.LIGHT[series.hue]
    x: list[Any] = [date.fromisoformat(str(at)) for at in series.x] if dated else list(series.x)
    y: list[Any] = [float("nan") if value is None else value for value in series.y]
    label = _plain(series.name)
    dash = "--" if series.dashed else "-"
    match series.shape:
        case Shape.LINE:
            axes.plot(x, y, dash, color=colour, linewidth=1.3, label=label)
        case Shape.STEPS:
            axes.step(x, y, dash, where="post", color=colour, linewidth=1.3, label=label)
        case Shape.MARKERS:
            axes.plot(x, y, "o", color=colour, markersize=4, alpha=0.85, label=label, clip_on=False)
        case Shape.STARS:
            axes.plot(x, y, "*", color=colour, markersize=8, label=label, clip_on=False)
            beside = any(other.shape is Shape.MARKERS for other in plot.series)
            for at, text in enumerate(series.labels):
                axes.annotate(
                    _plain(text),
                    (x[at], y[at]),
                    textcoords="offset points",
                    xytext=(4, 5) if beside else (0, 5),
                    ha="left" if beside else "center",
                    fontsize=6.5,
                    color=colour,
                )
        case Shape.BARS:
            bars = [other for other in plot.series if other.shape is Shape.BARS]
            width = 0.8 / len(bars)
            shift = (bars.index(series) - (len(bars) - 1) / 2) * width
            places = [at + shift for at in range(len(x[:BARS_MAX]))]
            axes.bar(places, y[:BARS_MAX], width=width, color=colour, label=label)
        case Shape.BAND:
            low = [float("nan") if value is None else value for value in series.low]
            axes.fill_between(x, low, y, color=colour, alpha=0.2, linewidth=0, label=label)
