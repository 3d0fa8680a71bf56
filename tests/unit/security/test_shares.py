"""Fair shares: what one identity may spend in any span of time, and that another does not notice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.errors import InvalidInput
from utuple.security.shares import Rate, Shares

RATE = Rate("registrations_per_s", 10.0, 20.0)


def test_a_burst_is_taken_and_then_the_rate() -> None:
    shares = Shares(RATE, 100)
    assert shares.spend("a", 20, 0.0) == 0
    assert shares.spend("a", 1, 0.0) == pytest.approx(0.1)
    assert shares.spend("a", 1, 0.1) == 0
    assert shares.spend("a", 1, 0.1) == pytest.approx(0.1)


def test_another_does_not_notice() -> None:
    shares = Shares(RATE, 100)
    shares.spend("a", 20, 0.0)
    assert shares.spend("b", 20, 0.0) == 0


def test_more_than_a_burst_at_once_is_served_when_nothing_is_owed_and_paid_for() -> None:
    shares = Shares(RATE, 100)
    assert shares.spend("a", 100, 0.0) == 0
    assert shares.spend("a", 1, 0.0) == pytest.approx(8.1)
    assert shares.spend("a", 1, 8.1) == 0


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0.1, 15)), min_size=1, max_size=40))
def test_in_no_span_is_more_spent_than_burst_and_rate_allow(
    steps: list[tuple[float, float]],
) -> None:
    shares, now_s = Shares(RATE, 100), 0.0
    spent: list[tuple[float, float]] = []
    for wait_s, amount in steps:
        now_s += wait_s
        after_s = shares.spend("a", amount, now_s)
        if after_s == 0:
            spent.append((now_s, amount))
        else:
            assert shares.spend("a", amount, now_s + after_s + 1e-9) == 0
            now_s += after_s + 1e-9
            spent.append((now_s, amount))
    for first in range(len(spent)):
        total = 0.0
        for at_s, amount in spent[first:]:
            total += amount
            assert total <= RATE.burst + (at_s - spent[first][0]) * RATE.per_s + 1e-6


def test_who_owes_nothing_is_forgotten() -> None:
    shares = Shares(RATE, 100)
    for number in range(50):
        shares.spend(f"a{number}", 1, 0.0)
    assert len(shares) == 50
    shares.spend("b", 1, 60.0)
    assert len(shares) == 1


def test_no_more_than_so_many_are_remembered() -> None:
    shares = Shares(RATE, 10)
    for number in range(50):
        shares.spend(f"a{number}", 20, 0.0)
    assert len(shares) == 10


def test_a_clock_that_steps_back_gives_nothing_and_takes_nothing() -> None:
    shares = Shares(RATE, 100)
    shares.spend("a", 20, 100.0)
    assert shares.spend("a", 1, 50.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("per_s", "burst"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0)]
)
def test_a_rate_is_above_0(per_s: float, burst: float) -> None:
    with pytest.raises(InvalidInput, match="registrations_per_s"):
        Rate("registrations_per_s", per_s, burst)
