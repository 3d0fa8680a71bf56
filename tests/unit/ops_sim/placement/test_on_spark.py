"""Studies on Spark, and the figures of each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from load_monitor.planning.policy import Policy
from ops_sim import schema
from ops_sim.cost.model import PAPER
from ops_sim.placement.on_spark import Placement, figures, run_waves
from ops_sim.placement.scenario import Scenario, Skew
from ops_sim.placement.study import PROPOSED, Study

POLICY = Policy()
SMALL = Scenario(keys=500, days=9, skew=Skew("zipf", 1.1))


def rows_of(method: str, scenario: Scenario, policy: Policy = POLICY) -> list[dict[str, object]]:
    study = Study(method, scenario, PAPER, policy)
    return [dict(study.live(day)) for day in range(scenario.days)]


def test_three_days_of_each_method_are_its_rows_wherever_and_in_however_many_waves_they_run(
    spark: SparkSession,
) -> None:
    three = replace(SMALL, days=3, churn=0.1)
    placement = Placement((three, replace(three, skew=Skew())), PAPER, POLICY)
    rows = [row for method, one in placement.tasks for row in rows_of(method, one)]
    told: list[int] = []
    found = run_waves(spark, placement, told.append, wave_days=2)
    assert told == [2, 3]
    assert found.column_names == schema.PLACEMENT_DAYS.names
    order = [(name, "ascending") for name in ("method", "scenario", "day")]
    expected = sorted(rows, key=lambda row: [row[name] for name, _ in order])
    assert found.sort_by(order).to_pylist() == expected


def test_the_figures_of_a_study_are_those_of_the_second_half_of_its_days() -> None:
    rows = rows_of(PROPOSED, SMALL)
    (said,) = figures(rows)
    assert (said["method"], said["days"], said["servers"]) == (PROPOSED, 9, 10)
    half = [row["imbalance"] for row in rows[4:]]
    assert said["imbalance_mean"] == pytest.approx(sum(half) / 5)  # type: ignore[arg-type]
    assert said["moves_first_day"] == rows[0]["moves"]
