"""The folder of a report, and two of them compared."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from ops_sim.report.compare import compare, comparison_report, only_said
from ops_sim.report.folder import read, write
from ops_sim.report.render.html import html
from ops_sim.report.render.plotly import drawn
from ops_sim.report.value import Assumption, Axis, Plot, Report, Series, Threshold
from tests.reports import NASTY, a_paper_report, a_sweep_report
from utuple.errors import InvalidInput

LOADING = {"src", "srcset", "href", "action", "data", "poster", "background", "xlink:href"}


class Reader(HTMLParser):
    """What a page would load or link to, its elements, and its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in LOADING]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def parsed(report: Report) -> tuple[Reader, str]:
    text = html(report, "2027-01-01 00:00 UTC", "utuple plan")
    reader = Reader()
    reader.feed(text)
    return reader, text


@pytest.fixture(scope="module")
def sweep() -> Report:
    return a_sweep_report()


def test_the_page_names_nothing_outside_its_folder_and_forbids_itself_every_request(
    sweep: Report,
) -> None:
    reader, text = parsed(sweep)
    assert {link for link in reader.links if not re.fullmatch(r"\w+\.(csv|parquet)", link)} == set()
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_has_a_place_for_every_plot_and_the_script_once(sweep: Report) -> None:
    reader, text = parsed(sweep)
    assert [plot.name for plot in sweep.plots] == [i for i in reader.ids if i != "plots"]
    assert text.count("* plotly.js v") == 1
    assert text.index("<strong>Buy 3 servers by") < text.index('class="plot"')


def test_names_are_shown_and_not_obeyed() -> None:
    report = replace(a_sweep_report(NASTY), title=NASTY, answer=NASTY)
    reader, text = parsed(report)
    assert "alert('x')</script>" not in text
    assert reader.tags.count("script") == 3


def test_no_text_of_a_plot_is_markup_to_plotly() -> None:
    bold = "<b>bold</b>"
    series = Series(bold, (bold,), (1.0,), labels=(bold,))
    axis = Axis(bold)
    plot = Plot("plot", bold, bold, axis, axis, (series,), thresholds=(Threshold(1.0, bold),))
    assert json.dumps(drawn(plot)).count("&lt;b&gt;bold") == 6
    assert "<b>" not in json.dumps(drawn(plot))


