"""From points to a cost model (section 4.1.1)."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_sim.cost.application import A
from ops_sim.cost.calibration import SIZES, TIMES, Points, calibrate, fit_line
from ops_sim.cost.catalogue import cost_named
from ops_sim.cost.estimate import Condition, Method, cautions, estimate, estimates
from ops_sim.cost.model import PAPER, CostModel
from ops_sim.report.calibration import calibration_report
from ops_sim.report.estimate import estimate_report
from tests.reports import a_calibration
from utuple.errors import InvalidInput


def test_lines_become_the_costs_of_the_model() -> None:
    model = a_calibration().model
    assert asdict(model) == pytest.approx(
        asdict(
            CostModel(
                "calibrated",
                ea_bytes=400,
                ea_s=50e-6,
                ea_s_per_ef=1e-9,
                ef_bytes=900,
                ef_s=2e-3,
                ef_s_per_ea=0,  # its line falls: noise around its mean
                cf_bytes=300,
                cf_s=3.3e-3,
                ca_s=4e-3,
                ca_s_per_cf=2e-6,
                memory_bytes=10e9,
                eas_max=3_000,
                efs_max=2_000,
                cfs_max=2_000,
            )
        )
    )


def test_what_was_not_measured_or_is_within_the_noise_is_said() -> None:
    assumed = a_calibration().assumed
    assert assumed[0] == "a server holds 10 GB: given, not measured"
    assert [said.partition(":")[0] for said in assumed[3:]] == ["an EF against stored EAs"]


def test_a_line_that_begins_below_nothing_gives_the_quickest_that_was_seen() -> None:
    steep = {**a_calibration().measured, "ea_s": Points((10, 20, 30), (1e-5, 4e-5, 7e-5))}
    assert calibrate(steep, 1e9).model.ea_s == 1e-5


QUICK = {
    "ea_s": Points((10, 50, 100), (117.8e-6, 63.6e-6, 70.8e-6)),
    "ef_s": Points((0, 500, 1_000), (3.184e-3, 4.167e-3, 5.639e-3)),
    "ca_s": Points((50, 100, 200), (16.65e-3, 14.04e-3, 7.11e-3)),
    "cf_s": Points((0, 50, 100), (4.83e-3, 9.2e-3, 8.3e-3)),
    "ea_bytes": Points((0, 500, 1_000), (0, 90_112, 180_224)),
    "ef_bytes": Points((10, 50, 100), (16_384, 49_152, 57_344)),
    "cf_bytes": Points((50, 100, 200), (32_768, 65_536, 114_688)),
}
"""As `utuple plan calibrate --quick` measured them, on a loaded machine: 7 EAs a second came of them."""


def one_server(model: CostModel) -> float:
    return estimate(A, model, Method.PROPOSED, Condition.BEST, 1).throughput_per_s


def test_a_quick_run_estimates_the_rate_it_measured_and_not_its_noise() -> None:
    model = calibrate(QUICK, 140e9, quick=True).model
    assert (model.ea_s_per_ef, model.ef_s_per_ea, model.ca_s_per_cf) == (0, 0, 0)
    assert one_server(model) == pytest.approx(1 / fmean(QUICK["ea_s"].one), rel=0.01)
    assert model.ef_bytes == 573.44, "the line says nothing: what 100 took is divided by them"


levels = st.lists(st.floats(0, 1e6), min_size=3, max_size=16, unique=True)


@given(levels, st.floats(1e-6, 1e-2), st.integers(0, 2**32))
def test_a_slope_whose_interval_holds_0_is_0_whatever_the_noise(
    there: list[float], level: float, seed: int
) -> None:
    dice = random.Random(seed)
    noisy = tuple(level * dice.uniform(0.5, 1.5) for _ in there)
    fit = fit_line(there, noisy)
    model = calibrate({**QUICK, "ef_s": Points(there, noisy)}, 140e9).model
    if fit.slope - fit.slope_95 <= 0:
        assert model.ef_s_per_ea == 0
        assert model.ef_s == fmean(noisy)
        assert one_server(model) == pytest.approx(1 / model.ea_s, rel=0.02)
    else:
        assert model.ef_s_per_ea == fit.slope


def test_a_slope_beyond_the_noise_is_kept() -> None:
    there = (0.0, 1e4, 2e4, 3e4)
    rising = Points(there, tuple(1e-3 + 1e-7 * x + 1e-5 * (-1) ** n for n, x in enumerate(there)))
    assert calibrate({**QUICK, "ef_s": rising}, 140e9).model.ef_s_per_ea == pytest.approx(
        1e-7, rel=0.05
    )


def test_what_is_made_of_quick_costs_or_of_more_than_was_measured_says_so() -> None:
    quick = calibrate(QUICK, 140e9, quick=True).model
    full = replace(quick, name="calibrated", quick=False)
    found = list(estimates([A], full, [1]))
    assert (full.eas_max, full.efs_max, full.cfs_max) == (1_000, 100, 200)
    assert found[0].accumulatable_beyond == pytest.approx(140e9 / 180.2 / 1_000, rel=0.01)
    (outside,) = cautions(found, full)
    assert outside.startswith("Outside the measured range: a server is taken to hold up to ")
    assert "(1,000 EAs, 100 EFs, 200 CFs)" in outside
    assert (
        cautions(
            list(estimates([A], replace(full, memory_bytes=10_000.0, ea_s=5_000.0), [1])), full
        )
        == []
    )
    assert [said[:36] for said in cautions(found, quick)] == [
        "These costs are of a quick calibrati",
        outside[:36],
    ]
    assert cautions(list(estimates([A], PAPER, [1])), PAPER) == []
    report = estimate_report(
        [asdict(one) for one in found], quick.to_json(), cautions(found, quick)
    )
    assert report.reason.startswith("These costs are of a quick calibration")
    assert "quick calibration" in report.title
    told = asdict(calibrate(QUICK, 140e9, quick=True))
    assert calibration_report(told).reason.startswith("These costs are of a quick calibration")


def test_a_file_that_only_says_around_the_model_that_it_is_quick_is_quick(tmp_path: Path) -> None:
    """As versions before wrote it."""
    model = {"name": "calibrated", "ea_bytes": 1.0, "ea_s": 1.0}
    (tmp_path / "cost.json").write_text(json.dumps({"model": model, "quick": True}))
    assert cost_named(str(tmp_path / "cost.json")).quick


def test_a_line_that_is_missing_is_refused_by_name() -> None:
    line = Points((0, 1, 2), (1, 2, 3))
    with pytest.raises(InvalidInput, match="cf_bytes"):
        calibrate({name: line for name in TIMES | SIZES if name != "cf_bytes"}, 1e9)


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


def test_a_wrong_field_of_a_cost_model_is_told_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    path.write_text('{"name": "mine", "ea_byte": 1480, "ea_s": 0.005}')
    with pytest.raises(InvalidInput, match=r"'ea_byte' is refused: .* the nearest is ea_bytes"):
        cost_named(str(path))
