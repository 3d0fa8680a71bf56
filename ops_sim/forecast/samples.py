"""From the load monitor's samples to a forecast: read whatever is whole, once, and say what was not.

A file that cannot be read, or lacks a column, is named, counted and skipped. Rows that are there twice (a file
copied, a batch written again after a failure) count once; rows in the folder of another day count on their own day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from ops_sim import schema
from ops_sim.forecast.order import Question, answer, date_of
from ops_sim.forecast.trend import Trend
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

_SAME = ("at_us", "monitor", "level", "server", "section_start", "key")
HOT_KEYS = 10
_FILES_PER_TASK = 32
_BROKEN_NAMED = 20
_DAY_US = 86_400_000_000
READ = StructType(
    [
        *schema.TELEMETRY.fields,
        StructField("file", StringType()),
        StructField("problem", StringType()),
    ]
)


def files_in(folder: str) -> list[str]:
    """The files to read. An empty folder is refused here, before any job starts."""
    place = Path(folder)
    if not place.is_dir():
        raise InvalidInput(
            "--telemetry", folder, "is no folder; `utuple up --telemetry DIR` makes one"
        )
    found = sorted(str(path) for path in place.rglob("*.parquet") if not _is_hidden(path, place))
    if not found:
        rule = (
            "holds no Parquet file yet: the monitor writes one after ten samples, and when it stops"
        )
        raise InvalidInput("--telemetry", folder, rule)
    return found


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def read(spark: SparkSession, files: list[str]) -> DataFrame:
    """Every row of every whole file; a row with `problem` for each that is not."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read(files[number])

    tasks = max(1, min(len(files), max(2, len(files) // _FILES_PER_TASK)))
    return spark.range(0, len(files), 1, tasks).mapInArrow(run, READ)


def _read(path: str) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(READ)
    names = schema.TELEMETRY.names
    try:
        table = pq.ParquetFile(path).read()
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise pa.ArrowInvalid(f"lacks the column {missing[0]}")
        columns = [table.column(name).cast(wanted.field(name).type) for name in names]
        nothing = pa.nulls(len(table), pa.string())
        columns += [pa.array([path] * len(table), pa.string()), nothing]
        whole = pa.Table.from_arrays(columns, schema=wanted)
    except (OSError, pa.ArrowException) as error:
        said = str(error).splitlines()[0][:200]
        row = {name: [None] for name in names} | {"file": [path], "problem": [said]}
        whole = pa.table(row, schema=wanted)
    yield from whole.to_batches()


def samples(rows: DataFrame) -> DataFrame:
    """Rows of `schema.TELEMETRY`, each once."""
    return (
        rows.where(F.col("problem").isNull())
        .dropDuplicates(list(_SAME))
        .select(*schema.TELEMETRY.names)
    )


def found_in(rows: DataFrame, kept: DataFrame) -> tuple[dict[str, Any], int, int]:
    """What there was to read, and the times of the first and the last sample."""
    whole = rows.where(F.col("problem").isNull())
    folder = F.regexp_extract("file", r"day=(\d{4}-\d{2}-\d{2})", 1)
    is_late = (folder != "") & (folder != day_of("at_us").cast("string"))
    counted = whole.agg(F.count("*").alias("rows"), F.count_if(is_late).alias("late")).first()
    once = kept.agg(
        F.count("*").alias("rows"), F.min("at_us").alias("first"), F.max("at_us").alias("last")
    ).first()
    broken = rows.where(F.col("problem").isNotNull()).select("file", "problem").orderBy("file")
    named = broken.limit(_BROKEN_NAMED).collect()
    assert counted is not None and once is not None
    found = {
        "broken": broken.count(),
        "broken_files": [f"{row['file']}: {row['problem']}" for row in named],
        "rows": counted["rows"],
        "repeated_rows": counted["rows"] - once["rows"],
        "late_rows": counted["late"],
    }
    return found, once["first"] or 0, once["last"] or 0


# --------------------------------------------------------------------------------------------- by day


def day_of(column: str) -> Column:
    return F.to_date(F.timestamp_micros(F.col(column)))


def _daily(kept: DataFrame, level: str, by: Sequence[str], **columns: Column) -> DataFrame:
    """The samples of one level, summed up by day and by these columns."""
    rows = kept.where(F.col("level") == level).withColumn("day", day_of("at_us"))
    named = (column.alias(name) for name, column in columns.items())
    return rows.groupBy("day", *by).agg(F.count("*").alias("samples"), *named)


def daily_servers(kept: DataFrame) -> DataFrame:
    """Rows of `schema.DAILY_SERVERS`."""
    found = _daily(
        kept,
        "server",
        ["server"],
        processing=F.avg("processing"),
        processing_max=F.max("processing"),
        memory=F.avg(F.col("size_bytes") / F.col("capacity_bytes")),
        arrival_per_s=F.avg("arrival_per_s"),
        rows=F.avg("rows"),
    )
    return found.select(*schema.DAILY_SERVERS.names)


def daily_cluster(daily: DataFrame) -> list[dict[str, Any]]:
    """From `schema.DAILY_SERVERS`: a row a day, what all servers carried together, in servers."""
    totals = daily.groupBy(F.col("day").cast("string").alias("day")).agg(
        F.sum("processing").alias("processing"), F.sum("memory").alias("memory")
    )
    return [row.asDict() for row in totals.orderBy("day").collect()]


def daily_sections(kept: DataFrame) -> DataFrame:
    """Rows of `schema.DAILY_SECTIONS`."""
    means = {name: F.avg(name) for name in ("arrival_per_s", "rows", "templates")}
    found = _daily(kept, "section", ["server", "section_start", "section_last"], **means)
    return found.select(*schema.DAILY_SECTIONS.names)


def daily_keys(kept: DataFrame) -> DataFrame:
    """Rows of `schema.DAILY_KEYS`. A sample in which a server does not name a key counts as none of it."""
    servers = _daily(kept, "server", ["server"], all_per_s=F.avg("arrival_per_s"))
    looks = servers.withColumnRenamed("samples", "looks")
    total = looks.groupBy("day").agg(F.sum("all_per_s").alias("total_per_s"))
    by = ["server", "key", "subject", "type"]
    return (
        _daily(kept, "key", by, sum_per_s=F.sum("arrival_per_s"))
        .join(looks, ["day", "server"])
        .groupBy("day", "key", "subject", "type")
        .agg(
            F.count_distinct("server").alias("servers"),
            F.sum(F.col("sum_per_s") / F.col("looks")).alias("arrival_per_s"),
        )
        .join(total, "day")
        .withColumn("share", F.col("arrival_per_s") / F.nullif(F.col("total_per_s"), F.lit(0.0)))
        .select(*schema.DAILY_KEYS.names)
    )


# -------------------------------------------------------------------------------------------- growth


def growth(kept: DataFrame, first_us: int, last_us: int) -> DataFrame:
    """Rows of `schema.GROWTH`: of each server, and of the cluster (all servers added up), through means of whole days,
    counted back from the last sample. An hour more of the night or of the day would tilt the line, so that what is left
    over of the first day is left out."""
    age = F.floor((F.lit(last_us) - F.col("at_us")) / _DAY_US)
    whole = max(1, (last_us - first_us) // _DAY_US)
    memory = F.avg(F.col("size_bytes") / F.col("capacity_bytes")).alias("memory")
    days = (
        kept.where((F.col("level") == "server") & (age < whole))
        .groupBy("server", age.alias("age"))
        .agg(F.avg("processing").alias("processing"), memory, F.avg("at_us").alias("at_us"))
        .withColumn("x", F.col("at_us") / _DAY_US)
        .unpivot(["server", "age", "x"], ["processing", "memory"], "resource", "y")
    )
    cluster = days.groupBy("age", "resource").agg(F.avg("x").alias("x"), F.sum("y").alias("y"))
    everything = days.unionByName(cluster.withColumn("server", F.lit("")))
    return (
        everything.groupBy("server", "resource")
        .agg(
            F.count("y").alias("points"),
            F.avg("x").alias("mean_day"),
            F.avg("y").alias("mean_load"),
            F.max("x").alias("last_day"),
            F.regr_sxx("y", "x").alias("sxx"),
            F.regr_sxy("y", "x").alias("sxy"),
            F.regr_syy("y", "x").alias("syy"),
        )
        .select(*schema.GROWTH.names)
    )


# -------------------------------------------------------------------------------------------- answer


def forecast(
    spark: SparkSession, files: list[str], question: Question
) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """The answer, and the tables it comes from."""
    rows = read(spark, files).persist()
    kept = samples(rows).persist()
    found, first_us, last_us = found_in(rows, kept)
    if not found["rows"]:
        first = found["broken_files"][0] if found["broken_files"] else "all are empty"
        raise InvalidInput("--telemetry", f"{len(files)} files", f"none can be read: {first}")
    tables = {
        "daily_servers": daily_servers(kept),
        "daily_sections": daily_sections(kept),
        "daily_keys": daily_keys(kept),
        "growth": growth(kept, first_us, last_us),
    }
    span_days = (last_us - first_us) / _DAY_US
    answered = {
        "telemetry": {
            "files": len(files),
            **found,
            "first": date_of(first_us / _DAY_US),
            "last": date_of(last_us / _DAY_US),
            "days": span_days,
        },
        **answer(_trends(tables["growth"]), span_days, question),
        "hot_keys": hot_keys(tables["daily_keys"]),
    }
    return answered, tables


def _trends(growth: DataFrame) -> dict[tuple[str, str], Trend]:
    return {
        (row["server"], row["resource"]): Trend(
            *(row[name] for name in ("points", "mean_day", "mean_load", "last_day")),
            *(row[name] or 0.0 for name in ("sxx", "sxy", "syy")),
        )
        for row in growth.collect()  # two rows a server
    }


def hot_keys(daily_keys: DataFrame) -> list[dict[str, Any]]:
    """The hottest keys of the newest day."""
    newest = daily_keys.agg(F.max("day").alias("newest"))
    top = (
        daily_keys.join(newest, F.col("day") == F.col("newest"))
        .orderBy(F.desc("arrival_per_s"), "key")
        .limit(HOT_KEYS)
    )
    wanted = ("subject", "type", "key", "servers", "arrival_per_s", "share")
    return [{name: row[name] for name in wanted} for row in top.collect()]
