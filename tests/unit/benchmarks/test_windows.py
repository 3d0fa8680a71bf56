"""Gaps, rates and waits within a window."""

from __future__ import annotations

import pytest

from benchmarks.windows import Window, longest_gap_s, rate_per_s, share, waits_s
from utuple.errors import InvalidInput

WINDOW = Window(10.0, 20.0)


def every(step_s: float, start_s: float, end_s: float) -> list[float]:
    return [start_s + n * step_s for n in range(int((end_s - start_s) / step_s))]


def test_a_gap_belongs_to_the_window_in_which_it_ends() -> None:
    arrivals = [*every(0.5, 0.0, 9.0), *every(0.5, 12.0, 30.0)]
    assert longest_gap_s(arrivals, WINDOW) == pytest.approx(3.5)
    assert longest_gap_s(arrivals, Window(1.0, 8.5)) == pytest.approx(0.5)


def test_a_silence_that_has_not_ended_counts_as_far_as_the_window_goes() -> None:
    assert longest_gap_s([11.0, 13.0], WINDOW) == pytest.approx(7.0)
    assert longest_gap_s([1.0], WINDOW) == pytest.approx(10.0)
    assert longest_gap_s([], WINDOW) == pytest.approx(10.0)


def test_the_time_before_is_as_long_but_does_not_begin_too_early() -> None:
    assert WINDOW.before(-5.0) == Window(0.0, 10.0)
    assert WINDOW.before(7.0) == Window(7.0, 10.0)


def test_a_rate_does_not_depend_on_where_the_window_cuts_the_bursts() -> None:
    bursts = [second + part / 10_000 for second in range(30) for part in range(10)]
    for start_s in (10.0, 10.0005, 10.2, 10.9, 11.0):
        assert rate_per_s(bursts, Window(start_s, start_s + 8.5)) == pytest.approx(10.0, rel=0.01)


def test_what_flows_has_the_rate_of_its_steps() -> None:
    assert rate_per_s(every(0.004, 0.0, 30.0), WINDOW) == pytest.approx(250.0, rel=0.01)


def test_nothing_has_no_rate() -> None:
    assert rate_per_s([], WINDOW) == 0.0
    assert rate_per_s([11.0], WINDOW) == 0.0


def test_waits_count_where_they_began() -> None:
    spans = [(9.0, 15.0), (10.0, 11.0), (19.0, 25.0), (20.0, 20.5)]
    assert waits_s(spans, WINDOW) == [1.0, 6.0]


def test_a_share_of_none_is_nothing() -> None:
    assert share([], 0.5) == 0.0
    assert (share([1.0, 2.0, 3.0], 0.5), share([1.0, 2.0, 3.0], 1.0)) == (2.0, 3.0)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(InvalidInput, match="empty"):
        Window(2.0, 2.0)
