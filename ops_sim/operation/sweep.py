"""A sweep: all scenarios in waves, each one Spark job whose rows are on disk when it ends; then what they say.

The folder of a sweep:

    scenarios/wave=N/*.parquet   schema.SCENARIOS, one row a scenario
    policies.parquet, .csv       schema.POLICIES, one row a policy
    bands.parquet                schema.BANDS, of the recommended policy
    days.parquet                 schema.DAYS, of the recommended policy in the middle world of each demand
    plan.json                    the answer, the reason, the front, and what was assumed
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from ops_sim import schema
from ops_sim.operation.choice import recommend
from ops_sim.operation.policy import Policy
from ops_sim.operation.study import Study, day_rows, scenario_rows, table
from ops_sim.spark.session import run

if TYPE_CHECKING:
    from pyarrow import Table
    from pyspark.sql import Column, DataFrame, SparkSession

WAVE_SCENARIOS = 20_000
"""One job simulates so many: that takes a few seconds, which is what an interruption loses."""
BAND_WORLDS = 2_000
"""Bands are made from so many worlds of each demand: enough for quantiles, whatever the size of the sweep."""

BAND_DAYS = 100
"""Bands are made from so many days: they look the same with more."""

Progress = Callable[[int], None]
"""Told how many worlds (of each demand) are finished."""


def waves(study: Study) -> list[range]:
    """The worlds of each demand, cut into portions for one job each."""
    beside = len(study.demands) * len(study.policies)
    step = max(1, min(study.worlds, WAVE_SCENARIOS // beside))
    return [range(at, min(at + step, study.worlds)) for at in range(0, study.worlds, step)]


def run_waves(spark: SparkSession, study: Study, folder: Path, progress: Progress) -> int:
    """How many worlds are finished: all, unless interrupted; the rows of the rest are gone."""
    done = 0
    for number, worlds in enumerate(waves(study)):
        place = folder / "scenarios" / f"wave={number:04d}"
        try:
            rows = table(spark, study, schema.SCENARIOS, scenario_rows, worlds.start, len(worlds))
            run(spark, partial(rows.write.mode("overwrite").parquet, str(place)))
        except KeyboardInterrupt:
            shutil.rmtree(place, ignore_errors=True)
            return done
        done = worlds.stop
        progress(done)
    return done


def scenarios(spark: SparkSession, folder: Path) -> DataFrame:
    """What is on disk, as `schema.SCENARIOS`."""
    found = spark.read.schema(schema.SCENARIOS).parquet(str(folder / "scenarios"))
    return found.select(*schema.SCENARIOS.names)


def policies(rows: DataFrame, days: int) -> DataFrame:
    """From `schema.SCENARIOS` to `schema.POLICIES`."""
    from pyspark.sql import functions as F

    def share_of_days(name: str) -> Column:
        return F.mean(F.col(name) / days).alias(name)

    def share_of_scenarios(name: str) -> Column:
        return F.mean((F.col(f"days_{name}") > 0).cast("double")).alias(f"scenarios_{name}")

    means = ("server_days", "servers_last", "purchases", "servers_bought")
    found = rows.groupBy("policy").agg(
        F.count("*").alias("scenarios"),
        *(F.mean(name).alias(name) for name in (*means, "usage_mean", "usage_peak")),
        *(share_of_days(f"days_{name}") for name in ("above_90", "above_100")),
        *(share_of_scenarios(name) for name in ("above_90", "above_100")),
        F.mean(1 - F.col("usage_mean")).alias("headroom"),
        F.percentile(1 - F.col("usage_peak"), 0.05).alias("headroom_5"),
    )
    return found.select(*schema.POLICIES.names)


def bands(days: DataFrame) -> DataFrame:
    """From `schema.DAYS` to `schema.BANDS`."""
    from pyspark.sql import functions as F

    shares = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
    usage = F.greatest("memory", "processing")
    long = days.withColumn("usage", usage).unpivot(
        ["policy", "demand", "day"], ["devices", "servers", "usage"], "quantity", "value"
    )
    found = long.groupBy("policy", "demand", "day", "quantity").agg(
        *(F.percentile("value", part).alias(name) for name, part in shares.items())
    )
    return found.select(*schema.BANDS.names)


def sum_up(
    spark: SparkSession, study: Study, folder: Path, risk: float, worlds: int
) -> tuple[Table, Table, Table]:
    """What so many finished worlds say: a row for each policy; bands and days of the recommended one."""
    found = scenarios(spark, folder)
    summed = run(spark, policies(found, study.days).sort("server_days").toArrow)
    chosen = recommend(summed.to_pylist(), risk).policy
    policy = next(policy for policy in study.policies if policy.name == chosen)
    banded = run(spark, bands_of(spark, study, policy, worlds).toArrow)
    middle = {row.demand: row.world for row in run(spark, middle_worlds(found, chosen).collect)}
    daily = run(spark, middle_days(spark, study, policy, middle).toArrow)
    order = [(name, "ascending") for name in ("demand", "quantity", "day")]
    return summed, banded.sort_by(order), daily.sort_by([order[0], order[2]])


def bands_of(spark: SparkSession, study: Study, policy: Policy, worlds: int) -> DataFrame:
    alone = replace(study, policies=(policy,), worlds=min(worlds, BAND_WORLDS))
    rows = partial(day_rows, days=band_days(study.days))
    return bands(table(spark, alone, schema.DAYS, rows))


def band_days(days: int) -> list[int]:
    """About a hundred of them, counted from 0, the last one among them."""
    few = min(BAND_DAYS, days)
    return sorted({at * (days - 1) // max(1, few - 1) for at in range(few)})


def middle_worlds(rows: DataFrame, policy: str) -> DataFrame:
    """From `schema.SCENARIOS` to one row for each demand: the world in the middle when worlds are ordered by the servers they buy
    under the policy.

    A world without noise, bursts and late deliveries would buy less than almost every possible one, and its orders would
    contradict the means over the worlds. Of worlds that buy as many, the one with fewer server-days comes first; of an
    even number of worlds, the lower of the two in the middle is taken.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    demand = Window.partitionBy("demand")
    place = F.row_number().over(demand.orderBy("servers_bought", "server_days", "world"))
    worlds = F.count("*").over(demand)
    placed = rows.where(F.col("policy") == policy).select(
        "demand", "world", place.alias("place"), F.ceil(worlds / 2).alias("middle")
    )
    return placed.where("place = middle").select("demand", "world")


def middle_days(
    spark: SparkSession, study: Study, policy: Policy, middle: Mapping[str, int]
) -> DataFrame:
    """`schema.DAYS` of one world of each demand."""
    alone = (replace(study, demands=(demand,), policies=(policy,)) for demand in study.demands)
    each = [
        table(spark, one, schema.DAYS, day_rows, middle[one.demands[0].name], worlds=1)
        for one in alone
    ]
    return reduce(lambda some, more: some.union(more), each)
