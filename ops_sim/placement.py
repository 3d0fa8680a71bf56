"""Placement on Spark: one task a scenario and method, rows of `schema.PLACEMENT_DAYS`.

A scenario is one course of days after another and cannot be cut; many of them run side by side. What comes out
follows from the scenario alone, wherever it runs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from load_monitor.policy import Policy
from ops_sim import schema
from ops_sim.cost import CostModel
from ops_sim.placement_scenario import Scenario
from ops_sim.placement_study import METHODS, PROPOSED, study

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

_PORTION_DAYS = 50
"""Rows handed on at a time."""


@dataclass(frozen=True, slots=True)
class Placement:
    scenarios: tuple[Scenario, ...]
    cost: CostModel
    policy: Policy
    methods: tuple[str, ...] = METHODS

    @property
    def tasks(self) -> list[tuple[str, Scenario]]:
        """The long ones first: the existing method takes a moment."""
        ordered = sorted(self.methods, key=lambda method: method != PROPOSED)
        return [(method, scenario) for method in ordered for scenario in self.scenarios]


def days(spark: SparkSession, placement: Placement) -> DataFrame:
    """A row a day."""
    tasks = placement.tasks
    names = schema.PLACEMENT_DAYS.names

    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        gc.disable()  # plans are made of many small values and no cycles; looking for some takes as long
        for batch in batches:
            for task in batch["id"]:
                method, scenario = tasks[int(task)]
                rows = study(method, scenario, placement.cost, placement.policy)
                for portion in _portions(rows):
                    yield pd.DataFrame(portion, columns=names)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInPandas(run, schema.PLACEMENT_DAYS)


def _portions(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    portion: list[dict[str, Any]] = []
    for row in rows:
        portion.append(row)
        if len(portion) == _PORTION_DAYS:
            yield portion
            portion = []
    if portion:
        yield portion


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
