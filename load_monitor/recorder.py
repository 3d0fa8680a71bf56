"""The recorder: keeps the monitor's samples as Parquet files, one folder a day, without disturbing it.

    DIR/day=2026-11-16/monitor-1-1763287200000000-0.parquet

A file has its name only when it is whole: it is written beside, made durable, and renamed. Writing goes on in a
thread; a disk that is full is said once and counted, and planning goes on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from load_monitor.observing import Report
from load_monitor.telemetry import Row, TelemetryBuffer, TelemetryConfig, by_day, rows_of
from utuple.errors import UTupleError
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_DAY_S = 86_400
_TYPES = {
    "at_us": "int64",
    "accumulatable": "bool_",
    "processing": "float64",
    "queue_wait_s": "float64",
    "size_bytes": "int64",
    "capacity_bytes": "int64",
    "rows": "int64",
    "templates": "int64",
    "arrival_per_s": "float64",
}
"""All other columns are text."""
_log = Log("load_monitor.recorder")


class TelemetryUnavailable(UTupleError):
    """Samples cannot be kept there; the message says what to do."""


def check_telemetry(folder: str) -> None:
    """Before anything else starts: what is missing is said at once, not after the first minutes."""
    if find_spec("pyarrow") is None:
        raise TelemetryUnavailable(
            "--telemetry writes Parquet files and needs pyarrow: pip install 'utuple[sim]', or leave "
            "--telemetry out"
        )
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        probe = Path(folder) / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise TelemetryUnavailable(f"--telemetry {folder}: {error.strerror or error}") from None


class Recorder:
    def __init__(self, monitor: str, config: TelemetryConfig, at_us: int) -> None:
        self._monitor, self._config = monitor, config
        self._folder = Path(config.folder)
        self._since_us = at_us
        self._files = 0
        self._tasks = Tasks()
        self._task: asyncio.Task[None] | None = None
        self._was_failing = False
        self.buffer = TelemetryBuffer(config)

    def record(self, reports: Iterable[Report], now_s: float, at_us: int) -> None:
        """The monitor has looked: keep it, if it is time for a sample, and write, if it is time for a file."""
        if self.buffer.wants_sample(now_s):
            self.buffer.add(rows_of(self._monitor, reports, at_us), now_s)
        batch = self.buffer.next_batch()
        if batch:
            self._task = self._tasks.start(self._write(batch), "telemetry")

    async def close(self) -> None:
        """What was not written yet is, now."""
        if self._task is not None:
            await self._task
        batch = self.buffer.next_batch(ends=True)
        if batch:
            await self._write(batch)
        if len(self.buffer):
            _log.warning("telemetry lost", rows=len(self.buffer))

    async def _write(self, batch: list[Row]) -> None:
        try:
            await asyncio.to_thread(self._write_files, batch)
        except Exception as error:  # noqa: BLE001  a full disk, or what Arrow says of it: a later file may do better
            self.buffer.failed()
            if not self._was_failing:
                _log.warning("telemetry not written", folder=self._folder, reason=error)
            self._was_failing = True
            return
        self.buffer.wrote()
        if self._was_failing:
            _log.info("telemetry written again", dropped=self.buffer.dropped)
        self._was_failing = False

    def _write_files(self, batch: list[Row]) -> None:
        for day, rows in by_day(batch).items():
            name = f"{self._monitor}-{self._since_us}-{self._files}.parquet"
            date = datetime.fromtimestamp(day * _DAY_S, UTC).date()
            write_file(self._folder / f"day={date}", name, rows)
            self._files += 1


def write_file(folder: Path, name: str, rows: list[Row]) -> None:
    """Whole under its name, or not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(field, getattr(pa, _TYPES.get(field, "string"))()) for field in Row._fields]
    )
    columns = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}.part"
    try:
        with beside.open("wb") as file:
            pq.write_table(pa.Table.from_arrays(columns, schema=schema), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / name)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
