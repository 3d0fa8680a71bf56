"""From samples to daily tables and a forecast, with broken, repeated and late files."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from load_monitor.recorder import write_file
from load_monitor.telemetry import Row
from ops_sim import schema
from ops_sim.forecast import samples as telemetry
from ops_sim.forecast.order import Question
from ops_sim.operation.policy import Policy
from utuple.errors import InvalidInput

DAY_US = 86_400_000_000
FIRST = 20_000
"""2024-10-04, as a day since 1970."""


def sample(day: float, server: str, processing: float, size_bytes: int = 100) -> Row:
    at_us = int((FIRST + day) * DAY_US)
    return Row(
        at_us,
        "monitor-1",
        "server",
        server,
        processing=processing,
        size_bytes=size_bytes,
        capacity_bytes=1_000,
        rows=8,
        arrival_per_s=4.0,
    )


def key_of_day(day: float, server: str, rate: float) -> Row:
    at_us = int((FIRST + day) * DAY_US)
    return Row(
        at_us,
        "monitor-1",
        "key",
        server,
        key="0" * 16,
        subject="bus",
        type="speed",
        arrival_per_s=rate,
    )


def test_a_folder_without_samples_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no Parquet file"):
        telemetry.files_in(str(tmp_path))
    with pytest.raises(InvalidInput, match="no folder"):
        telemetry.files_in(str(tmp_path / "nowhere"))
    (tmp_path / ".a.parquet.part").touch()
    (tmp_path / "_b.parquet").touch()
    with pytest.raises(InvalidInput, match="no Parquet file"):
        telemetry.files_in(str(tmp_path))


def test_days_are_made_of_samples_by_server_and_key(spark: SparkSession) -> None:
    rows = [
        sample(0.1, "a", 0.2),
        sample(0.2, "a", 0.4, size_bytes=300),
        key_of_day(0.1, "a", 3.0),  # and not named in the second sample
    ]
    table = spark.createDataFrame(rows, schema.TELEMETRY)
    day = date(2024, 10, 4)
    assertDataFrameEqual(
        telemetry.daily_servers(table),
        spark.createDataFrame([(day, "a", 2, 0.3, 0.4, 0.2, 4.0, 8.0)], schema.DAILY_SERVERS),
    )
    both = telemetry.daily_servers(
        spark.createDataFrame([*rows, sample(0.1, "b", 0.5)], schema.TELEMETRY)
    )
    (cluster,) = telemetry.daily_cluster(both)
    assert cluster == {
        "day": "2024-10-04",
        "processing": pytest.approx(0.8),
        "memory": pytest.approx(0.3),
    }
    assertDataFrameEqual(
        telemetry.daily_keys(table),
        spark.createDataFrame([(day, "0" * 16, "bus", "speed", 1, 1.5, 0.375)], schema.DAILY_KEYS),
    )


def test_growth_is_that_of_each_server_and_of_all_together(spark: SparkSession) -> None:
    rows = [sample(day + 0.5, name, 0.1 * day) for day in range(-1, 3) for name in "ab"]
    rows[:2] = [sample(-0.5, name, 9.0) for name in "ab"]  # left over: a day is not whole
    table = spark.createDataFrame(rows, schema.TELEMETRY)
    found = {
        (row["server"], row["resource"]): (row["points"], row["mean_load"], row["sxy"])
        for row in telemetry.growth(table, rows[0].at_us, rows[-1].at_us).collect()
    }
    assert found["a", "processing"] == (3, pytest.approx(0.1), pytest.approx(0.2))
    assert found["", "processing"] == (3, pytest.approx(0.2), pytest.approx(0.4))
    assert found["b", "memory"] == (3, pytest.approx(0.1), pytest.approx(0.0))


def test_day_and_night_are_not_growth(spark: SparkSession, tmp_path: Path) -> None:
    """A load that is the same every day, seen from a morning to an evening: a line through its hours would rise."""
    hours = range(6, 4 * 24 - 4)
    rows = [sample(hour / 24, "a", 0.5 - 0.4 * math.cos(math.tau * hour / 24)) for hour in hours]
    write_file(tmp_path / "day=2024-10-04", "x.parquet", rows)
    answer, _ = telemetry.forecast(spark, telemetry.files_in(str(tmp_path)), Question(Policy()))
    assert answer["demand"]["processing"]["points"] == 3
    assert answer["demand"]["processing"]["per_day"] == pytest.approx(0.0, abs=1e-9)
    assert answer["answer"].startswith("Nothing to order")


def test_broken_repeated_and_late_files_are_counted_and_the_rest_is_planned_from(
    spark: SparkSession, tmp_path: Path
) -> None:
    for day in range(12):
        rows = [sample(day + 0.5, name, 0.3 + 0.02 * day + 0.001 * (day % 2)) for name in "ab"]
        rows.append(key_of_day(day + 0.5, "a", 3.0))
        write_file(tmp_path / f"day=2024-10-{4 + day:02d}", "x.parquet", rows)
    folder = tmp_path / "day=2024-10-04"
    (folder / "copy.parquet").write_bytes((folder / "x.parquet").read_bytes())
    (folder / "cut.parquet").write_bytes((folder / "x.parquet").read_bytes()[:-40])
    write_file(tmp_path / "day=2024-10-20", "late.parquet", [sample(0.6, "a", 0.3)])
    answer, _ = telemetry.forecast(spark, telemetry.files_in(str(tmp_path)), Question(Policy()))
    read = answer["telemetry"]
    assert (read["files"], read["broken"], read["repeated_rows"], read["late_rows"]) == (
        15,
        1,
        3,
        1,
    )
    assert "cut.parquet" in read["broken_files"][0]
    assert answer["servers_now"] == 2
    # 0.52 on the last day, 0.02 a day more: full 24 days later, and the order is overdue.
    assert answer["servers"][0]["processing"]["full"] == "2024-11-08"
    assert answer["order"]["likely"]["in_days"] == 0.0
    assert answer["order"]["likely"]["servers"] >= 2
    early, late = (answer["servers"][0]["processing"][f"full_{edge}"] for edge in ("early", "late"))
    assert early <= "2024-11-08" <= late
    assert answer["hot_keys"][0]["subject"] == "bus"
