"""What reports say, of tables made by the rules."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

import pytest

from ops_sim.cost.application import APPLICATIONS
from ops_sim.cost.estimate import cautions, estimates
from ops_sim.operation import paper
from ops_sim.report.calibration import half_width
from ops_sim.report.estimate import estimate_report
from ops_sim.report.formatting import formatted, number
from ops_sim.report.operation import clusters
from ops_sim.report.paper import buying_answer
from ops_sim.report.value import Axis, Plot, Series, Shape, Unit
from tests.reports import (
    a_calibration_report,
    a_forecast_report,
    a_paper_report,
    a_placement_report,
    a_sweep_report,
    an_estimate_report,
    days_of,
)
from utuple.errors import InvalidInput


def test_the_papers_report_answers_first_and_shows_the_print_beside_ours() -> None:
    report = a_paper_report()
    assert report.answer == "Buy 3 servers by day 184, 39 in all in 6 orders until day 865."
    figures = {figure.name: figure for figure in report.figures}
    assert figures["servers_day_1000"].value == 49
    assert figures["servers_day_1000"].note == "the paper prints 50"
    beside = next(table for table in report.tables if table.name == "beside")
    assert beside.data["servers_day_1000"].to_pylist() == [49, 50, 50]
    assert "No cost model meets all three figures" in report.sections[1].text[0]


def test_figure_9_has_both_usages_the_servers_every_order_and_both_thresholds() -> None:
    figure_9 = a_paper_report().plots[0]
    names = [series.name for series in figure_9.series]
    assert names == ["memory", "processing", "servers installed", "order"]
    orders = figure_9.series[3]
    assert (orders.x[0], orders.labels) == (184, ("+3", "+4", "+5", "+7", "+9", "+11"))
    assert [threshold.value for threshold in figure_9.thresholds] == [0.9, 0.7]


def test_with_a_start_days_are_dates() -> None:
    plots = {plot.name: plot for plot in a_sweep_report().plots}
    for name in ("middle-0", "usage-0"):
        assert plots[name].x.unit is Unit.TEXT
        assert plots[name].series[0].x[0] == "2027-01-01"


def test_where_nothing_is_ordered_the_answer_says_so() -> None:
    rows = days_of(paper.AS_WRITTEN, "paper", 100)
    assert buying_answer(rows) == "Buy nothing: the 10 servers there are suffice."


def test_orders_near_the_first_of_their_cluster_share_it() -> None:
    orders = [{"day": day} for day in (1, 5, 11, 12, 40)]
    assert [[o["day"] for o in many] for many in clusters(orders, 10)] == [[1, 5, 11], [12], [40]]


def test_a_sweep_marks_the_recommended_policy_and_tells_the_front_from_the_beaten() -> None:
    report = a_sweep_report()
    pareto = report.plots[0]
    by_name = {series.name: series for series in pareto.series}
    assert by_name["beaten"].labels == ("wasteful",)
    assert by_name["Pareto front"].labels == ("bold",)
    assert by_name["recommended"].labels == ("paper",)
    assert by_name["recommended"].shape is Shape.STARS
    assert pareto.thresholds[0].value == 0.05
    policies = next(table for table in report.tables if table.name == "policies")
    assert [policies.data["policy"][place].as_py() for place in policies.marked] == ["paper"]


def test_forecasts_carry_bands_around_their_median() -> None:
    usage = next(plot for plot in a_sweep_report().plots if plot.name == "usage-0")
    wide, narrow, median = usage.series
    assert (wide.shape, narrow.shape, median.shape) == (Shape.BAND, Shape.BAND, Shape.LINE)
    for at in range(len(median.x)):
        edges = (wide.low[at], narrow.low[at], median.y[at], narrow.y[at], wide.y[at])
        assert sorted(edges, key=float) == list(edges)  # type: ignore[arg-type]  # no gaps here
    assert [line.value for line in usage.thresholds] == [1.0, 0.9, 0.7]


def test_placement_shows_our_method_first_and_the_traditional_dht_beside_it() -> None:
    report = a_placement_report()
    assert report.answer.startswith("8 servers carry 1,100,000 devices with keys hot:0.5: ")
    busiest = report.plots[0]
    assert [series.name for series in busiest.series] == ["dynamic help", "virtual servers"]
    ours, theirs = (max(map(float, series.y)) for series in busiest.series)  # type: ignore[arg-type]  # no gaps
    assert ours < 0.9 < theirs, "one key is half of the load: no virtual server can share it"
    assert report.figures[0].note.startswith("virtual servers: ")


def test_a_key_too_big_for_the_longest_line_is_said_to_be_so_and_no_server_is_to_be_bought() -> (
    None
):
    report = a_placement_report(hot=0.9, members_max=2)
    assert "one key is more than the 2 servers of a line can bear" in report.answer
    assert "More servers would not help" in report.answer


def test_figure_8_shows_both_methods_in_both_conditions_for_each_application() -> None:
    report = an_estimate_report()
    assert [plot.name for plot in report.plots] == [
        *("figure-8-A-throughput", "figure-8-A-accumulatable"),
        *("figure-8-B-throughput", "figure-8-B-accumulatable"),
    ]
    lines = {series.name: series.y for series in report.plots[0].series}
    assert lines["existing, worst"][0] == lines["existing, worst"][-1], "one server carries it all"
    assert lines["proposed, best"] == lines["existing, best"]
    assert float(lines["proposed, worst"][-1] or 0) > 10 * float(lines["existing, worst"][-1] or 0)
    assert report.answer.startswith("With 100 servers and everything on one key, ")


def test_an_estimate_beyond_what_was_measured_says_so_in_its_headline() -> None:
    cost = replace(paper.AS_WRITTEN.cost, eas_max=1_000.0)
    rows = list(estimates(APPLICATIONS.values(), cost, (1, 10)))
    report = estimate_report([asdict(row) for row in rows], cost.to_json(), cautions(rows, cost))
    assert re.match(r"Up to [\d,]+ times beyond what was measured: with 10 servers", report.answer)


def test_a_forecast_shows_bands_the_order_what_was_broken_and_when_servers_run_out() -> None:
    report = a_forecast_report()
    demand = {series.name: series for series in report.plots[0].series}
    assert (demand["processing, band"].low, demand["processing, band"].y) == (
        (1.4, 1.8),
        (1.4, 2.3),
    )
    assert demand["processing, measured"].x[0] == "2027-01-01"
    assert demand["processing, measured"].y[0] == pytest.approx(1.11)
    assert (demand["order"].x, demand["order"].labels) == (("2027-02-03",), ("+2",))
    assert report.reason.endswith("1 broken file.")
    servers = next(table for table in report.tables if table.name == "servers")
    assert servers.data["processing_full"].to_pylist() == ["2027-02-15", None]
    assert [item.value for item in report.assumptions][-1] == "x.parquet: not Parquet"


def test_figures_6_and_7_have_points_their_line_and_its_band() -> None:
    report = a_calibration_report()
    assert [plot.name for plot in report.plots] == [
        *("figure-6-ea", "figure-6-ef", "figure-6-ca"),
        *("figure-7-ea", "figure-7-ef", "figure-7-cf"),
    ]
    band, line, points = report.plots[1].series
    assert (line.x[0], line.x[-1]) == (0, 3_000)
    assert line.y[0] == pytest.approx(2.03e-3)
    assert points.y == (2e-3, 2.1e-3, 1.9e-3, 2e-3)
    assert float(band.low[0] or 0) < 2e-3 < float(band.y[0] or 0)
    assert report.answer.startswith("One server registers 20,000 EAs a second")
    assert "a server holds 10 GB: given, not measured" in [a.value for a in report.assumptions]


def test_a_band_is_as_wide_at_0_as_the_intercept_is_unsure_and_narrowest_at_the_mean() -> None:
    fit = {"intercept_95": 5.0, "slope_95": 0.3}
    assert half_width(fit, 10.0, 0.0) == pytest.approx(5.0)
    assert half_width(fit, 10.0, 10.0) == pytest.approx(4.0)
    assert half_width(fit, 10.0, 20.0) == pytest.approx(5.0)


def test_what_a_plot_cannot_show_is_refused() -> None:
    for wrong in (
        lambda: Series("short", (1, 2), (1.0,)),
        lambda: Series("no edge", (1,), (1.0,), Shape.BAND),
        lambda: Series("endless", (1,), (float("inf"),)),
        lambda: Series("no such hue", (1,), (1.0,), hue=8),
        lambda: Plot("a b", "", "", Axis(""), Axis(""), (Series("s", (1,), (1.0,)),)),
        lambda: Plot("empty", "", "", Axis(""), Axis(""), (Series("s", (), ()),)),
        lambda: Plot("p", "", "", Axis(""), Axis(""), (Series("s", (1,), (1.0,), right=True),)),
    ):
        with pytest.raises(InvalidInput):
            wrong()


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.7513, Unit.SHARE, "75.1 %"),
        (0.005668, Unit.SECONDS, "5.67 ms"),
        (1_234.5, Unit.SECONDS, "1,230 s"),
        (140e9, Unit.BYTES, "140 GB"),
        (999.6e9, Unit.BYTES, "1,000 GB"),
        (1e-5, Unit.NUMBER, "0.00001"),
        (14_290.3, Unit.NUMBER, "14,290"),
        (1234567, Unit.NUMBER, "1,234,567"),
        (None, Unit.NUMBER, "–"),
        (True, Unit.TEXT, "yes"),
        ("paper", Unit.TEXT, "paper"),
    ],
)
def test_values_are_said_in_their_unit(value: object, unit: Unit, words: str) -> None:
    assert formatted(value, unit) == words


def test_the_larger_a_number_the_fewer_decimals() -> None:
    numbers = (1.23456, 123.456, 1234.56, 0.0)
    assert [number(value) for value in numbers] == ["1.23", "123.5", "1,235", "0"]
