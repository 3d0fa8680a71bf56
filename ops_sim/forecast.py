"""The forecast: from samples, or from a recording, to when servers run out and how many to order by which date."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ops_sim import recording, telemetry
from ops_sim.cost import CostModel
from ops_sim.forecast_line import Trend, order, reaches
from ops_sim.policy import Policy
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FULL = 1.0
HOT_KEYS = 10
_DAY_S = 86_400
_STRETCHES_S = (_DAY_S, 3_600, 60, 1)
_STRETCHES_MIN = 8
"""At least so many to draw a line through; else shorter ones are taken."""
_US = 1_000_000
RESOURCES = ("processing", "memory")


@dataclass(frozen=True, slots=True)
class Question:
    policy: Policy
    lead_days: int = 30
    """From the order to the installation."""

    def __post_init__(self) -> None:
        if self.lead_days < 0:
            raise InvalidInput("--lead-days", self.lead_days, "must be at least 0")
        if self.lead_days > self.policy.horizon_days:
            rule = f"must not be longer than the horizon, {self.policy.horizon_days} days: servers "
            rule += "would come after the day they were ordered for"
            raise InvalidInput("--lead-days", self.lead_days, rule)


def from_telemetry(
    spark: SparkSession, files: list[str], question: Question
) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """The answer, and the tables it comes from."""
    rows = telemetry.read(spark, files).persist()
    kept = telemetry.samples(rows).persist()
    found = telemetry.found_in(len(files), rows, kept)
    if not found.rows:
        first = found.broken_files[0] if found.broken_files else "all are empty"
        raise InvalidInput("--telemetry", f"{found.files} files", f"none can be read: {first}")
    tables = {
        "daily_servers": telemetry.daily_servers(kept),
        "daily_sections": telemetry.daily_sections(kept),
        "daily_keys": telemetry.daily_keys(kept),
        "growth": telemetry.growth(kept, stretch_s(found.first_us, found.last_us)),
    }
    trends = _trends(tables["growth"])
    names = sorted({name for name, _ in trends if name})
    newest = max(trend.last_day for trend in trends.values())
    current = [n for n in names if newest - trends[n, "processing"].last_day < 1]
    answer = {
        "telemetry": {
            "files": found.files,
            "broken": found.broken,
            "broken_files": list(found.broken_files),
            "rows": found.rows,
            "repeated_rows": found.repeated_rows,
            "late_rows": found.late_rows,
            "first": _date(found.first_us / _US / _DAY_S),
            "last": _date(found.last_us / _US / _DAY_S),
            "days": (found.last_us - found.first_us) / _US / _DAY_S,
        },
        **_plan(trends, len(current), newest, question),
        "servers": [_server(name, trends, newest) for name in current],
        "hot_keys": hot_keys(tables["daily_keys"]),
    }
    return answer, tables


def stretch_s(first_us: int, last_us: int) -> int:
    """Days if there are enough of them, else hours, minutes, seconds."""
    span_s = (last_us - first_us) / _US
    return next((s for s in _STRETCHES_S if span_s >= _STRETCHES_MIN * s), _STRETCHES_S[-1])


def _trends(growth: DataFrame) -> dict[tuple[str, str], Trend]:
    return {
        (row["server"], row["resource"]): Trend(
            row["points"],
            row["mean_day"],
            row["mean_load"],
            row["last_day"],
            row["sxx"] or 0.0,
            row["sxy"] or 0.0,
            row["syy"] or 0.0,
        )
        for row in growth.collect()  # two rows a server
    }


def _plan(
    trends: dict[tuple[str, str], Trend], servers: int, now: float, question: Question
) -> dict[str, Any]:
    """For the whole cluster: likely, and at the upper and lower edge of the band."""
    cluster = [trends["", resource] for resource in RESOURCES]
    edges = {"likely": [t.at for t in cluster], "early": [t.high for t in cluster]}
    edges["late"] = [t.low for t in cluster]
    orders: dict[str, Any] = {}
    for edge, (busy, full) in edges.items():
        due = order((busy, full), now, servers, question.policy)
        orders[edge] = (
            {
                "servers": due.servers,
                "by": _date(due.by_day),
                "installed": _date(due.by_day + question.lead_days),
                "in_days": due.by_day - now,
            }
            if due is not None
            else None
        )
    ahead = now + question.policy.horizon_days
    return {
        "order": orders,
        "lead_days": question.lead_days,
        "horizon_days": question.policy.horizon_days,
        "demand": {
            resource: {
                "servers": trend.at(now),
                "per_day": trend.per_day,
                "points": trend.points,
                "can_tell": trend.can_tell,
                "ahead": trend.at(ahead),
                "ahead_low": trend.low(ahead),
                "ahead_high": trend.high(ahead),
            }
            for resource, trend in zip(RESOURCES, cluster, strict=True)
        },
        "servers_now": servers,
    }


def _server(name: str, trends: dict[tuple[str, str], Trend], now: float) -> dict[str, Any]:
    said: dict[str, Any] = {"name": name}
    for resource in RESOURCES:
        trend = trends[name, resource]
        said[resource] = {
            "load": trend.at(now),
            "per_day": trend.per_day,
            "full": _date(reaches(trend.at, now, FULL)),
            "full_early": _date(reaches(trend.high, now, FULL)),
            "full_late": _date(reaches(trend.low, now, FULL)),
        }
    return said


def hot_keys(daily_keys: DataFrame) -> list[dict[str, Any]]:
    """Of the newest day."""
    newest = daily_keys.agg(F.max("day").alias("newest"))
    top = (
        daily_keys.join(newest, F.col("day") == F.col("newest"))
        .orderBy(F.desc("arrival_per_s"), "key")
        .limit(HOT_KEYS)
    )
    wanted = ("subject", "type", "key", "servers", "arrival_per_s", "share")
    return [{name: row[name] for name in wanted} for row in top.collect()]


def from_recording(
    spark: SparkSession, path: str, cost: CostModel, devices: float | None, policy: Policy
) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """What this load, or the same of so many devices, asks of servers."""
    table = recording.read(spark, path).persist()
    load = recording.daily_load(table)
    found = recording.found_in(table)
    if not found.rows:
        raise InvalidInput("--recording", path, f"has no row with a time; {found.bad_rows} without")
    scale = devices / found.devices if devices is not None else 1.0
    per_day = found.rows / found.days * scale
    peak = found.peak_per_s * scale
    processing = peak * cost.ea_s
    stored = per_day * recording.LIFETIME_DAYS
    memory = stored * cost.ea_bytes / cost.memory_bytes
    needed = max(1, math.ceil(max(processing, memory) / policy.size_below - 1e-9))
    totals = load.groupBy("subject", "type").agg(
        F.sum("eas").alias("eas"), F.max("devices").alias("devices")
    )
    top = totals.orderBy(F.desc("eas"), "subject", "type").limit(HOT_KEYS).collect()
    answer = {
        "recording": {
            "file": path,
            "rows": found.rows,
            "bad_rows": found.bad_rows,
            "devices": found.devices,
            "keys": found.keys,
            "days": found.days,
            "first": found.first,
            "last": found.last,
        },
        "devices": devices if devices is not None else found.devices,
        "eas_a_day": per_day,
        "eas_per_s_peak": peak,
        "peak_over_mean": peak / (per_day / _DAY_S),
        "processing_servers": processing,
        "memory_servers": memory,
        "servers_needed": needed,
        "cost": cost.name,
        "lifetime_days": recording.LIFETIME_DAYS,
        "size_below": policy.size_below,
        "hot_keys": [{**row.asDict(), "share": row["eas"] / found.rows} for row in top],
    }
    return answer, {"recorded_load": load}


def _date(day: float | None) -> str | None:
    if day is None:
        return None
    return datetime.fromtimestamp(day * _DAY_S, UTC).date().isoformat()
