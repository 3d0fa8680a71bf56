"""Tables of a study, on a Spark session."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from ops_sim import schema
from ops_sim.cost.application import Load
from ops_sim.operation import paper
from ops_sim.operation.demand import Demand
from ops_sim.operation.policy import Policy
from ops_sim.operation.study import Study, day_rows, scenario_rows, table
from utuple.errors import InvalidInput

HUNDRED_FILL_A_SERVER = Load(0.01, 0.0, 0.005, 0.0, 0.0)
EAGER = Policy("eager", horizon_days=2, window_days=2, buy_above=0.9, size_below=0.6)


def study_of(**changes: object) -> Study:
    given: dict[str, object] = {
        "demands": (Demand("rising", devices_start=50, devices_per_day=10, lead_time_days=1),),
        "policies": (EAGER,),
        "load": HUNDRED_FILL_A_SERVER,
        "days": 3,
        "servers_start": 1,
    }
    return Study(**(given | changes))  # type: ignore[arg-type]


def test_three_days_are_three_rows(spark: SparkSession) -> None:
    days = table(spark, study_of(), schema.DAYS, day_rows)
    expected = [
        ("eager", "rising", 0, 1, 60.0, 60.0, 1, 0, 0, 0.6, 0.3),
        ("eager", "rising", 0, 2, 70.0, 90.0, 1, 0, 0, 0.7, 0.35),
        ("eager", "rising", 0, 3, 80.0, 100.0, 1, 1, 1, 0.8, 0.4),
    ]
    assertDataFrameEqual(days, spark.createDataFrame(expected, schema.DAYS))


def test_a_scenario_is_one_row_a_policy_and_world(spark: SparkSession) -> None:
    lazy = Policy("lazy", horizon_days=2, window_days=2, buy_above=1.0, size_below=1.0)
    study = study_of(policies=(EAGER, lazy), days=6)
    rows = table(spark, study, schema.SCENARIOS, scenario_rows)
    found = [tuple(row) for row in rows.sort("policy").collect()]
    # devices 60 … 110; eager buys one on day 3, which is there on day 4; lazy one on day 4
    assert [row[:11] for row in found] == [
        ("eager", "rising", 0, 110.0, 2, 3, 1, 9, 1, 1, 0),
        ("lazy", "rising", 0, 110.0, 2, 4, 1, 8, 1, 1, 0),
    ]
    assert found[1][11:14] == pytest.approx((0, (90 / 1 + 100 / 2 + 110 / 2) / 300, 0.9))


def test_the_tables_are_the_same_however_they_are_partitioned(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand = Demand(noise=0.1, growth_spread=0.2, lead_time_spread=0.4)
    study = Study((demand,), (Policy(),), paper.AS_WRITTEN.study.load, days=300, worlds=40)
    few = table(spark, study, schema.SCENARIOS, scenario_rows)
    monkeypatch.setattr("ops_sim.operation.study.PARTITION_WORLDS", 7)
    many = table(spark, study, schema.SCENARIOS, scenario_rows)
    assert many.rdd.getNumPartitions() > few.rdd.getNumPartitions()
    assertDataFrameEqual(few, many, rtol=0.0, atol=0.0)
    assert few.select("servers_last").distinct().count() > 1


def test_section_4_2_on_spark_is_the_rule_as_written(spark: SparkSession) -> None:
    rows = paper.days_under(paper.AS_WRITTEN, paper.days(spark).toArrow())
    found = paper.figures(rows)
    assert found["servers_day_1000"] == 49
    assert [purchase["day"] for purchase in found["purchases"]] == [184, 257, 354, 476, 646, 865]
    assert round(found["memory_mean"], 3) == 0.751
    assert round(found["processing_mean"], 3) == 0.666
    assert (round(found["usage_floor"], 3), found["floor_from_day"]) == (0.446, 136)
    assert found["above_floor_from_day"] == 153


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"days": 0}, "days"),
        ({"worlds": 0}, "worlds"),
        ({"servers_start": 0}, "servers_start"),
        ({"seed": -1}, "seed"),
        ({"demands": ()}, "demand"),
        ({"policies": (EAGER, EAGER)}, "policy.name"),
        ({"demands": (Demand(lead_time_days=30),)}, "demand.lead_time_days"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused_before_anything_runs(
    wrong: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        study_of(**wrong)
    assert refused.value.field == field
