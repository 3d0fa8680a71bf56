"""From a recording to the servers it asks for.

A recording is any table of address, time, lat, lon, subject and type, as CSV (also gzipped) or Parquet.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ops_sim import schema
from ops_sim.cost.model import CostModel
from ops_sim.forecast.samples import HOT_KEYS
from ops_sim.forecast.sizing import Found, answer
from ops_sim.operation.policy import Policy
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

COLUMNS = ("address", "time", "lat", "lon", "subject", "type")
_HOUR_S = 3_600.0


def check(path: str) -> None:
    """Refuses a file that is not there, cannot be read or lacks a column, before any job starts."""
    if not Path(path).is_file():
        raise InvalidInput("--recording", path, "is no file")
    columns = _columns(path)
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        has = ", ".join(columns) or "nothing"
        rule = f"lacks the column {', '.join(missing)}; it has {has}"
        raise InvalidInput("--recording", path, rule)


def _columns(path: str) -> list[str]:
    if path.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(path).names)
        except (OSError, pa.ArrowException) as error:
            rule = f"is no Parquet file that can be read: {str(error).splitlines()[0]}"
            raise InvalidInput("--recording", path, rule) from None
    if not path.endswith((".csv", ".csv.gz")):
        raise InvalidInput("--recording", path, "must end in .csv, .csv.gz or .parquet")
    try:
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
            return next(csv.reader(file), [])
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput("--recording", path, f"cannot be read: {error}") from None


def read(spark: SparkSession, path: str) -> DataFrame:
    """Columns address, subject, type, and `at`, a timestamp; null where the text is none."""
    is_parquet = path.endswith(".parquet")
    table = spark.read.parquet(path) if is_parquet else spark.read.csv(path, header=True)
    at = F.try_to_timestamp(F.col("time").cast("string"))
    return table.select("address", "subject", "type", at.alias("at"))


def _good(table: DataFrame) -> DataFrame:
    return table.dropna().withColumn("day", F.to_date("at"))


def daily_load(table: DataFrame) -> DataFrame:
    """Rows of `schema.RECORDED_LOAD`."""
    hours = (
        _good(table)
        .groupBy("day", "subject", "type", F.date_trunc("hour", "at").alias("hour"))
        .agg(F.count("*").alias("eas"), F.collect_set("address").alias("addresses"))
    )
    return (
        hours.groupBy("day", "subject", "type")
        .agg(
            F.sum("eas").alias("eas"),
            F.size(F.array_distinct(F.flatten(F.collect_list("addresses"))))
            .cast("long")
            .alias("devices"),
            (F.max("eas") / _HOUR_S).alias("peak_per_s"),
        )
        .select(*schema.RECORDED_LOAD.names)
    )


def found_in(table: DataFrame) -> Found:
    good = _good(table).withColumn("hour", F.date_trunc("hour", "at"))
    all_rows = table.count()
    said = good.agg(
        F.count("*").alias("rows"),
        F.count_distinct("address").alias("devices"),
        F.count_distinct("subject", "type").alias("keys"),
        F.date_trunc("second", F.min("at")).cast("string").alias("first"),
        F.date_trunc("second", F.max("at")).cast("string").alias("last"),
        (F.timestamp_diff("HOUR", F.min("hour"), F.max("hour")) + 1).alias("span"),
    ).first()
    assert said is not None
    hours, days = (_most(good, width) for width in ("hour", "day"))
    return Found(
        rows=said["rows"],
        bad_rows=all_rows - said["rows"],
        keys=said["keys"],
        devices_ever=said["devices"],
        devices_day=days["devices"] or 0,
        devices_hour=hours["devices_mean"] or 0.0,
        days=days["count"],
        hours=hours["count"],
        hours_span=said["span"] or 0,
        peak_per_s=(hours["eas"] or 0) / _HOUR_S,
        first=said["first"] or "",
        last=said["last"] or "",
    )


def _most(good: DataFrame, width: str) -> Row:
    """Counts the hours (or days) that have rows: how many there are, the rows of the busiest, and the devices."""
    each = good.groupBy(width).agg(
        F.count("*").alias("eas"), F.count_distinct("address").alias("devices")
    )
    found = each.agg(
        F.count("*").alias("count"),
        F.max("eas").alias("eas"),
        F.max("devices").alias("devices"),
        F.avg("devices").alias("devices_mean"),
    ).first()
    assert found is not None
    return found


def load_of(
    spark: SparkSession, path: str, cost: CostModel, devices: float | None, policy: Policy
) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """What this load, or the same of so many devices, asks of servers; and the table it comes from."""
    table = read(spark, path).persist()
    load = daily_load(table)
    found = found_in(table)
    if not found.rows:
        raise InvalidInput("--recording", path, f"has no row with a time; {found.bad_rows} without")
    totals = load.groupBy("subject", "type").agg(
        F.sum("eas").alias("eas"), F.max("devices").alias("devices")
    )
    top = totals.orderBy(F.desc("eas"), "subject", "type").limit(HOT_KEYS).collect()
    said = answer(found, cost, devices, policy)
    answered = {
        **said,
        "recording": {"file": path, **said["recording"]},
        "hot_keys": [{**row.asDict(), "share": row["eas"] / found.rows} for row in top],
    }
    return answered, {"recorded_load": load}
