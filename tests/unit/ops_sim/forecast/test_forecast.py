"""From samples and recordings to a forecast: lines with bands, tables by day, broken input."""

from __future__ import annotations

import gzip
import math
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from load_monitor.recorder import write_file
from load_monitor.telemetry import Row
from ops_sim import schema
from ops_sim.cost.model import PAPER
from ops_sim.forecast import recording
from ops_sim.forecast import samples as telemetry
from ops_sim.forecast.order import Question
from ops_sim.forecast.trend import Order, Trend, order, reaches
from ops_sim.operation.policy import Policy
from ops_sim.report.forecast import recording_report
from utuple.errors import InvalidInput

spark_only = pytest.mark.xdist_group("spark")
DAY_US = 86_400_000_000
FIRST = 20_000
"""2024-10-04, as a day since 1970."""


# --------------------------------------------------------------------------------------------------- lines


def trend_of(points: list[tuple[float, float]]) -> Trend:
    count = len(points)
    mean_x, mean_y = (sum(values) / count for values in zip(*points, strict=True))
    return Trend(
        count,
        mean_x,
        mean_y,
        max(x for x, _ in points),
        sum((x - mean_x) ** 2 for x, _ in points),
        sum((x - mean_x) * (y - mean_y) for x, y in points),
        sum((y - mean_y) ** 2 for _, y in points),
    )


@given(st.floats(0.0, 2.0), st.floats(0.0, 0.1), st.integers(3, 40))
def test_a_line_is_found_again_and_has_no_band(level: float, slope: float, days: int) -> None:
    trend = trend_of([(float(day), level + slope * day) for day in range(days)])
    assert trend.per_day == pytest.approx(slope, abs=1e-9)
    assert trend.at(100.0) == pytest.approx(level + slope * 100, abs=1e-6)
    assert trend.half_band(100.0) == pytest.approx(0.0, abs=1e-4)


def test_a_band_is_wider_the_further_ahead_and_the_fewer_the_points() -> None:
    noisy = [(float(day), 0.3 + 0.01 * day + 0.02 * (-1) ** day) for day in range(20)]
    many, few = trend_of(noisy), trend_of(noisy[:5])
    assert many.low(30) < many.at(30) < many.high(30)
    assert many.half_band(90) > many.half_band(30)
    assert few.half_band(30) > many.half_band(30)


def test_two_points_tell_no_growth() -> None:
    trend = trend_of([(0.0, 0.1), (1.0, 0.9)])
    assert not trend.can_tell
    assert trend.at(50) == pytest.approx(0.5)


def test_the_day_a_limit_is_passed_is_the_first_and_never_is_none() -> None:
    assert reaches(lambda day: day / 10, 3.0, 0.9) == 10.0
    assert reaches(lambda _: 0.5, 0.0, 0.9) is None


def test_section_4_2_the_order_is_due_when_the_horizon_is_above_90_and_sized_for_70() -> None:
    """Twenty servers, demand from 5 servers on, one more every ten days: on day 71 it is above 18, 90 % of
    them, 60 days ahead; that is then 18.1 servers' work, and 26 bear it below 70 %."""
    policy = Policy()

    def busy(day: float) -> float:
        return 5 + day / 10

    def full(_: float) -> float:
        return 1.0

    assert order((busy, full), 0.0, 20, policy) == Order(6, 71.0)
    assert order((full, full), 0.0, 20, policy) is None


@pytest.mark.parametrize("lead_days", [-1, 61])
def test_a_lead_time_longer_than_the_horizon_is_refused(lead_days: int) -> None:
    with pytest.raises(InvalidInput, match="lead-days"):
        Question(Policy(), lead_days)


# ------------------------------------------------------------------------------------------------ samples


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


@spark_only
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


@spark_only
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


