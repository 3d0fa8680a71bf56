"""No order without grounds: what a forecast may say, and that every face of it says the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_sim.forecast.order import Question, Trends, answer
from ops_sim.forecast.trend import DAYS_MIN, Trend
from ops_sim.operation.policy import Policy
from ops_sim.report.forecast import forecast_report
from ops_sim.report.render.html import html
from ops_sim.report.value import Shape
from utuple.cli.plan.forecast import _said
from utuple.errors import InvalidInput

NOW = 20_000.0
READ = {
    "files": 1,
    "broken": 0,
    "broken_files": [],
    "rows": 99,
    "repeated_rows": 0,
    "late_rows": 0,
    "first": "2024-10-03",
    "last": "2024-10-04",
    "days": 1.0,
}
HISTORY = [{"day": "2024-10-04", "processing": 0.6, "memory": 0.1}]


def steep(points: int, spread: float = 0.0) -> Trend:
    """One server more each day."""
    sxx = points**3 / 12
    return Trend(points, NOW - points / 2, 0.6, NOW, sxx, sxx, sxx + spread)


def seen(trend: Trend) -> Trends:
    return {(name, what): trend for name in ("", "s1") for what in ("processing", "memory")}


def told(trends: Trends, span_days: float) -> dict[str, Any]:
    return {"telemetry": READ, **answer(trends, span_days, Question(Policy())), "hot_keys": []}


@given(st.integers(1, DAYS_MIN - 1), st.floats(0.0, 400.0), st.floats(0.0, 5.0))
def test_without_grounds_nothing_is_ordered_or_forecast_anywhere(
    points: int, span_days: float, spread: float
) -> None:
    found = told(seen(steep(points, spread)), span_days)
    assert found["order"] is None
    assert found["reason"] == found["answer"]
    assert found["answer"].startswith("Too ")
    for demand in found["demand"].values():
        assert {demand[name] for name in ("per_day", "ahead", "ahead_low", "ahead_high")} == {None}
    for resource in ("processing", "memory"):
        load = found["servers"][0][resource]
        assert {load[name] for name in ("per_day", "full", "full_early", "full_late")} == {None}
    report = forecast_report(found, HISTORY, Policy())
    assert [figure.name for figure in report.figures] == [
        *("servers_now", "processing_now", "memory_now")
    ]
    shapes = {series.shape for series in report.plots[0].series}
    assert not shapes & {Shape.STARS, Shape.BAND}
    assert not [series.name for series in report.plots[0].series if "forecast" in series.name]
    for face in ("\n".join(_said(found)), html(report, "", "").split("<script")[0]):
        assert found["answer"].split(":")[0] in face
        assert "rder, " not in face
        assert "to be safe" not in face


def test_an_hour_of_samples_is_too_early_to_say() -> None:
    found = told(seen(steep(1)), 1 / 24)
    assert found["answer"].startswith("Too early to say: these samples are of 1.0 hours")
    found = told(seen(steep(1)), 2 / 24 / 60)
    assert found["answer"].startswith("Too early to say: these samples are of 2 minutes")


def test_a_server_that_came_an_hour_ago_has_no_date_although_the_cluster_has() -> None:
    trends = {**seen(steep(14)), ("new", "processing"): steep(1), ("new", "memory"): steep(1)}
    found = told(trends, 14.0)
    assert found["order"] is not None
    by_name = {server["name"]: server["processing"] for server in found["servers"]}
    assert by_name["s1"]["full"] is not None
    assert by_name["new"]["full"] is None
    lines = _said(found)
    assert "new: processing 60.0%; too few samples to say when it is full" in lines


def test_weeks_of_samples_say_how_many_to_order_by_when_and_to_be_safe() -> None:
    found = told(seen(steep(14, spread=30.0)), 14.0)
    likely, early = found["order"]["likely"], found["order"]["early"]
    assert found["reason"] is None
    assert found["answer"] == (
        f"Order {likely['servers']} servers by {likely['by']} (installed {likely['installed']}); "
        f"to be safe {early['servers']} by {early['by']}."
    )
    names = [figure.name for figure in forecast_report(found, HISTORY, Policy()).figures]
    assert {"order_likely", "order_early", "processing_ahead"} <= set(names)


def test_what_is_only_to_be_safe_is_not_said_as_an_order() -> None:
    flat = Trend(14, NOW - 7, 0.5, NOW, 200.0, 0.0, 2.0)
    found = told(seen(flat), 14.0)
    assert found["order"]["likely"] is None
    assert found["answer"].startswith("Nothing to order as it looks; to be safe ")


@pytest.mark.parametrize("lead_days", [-1, 61])
def test_a_lead_time_longer_than_the_horizon_is_refused(lead_days: int) -> None:
    with pytest.raises(InvalidInput, match="lead-days"):
        Question(Policy(), lead_days)
