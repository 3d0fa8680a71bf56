"""What the writer does when it has much to do."""

from __future__ import annotations

import pytest

from utuple.server.writing.meter import Meter


def test_the_full_rate_goes_by_large_batches_of_the_last_seconds() -> None:
    meter = Meter(0.0)
    assert meter.full_rate_per_s is None
    meter.worked(0.0, 1, 0.1)
    assert meter.full_rate_per_s is None, "a commit of one uTuple says nothing about many"
    meter.worked(0.1, 2_000, 0.6)
    meter.worked(0.6, 1, 0.7)
    assert meter.full_rate_per_s == pytest.approx(4_000)
    meter.worked(1.0, 6_000, 2.5)
    assert meter.full_rate_per_s == pytest.approx(4_000)
    meter.worked(5.0, 1_000, 6.0)
    assert meter.full_rate_per_s == pytest.approx(7_000 / 2.5), "the first is forgotten"
    meter.arrived(1, 60.0)
    assert meter.full_rate_per_s is None


def test_the_time_of_a_commit_is_the_mean_of_the_last_batches() -> None:
    meter = Meter(0.0)
    assert meter.commit_s(0.0) == 0.0
    meter.worked(0.0, 1, 0.1)
    meter.worked(1.0, 5_000, 1.3)
    assert meter.commit_s(2.0) == pytest.approx(0.2), "by batches, however large"
    assert meter.commit_s(5.2) == pytest.approx(0.3), "the first is forgotten"
    assert meter.commit_s(60.0) == 0.0


def test_the_longest_pause_is_told_for_a_while() -> None:
    meter = Meter(0.0)
    assert meter.longest_pause_s(0.0) == 0.0
    meter.paused(0.010, 1.0)
    meter.paused(0.030, 2.0)
    meter.paused(0.020, 3.0)
    assert meter.longest_pause_s(6.9) == 0.030
    assert meter.longest_pause_s(7.1) == 0.020
    assert meter.longest_pause_s(9.0) == 0.0
