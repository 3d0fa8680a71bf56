"""From a recording to the load it is."""

from __future__ import annotations

import gzip
import math
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from ops_sim import schema
from ops_sim.cost.model import PAPER
from ops_sim.forecast import recording
from ops_sim.operation.policy import Policy
from ops_sim.report.forecast import recording_report
from utuple.errors import InvalidInput

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