@spark_only
def test_day_and_night_are_not_growth(spark: SparkSession, tmp_path: Path) -> None:
    """A load that is the same every day, seen from a morning to an evening: a line through its hours would rise."""
    hours = range(6, 4 * 24 - 4)
    rows = [sample(hour / 24, "a", 0.5 - 0.4 * math.cos(math.tau * hour / 24)) for hour in hours]
    write_file(tmp_path / "day=2024-10-04", "x.parquet", rows)
    answer, _ = telemetry.forecast(spark, telemetry.files_in(str(tmp_path)), Question(Policy()))
    assert answer["demand"]["processing"]["points"] == 3
    assert answer["demand"]["processing"]["per_day"] == pytest.approx(0.0, abs=1e-9)
    assert answer["answer"].startswith("Nothing to order")


@spark_only
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


# ---------------------------------------------------------------------------------------------- recordings

HEADER = "address,time,lat,lon,subject,type,value"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "address,when,lat,lon,subject,type\n", "lacks the column time"),
        ("a.csv", "", "lacks the column address"),
        ("a.txt", HEADER, "must end in"),
        ("a.csv.gz", "not gzipped", "cannot be read"),
        ("a.parquet", "not parquet", "no Parquet file"),
    ],
)
def test_a_recording_with_wrong_columns_is_refused_before_anything_starts(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=said):
        recording.check(str(tmp_path / name))
    with pytest.raises(InvalidInput, match="is no file"):
        recording.check(str(tmp_path / "nowhere.csv"))


@spark_only
def test_a_recording_is_a_load(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        HEADER,
        "b1,2024-10-04T08:00:00Z,1,2,bus,speed,3",
        "b2,2024-10-04T08:30:00Z,,,bus,speed,3",
        "b1,2024-10-04T09:00:00Z,1,2,bus,speed,3",
        "b1,yesterday,1,2,bus,speed,3",
    ]
    path = tmp_path / "buses.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    expected = [(date(2024, 10, 4), "bus", "speed", 3, 2, 2 / 3600)]
    assertDataFrameEqual(
        recording.daily_load(recording.read(spark, str(path))),
        spark.createDataFrame(expected, schema.RECORDED_LOAD),
    )
    answer, _ = recording.load_of(spark, str(path), PAPER, 2e6, Policy())
    assert answer["recording"]["bad_rows"] == 1
    assert answer["peak_over_mean"] == pytest.approx(2 / 1.5)


@spark_only
def test_hours_without_a_row_were_not_recorded_and_devices_are_those_of_a_day(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two days with a month between them: 30 hours of two rows each but one of eight, by other devices each day."""
    times = [("a", 4, hour) for hour in range(24)] + [("b", 34, hour) for hour in range(6)]
    rows = [(f"{fleet}{n}", day, hour) for fleet, day, hour in times for n in (1, 2)]
    rows += [(f"a{n}", 4, 8) for n in range(3, 9)]
    lines = [
        f"{address},{date(2024, 10, 1) + timedelta(days=day)}T{hour:02d}:00:00Z,,,bus,speed,3"
        for address, day, hour in rows
    ]
    path = tmp_path / "buses.csv"
    path.write_text("\n".join([HEADER, *lines]))
    answer, _ = recording.load_of(spark, str(path), PAPER, 8e6, Policy())
    read = answer["recording"]
    assert (read["days"], read["hours"], read["hours_span"]) == (2, 30, 30 * 24 + 6)
    assert (read["devices_ever"], read["devices_day"]) == (10, 8)
    assert read["devices_hour"] == pytest.approx(66 / 30)
    assert answer["peak_over_mean"] == pytest.approx(8 / (66 / 30))
    assert answer["scaled_by"] == 1e6
    assert answer["eas_a_day"] == pytest.approx(66 / 30 * 24 * 1e6)
    assert answer["servers_needed"] == math.ceil(8e6 / 3600 * PAPER.ea_s / 0.7)
    report = recording_report(answer)
    assumed = {one.name: one.value for one in report.assumptions}
    assert assumed["lifetime"] == "7 days"
    assert "70%" in str(assumed["rule"])
    assert assumed["hours without a row"] == "696 of 726"
    said = "8 devices were seen on the day with the most of them, 2 in an average hour, 10 ever"
    assert f"{said}; scaled by 1,000,000, from those of a day to 8,000,000" in report.reason
