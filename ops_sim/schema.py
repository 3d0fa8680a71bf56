"""The tables of a plan: their columns, types and meaning. This is the contract with who draws or reads them.

Shares are fractions, 1.0 is full. Days count from 1. A *world* is one possible course of a demand; a *scenario* is
a world under a policy.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)


def _table(**columns: tuple[type, str]) -> StructType:
    """Each column with its type and meaning."""
    return _struct(columns, nullable=False)


def _sparse(**columns: tuple[type, str]) -> StructType:
    """A table whose columns may be null."""
    return _struct(columns, nullable=True)


def _struct(columns: Mapping[str, tuple[type, str]], nullable: bool) -> StructType:
    found = StructType()
    for name, (kind, meaning) in columns.items():
        found.add(name, kind(), nullable, {"comment": meaning})
    return found


_OF_WORLD = {
    "policy": (StringType, "name of the policy"),
    "demand": (StringType, "name of the demand"),
    "world": (LongType, "number of the world within its demand"),
}

DAYS = _table(
    **_OF_WORLD,
    day=(IntegerType, "1 is the first"),
    devices=(DoubleType, "devices, by the load they cause"),
    predicted=(DoubleType, "devices predicted for the policy's horizon"),
    servers=(IntegerType, "installed"),
    on_order=(IntegerType, "ordered and not installed, after the day's decision"),
    bought=(IntegerType, "servers decided on that day"),
    memory=(DoubleType, "share of the memory of all servers that is used"),
    processing=(DoubleType, "share of the processing"),
)
"""Day by day; of a few worlds."""

SCENARIOS = _table(
    **_OF_WORLD,
    devices_last=(DoubleType, "on the last day"),
    servers_last=(IntegerType, "installed on the last day"),
    first_purchase_day=(IntegerType, "when servers were first bought; 0: never"),
    first_purchase_servers=(IntegerType, "how many"),
    server_days=(LongType, "sum over all days of servers installed: what operation costs"),
    purchases=(IntegerType, "how often servers were bought"),
    servers_bought=(IntegerType, "how many, also those not yet installed"),
    days_above_90=(IntegerType, "days on which memory or processing was above 90 %"),
    days_above_100=(IntegerType, "days on which one was above 100 %: the space could not keep up"),
    usage_mean=(DoubleType, "of the scarcer resource, over the second half of the days"),
    usage_peak=(DoubleType, "highest of the scarcer resource"),
    memory_mean=(DoubleType, "over the second half of the days"),
    processing_mean=(DoubleType, "over the second half of the days"),
)
"""One row a scenario."""

POLICIES = _table(
    policy=(StringType, "name of the policy"),
    scenarios=(LongType, "how many"),
    server_days=(DoubleType, "mean"),
    servers_last=(DoubleType, "mean"),
    purchases=(DoubleType, "mean"),
    servers_bought=(DoubleType, "mean"),
    days_above_90=(DoubleType, "mean share of the days"),
    days_above_100=(DoubleType, "mean share of the days"),
    scenarios_above_90=(DoubleType, "share of the scenarios with at least one such day"),
    scenarios_above_100=(DoubleType, "share of the scenarios with at least one such day"),
    usage_mean=(DoubleType, "mean of the scenarios' means"),
    usage_peak=(DoubleType, "mean of the scenarios' peaks"),
    headroom=(DoubleType, "mean share of the scarcer resource that is free"),
    headroom_5=(DoubleType, "free share at the peak, which 95 % of the scenarios exceed"),
)
"""One row a policy, over all demands and worlds."""

BANDS = _table(
    policy=(StringType, "name of the policy"),
    demand=(StringType, "name of the demand"),
    day=(IntegerType, "1 is the first; some days are left out"),
    quantity=(StringType, "devices, servers or usage"),
    q05=(DoubleType, "5 % of the worlds lie below"),
    q25=(DoubleType, "25 %"),
    q50=(DoubleType, "half"),
    q75=(DoubleType, "75 %"),
    q95=(DoubleType, "95 %"),
)
"""Forecasts as bands: quantiles over the worlds."""

PLACEMENT_DAYS = _table(
    scenario=(StringType, "skew, servers and seed"),
    method=(StringType, "dynamic help, or virtual servers: the existing method"),
    day=(IntegerType, "0 is the first, after the table has found its shape"),
    servers=(IntegerType, "on that day"),
    devices=(DoubleType, "on that day"),
    processing_mean=(DoubleType, "of all servers, at the day's worst moment"),
    processing_max=(DoubleType, "of the busiest server then; above 1 it cannot keep up"),
    imbalance=(DoubleType, "processing, max over mean"),
    memory_mean=(DoubleType, "of all servers"),
    memory_max=(DoubleType, "of the fullest server"),
    memory_imbalance=(DoubleType, "memory, max over mean"),
    servers_over_90=(IntegerType, "with processing or memory above 90 %"),
    servers_over_100=(IntegerType, "above 100 %"),
    moves=(IntegerType, "made that day, all kinds"),
    helps=(IntegerType, "for processing or memory"),
    flips=(IntegerType, "members that went on or off"),
    splits=(IntegerType, "of a section"),
    releases=(IntegerType, "members that left a line"),
    transfers=(IntegerType, "virtual servers handed on or joined; none with dynamic help"),
    copied_efs=(DoubleType, "EFs copied by the day's moves"),
    migrated_eas=(DoubleType, "EAs that had to move to another server; none with dynamic help"),
    lines=(IntegerType, "of the table"),
    members=(IntegerType, "of all lines: the size of the table"),
    members_mean=(DoubleType, "per line"),
    members_max=(IntegerType, "of the longest line"),
    worst_share=(DoubleType, "0: each EF at one server, the best condition; 1: at all, the worst"),
    servers_wanted=(IntegerType, "more servers the planner advises"),
)
"""Placement, one row a day, scenario and method."""

PLACEMENT_WAVES = StructType(
    [
        *PLACEMENT_DAYS.fields,
        StructField("task", IntegerType(), nullable=False),
        StructField("state", BinaryType(), nullable=False),
    ]
)
"""The same with the number of the task and, on its last row, the state from which the next wave goes on."""


TELEMETRY = _sparse(
    at_us=(LongType, "when the load monitor looked, microseconds since 1970"),
    monitor=(StringType, "which monitor"),
    level=(StringType, "server, section or key: what the row is about"),
    server=(StringType, "name of the server"),
    section_start=(StringType, "16 hexadecimal digits"),
    section_last=(StringType, "the last point of the section"),
    key=(StringType, "16 hexadecimal digits"),
    subject=(StringType, "of the key"),
    type=(StringType, "of the key"),
    accumulatable=(BooleanType, "the server takes EAs of the section"),
    processing=(DoubleType, "busy share of the writer"),
    queue_wait_s=(DoubleType, "seconds a registration waits"),
    size_bytes=(LongType, "of the store"),
    capacity_bytes=(LongType, "of the store"),
    rows=(LongType, "EAs and CFs stored"),
    templates=(LongType, "EFs and CAs stored"),
    arrival_per_s=(DoubleType, "registrations"),
)
"""The monitor's samples as they lie in files; load_monitor/recorder.py writes them."""

