"""The window: averages by elapsed time, alarms with two thresholds, silence, trend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ServerLoad, Trend
from load_monitor.window import LOAD_MAX, Alarm, Sample, Window, smoothed
from utuple.errors import InvalidInput
from utuple.model.section import Section

POLICY = Policy()
HALF = Section(0, 100)


def sample(busy: float = 0.0, wait_s: float = 0.0, size: int = 0, rate: float = 0.0) -> Sample:
    return Sample("A", busy, wait_s, size, 1_000, {HALF: rate})


def load_after(*samples: tuple[float, Sample]) -> ServerLoad:
    window = Window(POLICY)
    for now_s, said in samples:
        window.heard(said, now_s)
    (load,) = window.loads(samples[-1][0])
    return load


loads = st.floats(0, 4)
spans_s = st.floats(0, 1e6)


@given(loads, loads, spans_s)
def test_an_average_lies_between_what_it_was_and_what_is_new(
    old: float, new: float, elapsed_s: float
) -> None:
    assert min(old, new) - 1e-9 <= smoothed(old, new, elapsed_s, 10.0) <= max(old, new) + 1e-9


@given(loads, loads, st.floats(0, 100), st.floats(0, 100))
def test_two_samples_of_the_same_load_mean_what_one_after_both_spans_means(
    old: float, new: float, first_s: float, second_s: float
) -> None:
    twice = smoothed(smoothed(old, new, first_s, 10.0), new, second_s, 10.0)
    assert twice == pytest.approx(smoothed(old, new, first_s + second_s, 10.0), abs=1e-9)


def test_the_first_sample_counts_whole_even_if_the_server_was_long_expected() -> None:
    window = Window(POLICY)
    window.expect("A", 0.0)
    window.heard(sample(0.5, size=400), 1.0)
    (load,) = window.loads(1.0)
    assert (load.processing, load.memory, load.capacity_bytes) == (0.5, 0.4, 1_000)


def test_a_queue_counts_beyond_the_busy_share_but_not_without_limit() -> None:
    assert load_after((0.0, sample(1.0, wait_s=2.5))).processing == 2.5
    assert load_after((0.0, sample(1.0, wait_s=0.2))).processing == 1.0
    assert load_after((0.0, sample(1.0, wait_s=900.0))).processing == LOAD_MAX


def test_what_every_member_is_asked_keeps_its_share_of_the_load_also_of_a_queue() -> None:
    said = replace(sample(0.8), searches=0.6)
    assert load_after((0.0, said)).searches == pytest.approx(0.6)
    behind = replace(sample(1.0, wait_s=2.0), searches=0.25)
    load = load_after((0.0, behind))
    assert load.searches == pytest.approx(0.5) and load.spread == pytest.approx(1.5)
    assert load_after((0.0, said), (50.0, sample(0.8))).searches < 0.01


def test_an_alarm_is_raised_only_by_load_that_stays() -> None:
    short = [(float(at), sample(0.95)) for at in range(10)]
    assert not load_after(*short).processing_high
    assert load_after(*short, (10.0, sample(0.95))).processing_high
    dipped = [*short, (12.0, sample(0.0)), (18.0, sample(0.95))]
    assert not load_after(*dipped, (27.0, sample(0.95))).processing_high
    assert load_after(*dipped, (28.0, sample(0.95))).processing_high


def test_a_raised_alarm_is_cleared_below_the_lower_threshold_only() -> None:
    alarm = Alarm(0.0, raised=True)
    assert alarm.next(0.7, 5.0, start=0.8, stop=0.65, hold_s=10.0).raised
    assert alarm.next(0.6, 5.0, start=0.8, stop=0.65, hold_s=10.0) == Alarm()


def test_memory_has_an_alarm_of_its_own() -> None:
    load = load_after((0.0, sample(0.1, size=900)), (10.0, sample(0.1, size=900)))
    assert load.memory_high and not load.processing_high


def test_a_load_that_fell_is_remembered_for_a_while_and_one_that_rose_counts_at_once() -> None:
    fell = load_after((0.0, sample(0.9)), (20.0, sample(0.0)))
    assert fell.processing < 0.15 and fell.processing_lately > 0.6
    rose = load_after((0.0, sample(0.1)), (20.0, sample(0.9)))
    assert rose.processing_lately == rose.processing


def test_silence_counts_from_the_last_word_or_from_when_a_server_was_first_expected() -> None:
    window = Window(POLICY)
    window.expect("B", 100.0)
    window.heard(sample(), 90.0)
    window.expect("A", 100.0)
    assert [load.silent_s for load in window.loads(120.0, draining={"B"})] == [30.0, 20.0]
    assert [load.draining for load in window.loads(120.0, draining={"B"})] == [False, True]
    window.forget("B")
    assert [load.name for load in window.loads(120.0)] == ["A"]


def test_a_sample_older_than_the_last_is_passed_over() -> None:
    assert load_after((10.0, sample(0.5)), (5.0, sample(0.9))).processing == 0.5


def test_arrivals_are_smoothed_by_section_and_forgotten_with_it() -> None:
    window = Window(POLICY)
    window.heard(sample(rate=100.0), 0.0)
    window.heard(sample(rate=0.0), 10.0)
    assert window.arrival_per_s("A", HALF) == pytest.approx(36.8, abs=0.1)
    window.heard(replace(sample(), arrivals_per_s={}), 11.0)
    assert window.arrival_per_s("A", HALF) == 0.0 == window.arrival_per_s("B", HALF)


@given(st.floats(-1e-4, 1e-4))
def test_the_trend_is_the_slope_of_the_total(per_s: float) -> None:
    window = Window(POLICY)
    trend = Trend()
    for at in range(0, 3_600, 30):
        window.heard(sample(1.0 + per_s * at, size=round(500 + per_s * 1_000 * at)), at)
        trend = window.trend(at)
    assert trend.processing_per_s == pytest.approx(per_s, abs=2e-6)
    assert trend.memory_bytes_per_s == pytest.approx(1_000 * per_s, abs=2e-3)


def test_a_few_samples_make_no_trend() -> None:
    window = Window(POLICY)
    for at in range(5):
        window.heard(sample(at / 10), at * 60.0)
        assert window.trend(at * 60.0) == Trend()


@pytest.mark.parametrize("field", ["busy", "queue_wait_s", "size_bytes"])
def test_a_sample_that_cannot_be_is_refused(field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        replace(sample(), **{field: float("nan")})  # type: ignore[arg-type]
