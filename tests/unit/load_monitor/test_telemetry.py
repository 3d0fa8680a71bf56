"""What the monitor keeps of what it sees: rows, their way to the disk, and a disk that says no."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from load_monitor.config import Config
from load_monitor.observing import FamilyReport, Report, SectionReport
from load_monitor.poller import Poller
from load_monitor.recorder import Recorder, TelemetryUnavailable, check_telemetry, write_file
from load_monitor.telemetry import Row, TelemetryBuffer, TelemetryConfig, by_day, rows_of
from load_monitor.window import Sample
from tests.unit.load_monitor.test_poller import TwinCluster
from utuple.cluster.line import Line, Member
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.section import Section

AT_US = 1_763_287_200_000_000
DAY_US = 86_400_000_000
WHOLE = Section(0, HASH_SPACE)
REPORT = Report(
    Sample("server-1", 0.5, 0.25, 700, 1_000, {WHOLE: 40.0}),
    (Line(WHOLE, 3, (Member("server-2"), Member("server-1", accumulatable=False))),),
    (SectionReport(WHOLE, 9, 2),),
    families=(FamilyReport("bus", "speed", 30.0, 1),),
)


def some_rows(count: int, at_us: int = AT_US) -> list[Row]:
    return [Row(at_us + number, "monitor-1", "server", "a") for number in range(count)]


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_sample_is_a_row_for_the_server_its_section_and_its_busiest_families() -> None:
    server, section, family = rows_of("monitor-1", [REPORT], AT_US)
    assert (server.level, server.server, server.processing, server.queue_wait_s) == (
        "server",
        "server-1",
        0.5,
        0.25,
    )
    assert (server.size_bytes, server.capacity_bytes, server.rows) == (700, 1_000, 9)
    assert (server.templates, server.arrival_per_s) == (2, 40.0)
    assert (section.section_start, section.section_last) == ("0" * 16, "f" * 16)
    assert (section.accumulatable, section.rows, section.arrival_per_s) == (False, 9, 40.0)
    assert family.key == f"{key_of('bus', 'speed'):016x}"
    assert (family.subject, family.type, family.arrival_per_s) == ("bus", "speed", 30.0)
    assert family.section_start == "0" * 16


def test_samples_are_taken_at_their_times_and_rolled_by_number() -> None:
    buffer = TelemetryBuffer(TelemetryConfig("x", sample_s=60.0, roll_samples=2))
    assert buffer.wants_sample(5.0)
    buffer.add(some_rows(3), 5.0)
    assert not buffer.wants_sample(64.9) and buffer.next_batch() == []
    buffer.add(some_rows(3), 65.0)
    assert len(buffer.next_batch()) == 6
    buffer.add(some_rows(3), 125.0)
    assert buffer.next_batch(ends=True) == [], "one batch at a time"
    buffer.wrote()
    assert buffer.written == 6
    assert len(buffer.next_batch(ends=True)) == 3


def test_many_rows_are_rolled_early_and_a_file_holds_no_more_than_its_limit() -> None:
    buffer = TelemetryBuffer(TelemetryConfig("x", roll_rows=4, wait_rows=100))
    buffer.add(some_rows(9), 0.0)
    assert len(buffer.next_batch()) == 4


def test_what_could_not_be_written_waits_in_order_and_the_oldest_is_dropped_and_counted() -> None:
    buffer = TelemetryBuffer(TelemetryConfig("x", roll_samples=1, roll_rows=5, wait_rows=5))
    buffer.add(some_rows(4), 0.0)
    batch = buffer.next_batch()
    buffer.failed()
    assert buffer.failures == 1 and buffer.next_batch() == [], "not at once again"
    buffer.add(some_rows(2, AT_US + 100), 60.0)
    assert buffer.dropped == 1
    assert [row.at_us for row in buffer.next_batch()] == [
        *(row.at_us for row in batch[1:]),
        AT_US + 100,
        AT_US + 101,
    ]


def test_rows_of_two_days_go_to_two_files() -> None:
    rows = [*some_rows(2), *some_rows(1, AT_US + DAY_US)]
    assert [len(day) for day in by_day(rows).values()] == [2, 1]


@pytest.mark.parametrize(
    "broken", [{"sample_s": 0.0}, {"roll_samples": 0}, {"roll_rows": 0}, {"wait_rows": 1}]
)
def test_settings_that_do_not_fit_are_refused(broken: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="telemetry_"):
        TelemetryConfig("x", **broken)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- the disk


async def test_files_lie_by_day_whole_and_with_their_types(tmp_path: Path) -> None:
    recorder = Recorder("monitor-1", TelemetryConfig(str(tmp_path), sample_s=1.0), 77)
    recorder.record([REPORT], 0.0, AT_US)
    recorder.record([REPORT], 0.5, AT_US + 1)  # too early for a sample
    recorder.record([REPORT], 1.0, AT_US + DAY_US)
    await recorder.close()
    files = files_in(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "day=2025-11-16/monitor-1-77-0.parquet",
        "day=2025-11-17/monitor-1-77-1.parquet",
    ]
    table = pq.read_table(files[0], partitioning=None)
    assert table.column_names == list(Row._fields)
    assert table.to_pylist()[0]["processing"] == 0.5
    assert recorder.buffer.written == 6


async def test_a_disk_that_refuses_is_counted_and_what_it_refused_is_written_later(
    tmp_path: Path,
) -> None:
    config = TelemetryConfig(str(tmp_path / "samples"), sample_s=1.0, roll_samples=1)
    (tmp_path / "samples").write_text("a file is in the way")
    recorder = Recorder("monitor-1", config, 77)
    recorder.record([REPORT], 0.0, AT_US)
    await recorder.close()
    assert recorder.buffer.failures >= 1 and recorder.buffer.written == 0
    (tmp_path / "samples").unlink()
    recorder.record([REPORT], 1.0, AT_US + 1)
    await recorder.close()
    assert recorder.buffer.written == 6 and recorder.buffer.dropped == 0


def test_nothing_half_written_is_left_where_files_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").mkdir()  # renaming onto it fails
    with pytest.raises(OSError):
        write_file(tmp_path, "a.parquet", some_rows(1))
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_folder_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TelemetryUnavailable, match="file"):
        check_telemetry(str(tmp_path / "file" / "below"))


def test_without_pyarrow_one_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("load_monitor.recorder.find_spec", lambda _: None)
    with pytest.raises(TelemetryUnavailable, match=r"utuple\[sim\]"):
        check_telemetry(str(tmp_path))


async def test_the_poller_keeps_what_it_sees_while_it_plans(tmp_path: Path) -> None:
    config = Config("monitor-1", "127.0.0.1:0", ("m1:1",))
    recorder = Recorder("monitor-1", TelemetryConfig(str(tmp_path), sample_s=1.0), 77)
    poller = Poller(config, TwinCluster("ab"), lambda: ["m1"], recorder)
    await poller.poll(1.0, AT_US)
    await recorder.close()
    (file,) = files_in(tmp_path)
    servers = {row["server"] for row in pq.read_table(file, partitioning=None).to_pylist()}
    assert servers == {"a", "b"}
