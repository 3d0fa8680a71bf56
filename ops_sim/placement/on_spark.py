"""Placement on Spark: one task a scenario and method, in waves of some days, each one job.

Many scenarios run side by side. Where one stands at the end of a wave comes back with its rows and goes into the next,
so what comes out follows from the scenario alone, wherever it runs.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from load_monitor.planning.policy import Policy
from ops_sim import schema
from ops_sim.cost.application import A
from ops_sim.cost.model import CostModel
from ops_sim.placement.scenario import Scenario
from ops_sim.placement.study import METHODS, Study
from ops_sim.spark.session import run

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

WAVE_DAYS = 50
"""In one job: progress is seen then, and an interruption loses no more."""

Progress = Callable[[int], None]
"""Told how many days are finished."""


@dataclass(frozen=True, slots=True)
class Placement:
    scenarios: tuple[Scenario, ...]
    cost: CostModel
    policy: Policy

    @property
    def cautions(self) -> list[str]:
        """What to know of the costs, with EAs spread evenly."""
        each = (scenario.devices / scenario.servers * A.eas for scenario in self.scenarios)
        return self.cost.cautions(self.cost.beyond(max(each)))

    @property
    def tasks(self) -> list[tuple[str, Scenario]]:
        """The long ones first: the existing method takes a moment."""
        return [(method, scenario) for method in METHODS for scenario in self.scenarios]


def run_waves(
    spark: SparkSession, placement: Placement, progress: Progress, wave_days: int = WAVE_DAYS
) -> pa.Table:
    """The days that are finished, as `schema.PLACEMENT_DAYS`: all, unless interrupted."""
    import pyarrow as pa

    last = max(scenario.days for scenario in placement.scenarios)
    states = [b""] * len(placement.tasks)
    found: list[pa.Table] = []
    for first in range(0, last, wave_days):
        wave = range(first, min(first + wave_days, last))
        try:
            rows = run(spark, days(spark, placement, states, wave).toArrow)
        except KeyboardInterrupt:
            if not found:
                raise
            break
        for row in rows.select(["task", "state"]).to_pylist():
            states[row["task"]] = row["state"] or states[row["task"]]
        found.append(rows.select(schema.PLACEMENT_DAYS.names))
        progress(wave.stop)
    return pa.concat_tables(found)


def days(
    spark: SparkSession, placement: Placement, states: Sequence[bytes], wave: range
) -> DataFrame:
    """`schema.PLACEMENT_WAVES`: a row a day, the last of a task with where it stands then; `states` is where each stood."""
    tasks = placement.tasks
    names = schema.PLACEMENT_WAVES.names

    def go(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        gc.disable()  # plans are made of many small values and no cycles; looking for some takes as long
        for batch in batches:
            for task in batch["id"]:
                method, scenario = tasks[int(task)]
                if states[task]:
                    study = pickle.loads(states[task])  # noqa: S301 - made by the wave before
                else:
                    study = Study(method, scenario, placement.cost, placement.policy)
                told = {"task": task, "state": b""}
                rows = [{**told, **study.live(day)} for day in wave if day < scenario.days]
                if rows:
                    rows[-1]["state"] = pickle.dumps(study, pickle.HIGHEST_PROTOCOL)
                yield pd.DataFrame(rows, columns=names)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInPandas(go, schema.PLACEMENT_WAVES)


def figures(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a scenario and method, over the second half of its days: what there is once it has settled."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["scenario"], row["method"]), []).append(row)
    return [
        {"scenario": name, "method": method, **_figures(sorted(days, key=lambda row: row["day"]))}
        for (name, method), days in sorted(found.items())
    ]


def _figures(days: list[dict[str, Any]]) -> dict[str, Any]:
    half, last = days[len(days) // 2 :], days[-1]

    def mean(name: str) -> float:
        return float(sum(row[name] for row in half) / len(half))

    return {
        "days": len(days),
        "servers": last["servers"],
        "devices": last["devices"],
        "imbalance_mean": mean("imbalance"),
        "imbalance_max": max(row["imbalance"] for row in half),
        "processing_mean": mean("processing_mean"),
        "processing_max": max(row["processing_max"] for row in half),
        "memory_mean": mean("memory_mean"),
        "memory_max": max(row["memory_max"] for row in half),
        "days_over_100": sum(row["servers_over_100"] > 0 for row in half) / len(half),
        "servers_over_100_mean": mean("servers_over_100"),
        "moves_first_day": days[0]["moves"],
        "moves_a_day": mean("moves"),
        "copied_efs_a_day": mean("copied_efs"),
        "migrated_eas_a_day": mean("migrated_eas"),
        "lines": last["lines"],
        "members": last["members"],
        "members_mean": last["members_mean"],
        "members_max": last["members_max"],
        "worst_share": last["worst_share"],
    }
