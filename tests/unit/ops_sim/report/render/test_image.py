"""The page for mail: nothing is written over something else, and nothing leaves the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ops_sim.report.compare import compare, comparison_report
from ops_sim.report.render.image import page
from ops_sim.report.render.text import Ruler
from ops_sim.report.value import Report, Series, Shape, Threshold
from tests.reports import (
    a_calibration_report,
    a_forecast_report,
    a_paper_report,
    a_placement_report,
    a_sweep_report,
    an_estimate_report,
)

LONG = "a policy with quite a long name, ahead 60d, window 28d, buy>0.8, size<0.7, growth"


def a_crowded_forecast() -> Report:
    """Forty servers and ten keys with long names, two months of days, and thresholds that lie on one another."""
    report = a_forecast_report()
    demand, servers, keys = report.plots
    many = tuple(f"server-{n:02d}.example" for n in range(40))
    crowded = replace(
        servers, series=tuple(replace(s, x=many, y=(0.5,) * 40) for s in servers.series)
    )
    names = tuple(f"environment/temperature-{n} / degrees-celsius" for n in range(10))
    high = Series("a day in spring", ("2027-03-01",), (90.0,), Shape.STARS, labels=("+44",))
    plots = (
        replace(demand, series=(*demand.series, high)),
        crowded,
        replace(keys, series=(replace(keys.series[0], x=names, y=(3.0,) * 10),)),
    )
    assert [line.value for line in demand.thresholds] == [2, 1.8, 1.4]
    sections = (replace(report.sections[0], plots=plots),)
    return replace(report, sections=sections, reason=f"{LONG}. " * 12, answer=f"{LONG}. " * 5)


def a_wordy_sweep() -> Report:
    report = a_sweep_report()
    figures = (replace(report.figures[0], value=LONG, title=LONG), *report.figures[1:])
    return replace(report, figures=figures)


def a_comparison() -> Report:
    return comparison_report(compare(a_sweep_report(), a_sweep_report(risk=0.5)), "old", "new")


def texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """What is seen of it, where."""
    figure.draw_without_rendering()
    hidden = {text for axes in figure.axes for text in ticks_out_of_sight(axes)}
    found = [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if text.get_visible() and text not in hidden
    ]
    return [(text, box) for text, box in found if text.strip() and box.width > 0]


def ticks_out_of_sight(axes: Axes) -> Iterator[Text]:
    """Matplotlib keeps ticks beyond the limits of an axis, and does not draw them."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


def is_over(a: Bbox, b: Bbox) -> bool:
    """By more than the air around letters."""
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    high = min(a.y1, b.y1) - max(a.y0, b.y0)
    return bool(wide > 1 and high > 4)


def is_near(a: Bbox, b: Bbox) -> bool:
    """Beside one another, with less than the width of a digit between."""
    return is_over(Bbox.from_extents(a.x0 - 3, a.y0, a.x1 + 3, a.y1), b)


@pytest.mark.parametrize(
    "build",
    [
        *(a_forecast_report, a_crowded_forecast, a_sweep_report, a_wordy_sweep, a_paper_report),
        *(a_placement_report, an_estimate_report, a_calibration_report, a_comparison),
    ],
)
def test_no_text_lies_on_another_or_leaves_the_page(build: Callable[[], Report]) -> None:
    figure = page(build(), "2027-01-01 00:00 UTC")
    found = texts(figure)
    assert len(found) > 20
    over = [(a, b) for (a, one), (b, other) in combinations(found, 2) if is_over(one, other)]
    assert over == []
    outside = [text for text, box in found if box.x1 > figure.bbox.x1 or box.x0 < 0 or box.y0 < 0]
    assert outside == []


@pytest.mark.parametrize("days", [1, 2, 3, 7, 10, 16, 45, 75, 120, 300, 900])
def test_dates_of_any_stretch_are_told_apart(days: int) -> None:
    figure = page(a_forecast_report(days), "today")
    dates = [(text, box) for text, box in texts(figure) if text[:2] == "20" and box.y0 < 500]
    assert dates
    over = [(a, b) for (a, one), (b, other) in combinations(dates, 2) if is_near(one, other)]
    assert over == []
    labels = [box for text, box in texts(figure) if "%" in text or text.startswith("+")]
    assert not any(is_over(a, b) for a, b in combinations(labels, 2))


@pytest.mark.parametrize("servers", [1, 3, 5, 20, 300])
def test_labels_of_thresholds_are_told_apart_however_small_demand_is(servers: int) -> None:
    found = texts(page(a_forecast_report(servers=servers), "today"))
    over = [(a, b) for (a, one), (b, other) in combinations(found, 2) if is_over(one, other)]
    assert over == []


def test_text_is_broken_to_its_width_and_what_is_cut_is_seen_to_be() -> None:
    ruler = Ruler(Figure())
    lines = ruler.wrapped("one two three four five six seven eight", 60.0, 10, 2)
    assert len(lines) == 2
    assert lines[-1].endswith("…")
    assert all(ruler.width(line, 10) <= 60.0 for line in lines)
    assert ruler.wrapped("short", 60.0, 10, 2) == ["short"]
    first, second = ruler.wrapped("server-12.example.org/north", 60.0, 10, 2)
    assert "server-12.example.org/north".startswith(first)
    assert second.endswith("…")
    assert ruler.wrapped("", 60.0, 10, 2) == []


def test_thresholds_near_one_another_are_labelled_side_by_side() -> None:
    report = a_forecast_report()
    near = tuple(Threshold(100 + n, f"limit {n}") for n in range(3))
    plot = replace(report.plots[0], thresholds=near)
    figure = page(replace(report, sections=(replace(report.sections[0], plots=(plot,)),)), "today")
    boxes = [box for text, box in texts(figure) if text.startswith("limit")]
    assert len(boxes) == 3
    assert not any(is_over(a, b) for a, b in combinations(boxes, 2))