DAILY_SERVERS = _sparse(
    day=(DateType, "in UTC"),
    server=(StringType, "name"),
    samples=(LongType, "how many it is made from"),
    processing=(DoubleType, "mean busy share"),
    processing_max=(DoubleType, "highest sample"),
    memory=(DoubleType, "mean share of the store's capacity"),
    arrival_per_s=(DoubleType, "mean"),
    rows=(DoubleType, "mean of EAs and CFs stored"),
)
DAILY_SECTIONS = _sparse(
    day=(DateType, "in UTC"),
    server=(StringType, "name"),
    section_start=(StringType, "16 hexadecimal digits"),
    section_last=(StringType, "the last point of the section"),
    samples=(LongType, "how many it is made from"),
    arrival_per_s=(DoubleType, "mean"),
    rows=(DoubleType, "mean of EAs and CFs stored"),
    templates=(DoubleType, "mean of EFs and CAs stored"),
)
DAILY_KEYS = _sparse(
    day=(DateType, "in UTC"),
    key=(StringType, "16 hexadecimal digits"),
    subject=(StringType, ""),
    type=(StringType, ""),
    servers=(LongType, "that were busy with it"),
    arrival_per_s=(DoubleType, "mean, of all servers; only a server's 32 busiest keys are known"),
    share=(DoubleType, "of all arrivals of the day"),
)
GROWTH = _sparse(
    server=(StringType, "name; empty: the whole cluster, in servers"),
    resource=(StringType, "processing or memory"),
    points=(LongType, "whole days the line is drawn through"),
    mean_day=(DoubleType, "middle of the points, days since 1970"),
    mean_load=(DoubleType, "there"),
    last_day=(DoubleType, "the newest point"),
    sxx=(DoubleType, "sum of squares of the days about their mean"),
    sxy=(DoubleType, "of days and loads"),
    syy=(DoubleType, "of loads"),
)
"""A straight line through a load, as sums: slope sxy / sxx."""

ESTIMATES = _sparse(
    application=(StringType, "A or B of table 2"),
    method=(StringType, "existing (a traditional DHT) or proposed"),
    condition=(StringType, "best: keys spread evenly; worst: one key"),
    servers=(IntegerType, "how many"),
    throughput_per_s=(DoubleType, "uTuples registered a second when the servers are always busy"),
    accumulatable=(DoubleType, "uTuples stored when their memory is full"),
    throughput_beyond=(DoubleType, "times the uTuples measured with, on a server; null: not known"),
    accumulatable_beyond=(DoubleType, "the same, with memory full"),
)
"""Figure 8."""

RECORDED_LOAD = _sparse(
    day=(DateType, "in UTC"),
    subject=(StringType, ""),
    type=(StringType, ""),
    eas=(LongType, "recorded that day"),
    devices=(LongType, "different addresses"),
    peak_per_s=(DoubleType, "mean of the busiest hour"),
)
"""A recording as load."""
