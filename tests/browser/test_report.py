"""Reports in a real browser: every plot is drawn and answers the mouse, nothing is asked of a network, no error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ops_sim.report.render.html import html
from ops_sim.report.value import Report
from tests.browser.chromium import Page, found, opened
from tests.reports import (
    NASTY,
    a_calibration_report,
    a_forecast_report,
    a_paper_report,
    a_placement_report,
    a_sweep_report,
    an_estimate_report,
)

CHROMIUM = found()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: `make browser` installs it"),
    pytest.mark.slow,
]
WIDTHS = {
    "desktop": (1280, 900),
    "laptop": (1200, 800),
    "tablet": (800, 1100),
    "phone": (390, 844),
}

DRAWN = """[...document.querySelectorAll(".plot")].map((plot) => {
  const box = (part) => { const b = part.getBoundingClientRect(); return [b.width, b.height]; };
  return { name: plot.id, svg: box(plot.querySelector(".main-svg")),
    marks: [...plot.querySelectorAll(".scatterlayer .trace, .barlayer .trace")].map(box),
    titles: [...plot.querySelectorAll(".xtitle, .ytitle")].map((t) => t.textContent) };
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


def show(page: Page, report: Report, folder: Path, width: str = "desktop") -> None:
    path = folder / "report.html"
    path.write_text(html(report, "2027-01-01 00:00 UTC", "utuple plan"), encoding="utf-8")
    page.size(*WIDTHS[width])
    page.open(path)


def a_long_sweep_report() -> Report:
    """Policies named as those of a grid are."""
    report = a_sweep_report()
    choice = report.sections[0]
    policies = choice.tables[0]
    names = [f"ahead {n}d, window 28d, buy>0.8, size<0.7" for n in (45, 60, 90)]
    data = policies.data.set_column(0, "policy", pa.array(names))
    named = replace(choice, tables=(replace(policies, data=data),))
    return replace(report, sections=(named, *report.sections[1:]))


def complaints(page: Page) -> list[Any]:
    wrong = [e for e in page.said("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
    said = [e for e in page.said("Runtime.consoleAPICalled") if e["type"] in ("error", "warning")]
    return [*page.said("Runtime.exceptionThrown"), *wrong, *said]


def requested(page: Page) -> list[str]:
    urls = [event["request"]["url"] for event in page.said("Network.requestWillBeSent")]
    return [url for url in urls if not url.startswith(("data:", "blob:"))]


@pytest.mark.parametrize(
    ("build", "width"),
    [
        *((a_paper_report, "desktop"), (a_sweep_report, "desktop"), (a_sweep_report, "phone")),
        *((a_placement_report, "phone"), (an_estimate_report, "phone")),
        *((a_forecast_report, "phone"), (a_calibration_report, "desktop")),
    ],
)
def test_every_plot_is_drawn_with_its_titles_at_any_width_without_error_or_request(
    page: Page, tmp_path: Path, build: Callable[[], Report], width: str
) -> None:
    report = build()
    show(page, report, tmp_path, width)
    drawn = {plot["name"]: plot for plot in page.value(DRAWN)}
    assert list(drawn) == [plot.name for plot in report.plots]
    for plot in report.plots:
        seen = drawn[plot.name]
        assert min(seen["svg"]) > 200, plot.name
        shown = [series for series in plot.series if series.x]
        assert len([box for box in seen["marks"] if max(box) > 0]) >= len(shown), plot.name
        assert {plot.x.title, plot.y.title} <= set(seen["titles"])
    assert complaints(page) == []
    assert requested(page) == [(tmp_path / "report.html").as_uri()]
    wide = page.value("document.documentElement.scrollWidth")
    assert wide <= WIDTHS[width][0], "the page scrolls sideways"


WIDER = """[...document.querySelectorAll(".scroll")]
  .filter((table) => table.scrollWidth > table.clientWidth)
  .map((table) => [table.ariaLabel, table.scrollWidth, table.clientWidth])"""


@pytest.mark.parametrize("width", ["laptop", "tablet"])
@pytest.mark.parametrize(
    "build",
    [
        *(a_paper_report, a_long_sweep_report, an_estimate_report),
        *(a_forecast_report, a_calibration_report),
    ],
)
def test_every_column_of_a_table_is_seen_without_scrolling_but_on_a_phone(
    page: Page, tmp_path: Path, build: Callable[[], Report], width: str
) -> None:
    show(page, build(), tmp_path, width)
    page.value("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.value(WIDER) == []


def test_pointing_at_figure_9_says_the_day_and_every_value(page: Page, tmp_path: Path) -> None:
    show(page, a_paper_report(), tmp_path)
    place = """(() => { const plot = document.getElementById("figure-9");
      plot.scrollIntoView({block: "center"});
      const b = plot.querySelector(".nsewdrag").getBoundingClientRect();
      return [b.x + b.width / 2, b.y + b.height / 2]; })()"""
    page.point_at(*page.value(place))
    text = page.value(
        """new Promise((done) => { const look = () => {
          const label = document.querySelector("#figure-9 .hoverlayer .legend, #figure-9 .hoverlayer .hovertext");
          label ? done(label.textContent) : requestAnimationFrame(look); }; look(); })"""
    )
    for name in ("memory", "processing", "servers installed"):
        assert name in text
    assert "%" in text
    assert complaints(page) == []


def test_in_the_dark_the_plots_change_their_colours_with_the_page(
    page: Page, tmp_path: Path
) -> None:
    stroke = """document.querySelector("#figure-9 .scatterlayer .js-line").style.stroke"""
    show(page, a_paper_report(), tmp_path)
    light = page.value(stroke)
    page.scheme("dark")
    try:
        changed = f"""new Promise((done) => {{ const look = () => {stroke} !== "{light}"
          ? done({stroke}) : requestAnimationFrame(look); look(); }})"""
        assert page.value(changed) != light
    finally:
        page.scheme("light")


def test_on_a_phone_nothing_covers_the_legend_and_no_label_is_cut_off(
    page: Page, tmp_path: Path
) -> None:
    report = a_sweep_report()
    choice = report.sections[0]
    *others, star = choice.plots[0].series
    long = replace(star, labels=("ahead 60d, window 28d, buy>0.8, size<0.7",))
    plot = replace(choice.plots[0], series=(*others, long))
    named = replace(report, sections=(replace(choice, plots=(plot,)), *report.sections[1:]))
    buttons, labels = (
        f"document.querySelectorAll('{each}').length"
        for each in (".modebar-btn", "#pareto .textpoint")
    )
    show(page, named, tmp_path)
    assert page.value(buttons) > 0
    assert page.value(labels) > 0
    show(page, named, tmp_path, "phone")
    assert page.value(buttons) == 0
    assert page.value(labels) == 0


def test_nothing_offers_to_upload_the_plan(page: Page, tmp_path: Path) -> None:
    show(page, a_paper_report(), tmp_path)
    titles = page.value(
        """[...document.querySelectorAll(".modebar-btn")].map((b) => b.dataset.title)"""
    )
    assert "Download plot as a PNG" in titles
    assert [title for title in titles if title and "hare" in title] == []
    blocked = "fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'refused')"
    assert page.value(blocked) == "refused"
    assert [e for e in complaints(page) if "Content Security Policy" in str(e)]


def test_a_name_with_markup_is_shown_as_it_is(page: Page, tmp_path: Path) -> None:
    show(page, a_sweep_report(NASTY), tmp_path)
    assert complaints(page) == []
    headings = page.value("[...document.querySelectorAll('h2')].map((h) => h.textContent)")
    assert f"Forecast: {NASTY}" in headings


def test_on_paper_a_plot_keeps_to_its_box_and_afterwards_fills_the_page_again(
    page: Page, tmp_path: Path
) -> None:
    show(page, a_paper_report(), tmp_path)
    size = """(() => { const b = document.querySelector("#figure-9 .main-svg").getBoundingClientRect();
      return [b.width, b.height]; })()"""
    before = page.value(size)
    page.value("dispatchEvent(new Event('beforeprint'))")
    assert page.value(size) == [700, 330]
    page.value("dispatchEvent(new Event('afterprint'))")
    assert page.value(size) == before
