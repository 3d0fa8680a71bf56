"""Lines with bands, and what they mean for an order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_sim.forecast.trend import Order, Trend, order, reaches
from ops_sim.operation.policy import Policy


def trend_of(points: list[tuple[float, float]]) -> Trend:
    count = len(points)
    mean_x, mean_y = (sum(values) / count for values in zip(*points, strict=True))
    return Trend(
        count,
        mean_x,
        mean_y,
        max(x for x, _ in points),
        sum((x - mean_x) ** 2 for x, _ in points),
        sum((x - mean_x) * (y - mean_y) for x, y in points),
        sum((y - mean_y) ** 2 for _, y in points),
    )


@given(st.floats(0.0, 2.0), st.floats(0.0, 0.1), st.integers(3, 40))
def test_a_line_is_found_again_and_has_no_band(level: float, slope: float, days: int) -> None:
    trend = trend_of([(float(day), level + slope * day) for day in range(days)])
    assert trend.per_day == pytest.approx(slope, abs=1e-9)
    assert trend.at(100.0) == pytest.approx(level + slope * 100, abs=1e-6)
    assert trend.half_band(100.0) == pytest.approx(0.0, abs=1e-4)


def test_a_band_is_wider_the_further_ahead_and_the_fewer_the_points() -> None:
    noisy = [(float(day), 0.3 + 0.01 * day + 0.02 * (-1) ** day) for day in range(20)]
    many, few = trend_of(noisy), trend_of(noisy[:5])
    assert many.low(30) < many.at(30) < many.high(30)
    assert many.half_band(90) > many.half_band(30)
    assert few.half_band(30) > many.half_band(30)


def test_two_points_tell_no_growth() -> None:
    trend = trend_of([(0.0, 0.1), (1.0, 0.9)])
    assert not trend.can_tell
    assert trend.at(50) == pytest.approx(0.5)


def test_the_day_a_limit_is_passed_is_the_first_and_never_is_none() -> None:
    assert reaches(lambda day: day / 10, 3.0, 0.9) == 10.0
    assert reaches(lambda _: 0.5, 0.0, 0.9) is None


def test_section_4_2_the_order_is_due_when_the_horizon_is_above_90_and_sized_for_70() -> None:
    """Twenty servers, demand from 5 servers on, one more every ten days: on day 71 it is above 18, 90 % of
    them, 60 days ahead; that is then 18.1 servers' work, and 26 bear it below 70 %."""
    policy = Policy()

    def busy(day: float) -> float:
        return 5 + day / 10

    def full(_: float) -> float:
        return 1.0

    assert order((busy, full), 0.0, 20, policy) == Order(6, 71.0)
    assert order((full, full), 0.0, 20, policy) is None
