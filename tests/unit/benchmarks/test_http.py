"""What consoles cost is the same whichever of a pair comes first."""

from __future__ import annotations

import pytest

from benchmarks.http.benchmark import both_orders


def test_that_the_second_of_a_pair_is_slower_does_not_count() -> None:
    slower_second = [0.9, 1 / 0.9] * 5
    assert both_orders(slower_second) == pytest.approx(1.0)
    assert both_orders([ratio * 0.95 for ratio in slower_second]) == pytest.approx(0.95)
