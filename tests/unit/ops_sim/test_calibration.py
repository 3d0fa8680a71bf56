"""From points to a cost model (section 4.1.1)."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from ops_sim.calibration import SIZES, TIMES, Points, calibrate
from ops_sim.cost import CostModel
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


def test_a_line_that_is_missing_is_refused_by_name() -> None:
    line = Points((0, 1, 2), (1, 2, 3))
    with pytest.raises(InvalidInput, match="cf_bytes"):
        calibrate({name: line for name in TIMES | SIZES if name != "cf_bytes"}, 1e9)
