"""A recording as load: any table of address, time, lat, lon, subject and type, as CSV (also gzipped) or Parquet."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ops_sim import schema
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("address", "time", "lat", "lon", "subject", "type")
LIFETIME_DAYS = 7
"""Of an EA, as in section 4.2."""
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Found:
    rows: int
    bad_rows: int
    """Without a time, an address, a subject or a type: not counted as load."""
    devices: int
    keys: int
    days: int
    """With at least one row."""
    peak_per_s: float
    """Of the busiest hour."""
    first: str
    last: str


def check(path: str) -> None:
    """Before any job starts: is it there, can it be read, and has it the columns?"""
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
    check(path)
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
    good = _good(table)
    all_rows = table.count()
    said = good.agg(
        F.count("*").alias("rows"),
        F.count_distinct("address").alias("devices"),
        F.count_distinct("subject", "type").alias("keys"),
        F.count_distinct("day").alias("days"),
        F.min("at").cast("string").alias("first"),
        F.max("at").cast("string").alias("last"),
    ).first()
    hours = good.groupBy(F.date_trunc("hour", "at")).count()
    busiest = hours.agg(F.max("count").alias("eas")).first()
    assert said is not None and busiest is not None
    return Found(
        said["rows"],
        all_rows - said["rows"],
        said["devices"],
        said["keys"],
        said["days"],
        (busiest["eas"] or 0) / _HOUR_S,
        said["first"] or "",
        said["last"] or "",
    )
