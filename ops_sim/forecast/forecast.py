"""The forecast: from samples, or from a recording, to when servers run out and how many to order by which date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ops_sim.cost.model import CostModel
from ops_sim.forecast import order as forecast_answer
from ops_sim.forecast import recording
from ops_sim.forecast import samples as telemetry
from ops_sim.forecast import sizing as recording_answer
from ops_sim.forecast.order import Question, date_of
from ops_sim.forecast.trend import Trend
from ops_sim.operation.policy import Policy
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOT_KEYS = 10
_DAY_S = 86_400
_US = 1_000_000


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
        "growth": telemetry.growth(kept, found.first_us, found.last_us),
    }
    trends = _trends(tables["growth"])
    span_days = (found.last_us - found.first_us) / _US / _DAY_S
    answer = {
        "telemetry": {
            "files": found.files,
            "broken": found.broken,
            "broken_files": list(found.broken_files),
            "rows": found.rows,
            "repeated_rows": found.repeated_rows,
            "late_rows": found.late_rows,
            "first": date_of(found.first_us / _US / _DAY_S),
            "last": date_of(found.last_us / _US / _DAY_S),
            "days": span_days,
        },
        **forecast_answer.answer(trends, span_days, question),
        "hot_keys": hot_keys(tables["daily_keys"]),
    }
    return answer, tables


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
    totals = load.groupBy("subject", "type").agg(
        F.sum("eas").alias("eas"), F.max("devices").alias("devices")
    )
    top = totals.orderBy(F.desc("eas"), "subject", "type").limit(HOT_KEYS).collect()
    said = recording_answer.answer(found, cost, devices, policy)
    answer = {
        **said,
        "recording": {"file": path, **said["recording"]},
        "hot_keys": [{**row.asDict(), "share": row["eas"] / found.rows} for row in top],
    }
    return answer, {"recorded_load": load}
