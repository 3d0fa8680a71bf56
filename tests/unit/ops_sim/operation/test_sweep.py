"""From scenarios to policies and bands, on a Spark session."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median_low

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from ops_sim import schema
from ops_sim.operation import paper, sweep
from ops_sim.operation.demand import Demand
from ops_sim.operation.policy import Policy
from ops_sim.operation.study import Study, day_rows, table

UNSURE = Demand(noise=0.1, growth_spread=0.3, devices_start=4e6)
STUDY = Study((UNSURE,), (Policy(),), paper.AS_WRITTEN.study.load, days=120, worlds=30)


def scenario(server_days: int, above_90: int, above_100: int, peak: float) -> tuple[object, ...]:
    return (
        *("p", "d", 0, 1.0, 5, 1, 3, server_days, 2, 4),
        *(above_90, above_100, 0.6, peak, 0.6, 0.5),
    )


def test_three_scenarios_are_one_policy(spark: SparkSession) -> None:
    rows = [scenario(100, 0, 0, 0.8), scenario(200, 10, 0, 0.95), scenario(300, 50, 20, 1.1)]
    found = sweep.policies(spark.createDataFrame(rows, schema.SCENARIOS), days=100)
    expected = [("p", 3, 200.0, 5.0, 2.0, 4.0, 0.2, 20 / 300, 2 / 3, 1 / 3, 0.6, 0.95, 0.4, -0.085)]
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema.POLICIES))


def test_the_bands_of_three_worlds_are_their_quantiles(spark: SparkSession) -> None:
    rows = [("p", "d", world, 7, 10.0 * world, 0.0, 2, 0, 0, 0.4, 0.5) for world in (1, 2, 3)]
    found = sweep.bands(spark.createDataFrame(rows, schema.DAYS))
    expected = [
        ("p", "d", 7, "devices", 11.0, 15.0, 20.0, 25.0, 29.0),
        ("p", "d", 7, "servers", 2.0, 2.0, 2.0, 2.0, 2.0),
        ("p", "d", 7, "usage", 0.5, 0.5, 0.5, 0.5, 0.5),
    ]
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema.BANDS))


def test_waves_leave_the_same_rows_as_one_job_and_an_interruption_what_is_finished(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "WAVE_SCENARIOS", 12)
    told: list[int] = []
    assert sweep.run_waves(spark, STUDY, tmp_path / "whole", told.append) == 30
    assert told == [12, 24, 30]
    whole = sweep.scenarios(spark, tmp_path / "whole")
    assert sorted(row.world for row in whole.collect()) == list(range(30))

    def interrupt(worlds: int) -> None:
        monkeypatch.setattr(sweep, "scenario_rows", _interrupted)

    assert sweep.run_waves(spark, STUDY, tmp_path / "part", interrupt) == 12
    part = sweep.scenarios(spark, tmp_path / "part")
    assertDataFrameEqual(part, whole.where("world < 12"), rtol=0.0, atol=0.0)


class _Interrupted:
    """Ctrl-C comes while the job is prepared."""

    def __reduce__(self) -> tuple[object, ...]:
        raise KeyboardInterrupt


_interrupted = _Interrupted()


@pytest.mark.parametrize("days", [1, 2, 99, 100, 101, 120, 1_000])
def test_bands_are_of_about_a_hundred_days_the_first_and_the_last_among_them(days: int) -> None:
    chosen = sweep.band_days(days)
    assert len(chosen) == min(days, 100)
    assert (chosen[0], chosen[-1]) == (0, days - 1)


def test_some_days_are_those_of_all_days(spark: SparkSession) -> None:
    one = replace(STUDY, worlds=1)
    every = table(spark, one, schema.DAYS, day_rows)
    some = table(spark, one, schema.DAYS, partial(day_rows, days=[0, 60, 119]))
    assertDataFrameEqual(some, every.where("day in (1, 61, 120)"), rtol=0.0, atol=0.0)


def test_the_orders_told_are_those_of_the_scenario_that_buys_the_median(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A world without dice buys less than nearly all possible ones: its orders would contradict the scenarios."""
    bursts = replace(UNSURE, name="bursts", bursts_per_year=20.0, burst_share=1.0, noise=0.2)
    study = replace(STUDY, demands=(UNSURE, bursts))
    done = sweep.run_waves(spark, study, tmp_path, lambda _: None)
    _, _, days = sweep.sum_up(spark, study, tmp_path, 0.05, done)
    rows = sweep.scenarios(spark, tmp_path).collect()
    for demand in study.demands:
        bought = [row.servers_bought for row in rows if row.demand == demand.name]
        told = [row for row in days.to_pylist() if row["demand"] == demand.name]
        assert [row["day"] for row in told] == list(range(1, 121))
        assert sum(row["bought"] for row in told) == median_low(bought)


def test_the_middle_world_is_of_one_policy_and_ties_go_by_server_days(spark: SparkSession) -> None:
    def row(policy: str, world: int, server_days: int, bought: int) -> tuple[object, ...]:
        end = (0, 0, 0.6, 0.8, 0.6, 0.5)
        return (policy, "d", world, 1.0, 5, 1, 3, server_days, 2, bought, *end)

    mine = [row("p", 0, 9, 7), row("p", 1, 8, 7), row("p", 2, 7, 7), row("p", 3, 1, 90)]
    other = [row("q", world, 1, world) for world in range(10, 30)]
    found = sweep.middle_worlds(spark.createDataFrame(mine + other, schema.SCENARIOS), "p")
    assert [tuple(each) for each in found.collect()] == [("d", 1)]