def test_a_folder_holds_the_page_for_browser_and_mail_and_each_table_twice(
    sweep: Report, tmp_path: Path
) -> None:
    write(sweep, tmp_path / "new" / "folder", "today", "utuple plan sweep")
    folder = tmp_path / "new" / "folder"
    assert (folder / "page.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "page.pdf").read_bytes().startswith(b"%PDF")
    assert (folder / "page.pdf").read_bytes().count(b"/Type /Page ") == 1
    for table in sweep.tables:
        assert parquet.read_table(folder / f"{table.name}.parquet").equals(table.data)
        assert csv.read_csv(folder / f"{table.name}.csv").num_rows == table.data.num_rows
    assert read(folder) == sweep
    assert read(folder / "report.json") == sweep


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no report\.json"):
        read(tmp_path)
    (tmp_path / "report.json").write_text('{"form": 1, "kind": "sweep"}')
    with pytest.raises(InvalidInput, match="is no report"):
        read(tmp_path)
    (tmp_path / "report.json").write_text('{"form": 99}')
    with pytest.raises(InvalidInput, match="another version"):
        read(tmp_path)
    with pytest.raises(InvalidInput, match="is a file"):
        write(a_sweep_report(), tmp_path / "report.json", "today", "utuple")


def test_a_report_with_a_unit_that_does_not_exist_is_refused(sweep: Report, tmp_path: Path) -> None:
    write(sweep, tmp_path, "today", "utuple plan sweep")
    path = tmp_path / "report.json"
    path.write_text(path.read_text().replace('"share"', '"furlongs"'))
    with pytest.raises(InvalidInput, match="is no report: 'furlongs'"):
        read(tmp_path)


def test_a_comparison_shows_what_changed_and_only_the_assumptions_that_differ(
    sweep: Report,
) -> None:
    other = a_sweep_report(risk=0.5)  # the bold policy is good enough
    found = compare(sweep, other)
    figures = {row.name: row for row in found.figures}
    assert (figures["recommended"].a, figures["recommended"].b) == ("paper", "bold")
    assert figures["server_days"].change == -5_000
    assert [row.name for row in found.assumptions] == ["plan: risk"]
    assert {row.name for row in found.policies} >= {"bold/server_days", "paper/server_days"}
    told = found.to_json()
    assert told["a"]["answer"] == sweep.answer
    assert json.loads(json.dumps(told))["figures"][1]["change"] == -5_000


def test_a_report_compared_with_itself_differs_in_nothing(sweep: Report) -> None:
    found = compare(sweep, sweep)
    assert found.differing == []
    assert found.assumptions == ()
    assert comparison_report(found, "a", "b").answer.startswith(
        "Both answer the same; of what both have, 0 of 8 key"
    )


def test_a_comparison_is_a_report_with_the_plots_of_both_and_shares_in_points(
    sweep: Report, tmp_path: Path
) -> None:
    report = comparison_report(compare(sweep, a_sweep_report(risk=0.5)), "old", "new")
    assert "pareto" in {plot.name for plot in report.plots}
    names = [series.name for series in report.plots[0].series]
    assert any(name.startswith("old: ") for name in names)
    assert any(name.startswith("new: ") for name in names)
    changes = report.tables[0].data["change"].to_pylist()
    assert "+38.0 points" in changes
    write(report, tmp_path, "today", "utuple plan compare")


def test_what_only_one_side_has_is_not_compared_and_is_named(sweep: Report) -> None:
    more = replace(sweep, assumptions=(*sweep.assumptions, Assumption("fans", "two")))
    found = compare(sweep, more)
    assert found.assumptions == ()
    (only,) = found.only
    assert (only.side, only.kind, only.name, only.value) == ("b", "assumptions", "fans", "two")
    assert only_said(found, "old", "new") == ["Only in new: 1 assumption (fans)."]


def test_plans_of_two_kinds_are_compared_in_what_both_have(sweep: Report) -> None:
    """As the documentation shows it: `utuple plan compare paper my_plan`."""
    found = compare(a_paper_report(), sweep)
    for row in (*found.figures, *found.assumptions, *found.policies):
        assert row.a is not None
        assert row.b is not None
    names = [row.name for row in found.figures]
    assert names == ["servers_bought", "purchases", "usage_peak", "server_days"]
    report = comparison_report(found, "paper", "my_plan")
    assert "; of what both have, 3 of 4 key figures and 0 assumptions differ." in report.answer
    assert "different kinds of plan, paper and sweep" in report.reason
    assert (
        "Only in paper: 4 key figures (servers on day 1000 · memory, mean of days" in report.reason
    )
    shown = html(report, "", "").split("<script")[0]
    assert shown.count(">What only one has<") == 1
    assert shown.count("different kinds of plan") == 1
    figures = report.tables[0].data
    assert "–" not in (*figures["a"].to_pylist(), *figures["b"].to_pylist())
    assert {one["side"] for one in found.to_json()["only"]} == {"a", "b"}
    assert any(table.name == "only" for table in report.tables)


def test_an_assumption_named_twice_is_compared_with_all_it_says(sweep: Report) -> None:
    broken = tuple(Assumption("left out", name) for name in ("x.parquet", "y.parquet"))
    one, two = (
        replace(sweep, assumptions=(*sweep.assumptions, *some)) for some in (broken[1:], broken)
    )
    (row,) = compare(one, two).assumptions
    assert (row.a, row.b) == ("y.parquet", "x.parquet; y.parquet")
