from __future__ import annotations

import random

import pytest

from ops_sim.cost.calibration import fit_line
from utuple.errors import InvalidInput


def test_points_on_a_line_give_it_back_with_certainty() -> None:
    fit = fit_line([0, 10, 20, 30], [5, 7, 9, 11])
    assert (fit.intercept, fit.slope) == pytest.approx((5, 0.2))
    assert fit.intercept_95 == pytest.approx(0, abs=1e-9)


def test_the_interval_holds_the_truth_in_about_95_of_100_samples() -> None:
    dice = random.Random(1)
    xs = [float(x) for x in range(0, 100, 10)]
    held = 0
    for _ in range(1_000):
        fit = fit_line(xs, [3 + 0.5 * x + dice.gauss(0, 4) for x in xs])
        held += abs(fit.slope - 0.5) <= fit.slope_95
    assert 930 <= held <= 970


@pytest.mark.parametrize(("xs", "ys"), [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [1])])
def test_too_few_points_or_all_at_one_place_are_refused(xs: list[float], ys: list[float]) -> None:
    with pytest.raises(InvalidInput):
        fit_line(xs, ys)
