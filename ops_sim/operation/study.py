"""A study: demands × policies × worlds, and its tables. Spark spreads the worlds, the kernel runs them.

A partition holds worlds; nothing of a world leaves it but its rows. What is drawn depends on the seed and the world
alone, so the tables are the same however they are partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ops_sim.cost.application import Load
from ops_sim.operation import kernel
from ops_sim.operation.demand import DAYS_MAX, Demand
from ops_sim.operation.kernel import Operation
from ops_sim.operation.policy import Policy
from utuple.errors import InvalidInput
from utuple.model.settings import no_duplicates, whole

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

WORLDS_MAX = 10_000_000
SEED_MAX = 2**63 - 1
PARTITION_WORLDS = 8_192
"""At most so many worlds in a task: a second of work, so that progress is seen and a lost task is cheap."""


@dataclass(frozen=True, slots=True)
class Study:
    demands: tuple[Demand, ...]
    policies: tuple[Policy, ...]
    load: Load
    days: int = 1_000
    worlds: int = 1
    """Each demand has so many."""
    seed: int = 1
    servers_start: int = 10

    def __post_init__(self) -> None:
        for name, most in (
            ("days", DAYS_MAX),
            ("worlds", WORLDS_MAX),
            ("servers_start", 1_000_000),
        ):
            whole(name, getattr(self, name), 1, most)
        whole("seed", self.seed, 0, SEED_MAX)
        for what, items in (("demand", self.demands), ("policy", self.policies)):
            names = [item.name for item in items]
            if not names:
                raise InvalidInput(what, "none", "there must be at least one")
            no_duplicates(f"{what}.name", names)
        for demand in self.demands:
            for policy in self.policies:
                if demand.lead_time_days > policy.horizon_days:
                    raise InvalidInput(
                        "demand.lead_time_days",
                        demand.lead_time_days,
                        f"must not be longer than the horizon ({policy.horizon_days} days of policy "
                        f"{policy.name}): servers would come after the day they were bought for",
                    )
            if demand.lead_time_days > self.days:
                raise InvalidInput(
                    "demand.lead_time_days",
                    demand.lead_time_days,
                    f"must not be longer than the study ({self.days} days)",
                )

    @property
    def scenarios(self) -> int:
        return len(self.demands) * len(self.policies) * self.worlds


Rows = dict[str, object]
Summing = Callable[[Study, Demand, Policy, np.ndarray, Operation], Rows]
"""A block of worlds under one policy, as columns."""


def table(
    spark: SparkSession,
    study: Study,
    schema: StructType,
    rows: Summing,
    first_world: int = 0,
    worlds: int | None = None,
) -> DataFrame:
    """The rows of the worlds `first_world` on, of every demand."""
    count = study.worlds - first_world if worlds is None else worlds
    total = count * len(study.demands)
    least = spark.sparkContext.defaultParallelism
    rounds = -(-total // (PARTITION_WORLDS * least))  # whole ones: no core is idle in the last
    partitions = max(1, min(total, rounds * least))
    ids = spark.range(0, total, 1, partitions)
    names = [field.name for field in schema.fields]

    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        for batch in batches:
            for found in _run(study, rows, batch["id"].to_numpy(), first_world, count):
                yield pd.DataFrame(found, columns=names)

    return ids.mapInPandas(run, schema)


def _run(
    study: Study, rows: Summing, ids: np.ndarray, first_world: int, count: int
) -> Iterator[Rows]:
    which = ids // count
    for index in np.unique(which):
        demand = study.demands[int(index)]
        worlds = ids[which == index] % count + first_world
        for begin in range(0, len(worlds), kernel.BLOCK):
            block = worlds[begin : begin + kernel.BLOCK]
            devices = kernel.devices_in(demand, study.seed, block, study.days)
            lead_times = partial(kernel.lead_times_in, demand, study.seed, block)
            for policy in study.policies:
                operation = kernel.operate_all(
                    devices, lead_times, study.load, policy, study.servers_start
                )
                yield rows(study, demand, policy, block, operation)


def day_rows(
    study: Study,
    demand: Demand,
    policy: Policy,
    worlds: np.ndarray,
    operation: Operation,
    days: Sequence[int] | None = None,
) -> Rows:
    """Rows of `schema.DAYS`: all days, or some, counted from 0."""
    chosen = np.arange(len(operation.devices)) if days is None else np.asarray(days)
    devices, servers, bought = operation.devices, operation.servers, operation.bought
    ordered = np.cumsum(bought, axis=0) + study.servers_start

    def column(values: np.ndarray) -> np.ndarray:
        return values[chosen].T.ravel()  # world by world

    return {
        "policy": policy.name,
        "demand": demand.name,
        "world": np.repeat(worlds, len(chosen)),
        "day": np.tile((chosen + 1).astype(np.int32), len(worlds)),
        "devices": column(devices),
        "predicted": column(operation.predicted),
        "servers": column(servers).astype(np.int32),
        "on_order": column(ordered - servers).astype(np.int32),
        "bought": column(bought).astype(np.int32),
        "memory": column(study.load.memory(devices, servers)),
        "processing": column(study.load.processing(devices, servers)),
    }


def scenario_rows(
    study: Study, demand: Demand, policy: Policy, worlds: np.ndarray, operation: Operation
) -> Rows:
    """Rows of `schema.SCENARIOS`."""
    memory = study.load.memory(operation.devices, operation.servers)
    processing = study.load.processing(operation.devices, operation.servers)
    scarcer = np.maximum(memory, processing)
    half = len(scarcer) // 2
    buys = operation.bought > 0
    first = buys.argmax(axis=0)
    return {
        "policy": policy.name,
        "demand": demand.name,
        "world": worlds,
        "devices_last": operation.devices[-1],
        "servers_last": operation.servers[-1].astype(np.int32),
        "first_purchase_day": np.where(buys.any(axis=0), first + 1, 0).astype(np.int32),
        "first_purchase_servers": operation.bought[first, np.arange(len(worlds))].astype(np.int32),
        "server_days": operation.servers.sum(axis=0).astype(np.int64),
        "purchases": np.count_nonzero(buys, axis=0).astype(np.int32),
        "servers_bought": operation.bought.sum(axis=0).astype(np.int32),
        "days_above_90": np.count_nonzero(scarcer > 0.9, axis=0).astype(np.int32),
        "days_above_100": np.count_nonzero(scarcer > 1.0, axis=0).astype(np.int32),
        "usage_mean": scarcer[half:].mean(axis=0),
        "usage_peak": scarcer.max(axis=0),
        "memory_mean": memory[half:].mean(axis=0),
        "processing_mean": processing[half:].mean(axis=0),
    }
