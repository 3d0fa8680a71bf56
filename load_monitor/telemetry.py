"""Telemetry: what the monitor saw of the servers, as rows to keep, and how many of them wait to be written. Pure.

A sample is one row for each server, each of its sections and each of its busiest families; `level` says which.
Planning must never wait for a disk: what cannot be written waits here, up to a limit, and beyond it the oldest
rows are dropped and counted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from load_monitor.observing import Report
from utuple.cluster.line import Line
from utuple.errors import InvalidInput
from utuple.model.key import key_of
from utuple.model.section import Section

SERVER, SECTION, KEY = "server", "section", "key"
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class TelemetryConfig:
    folder: str = ""
    """Where the Parquet files go; empty: nothing is kept."""
    sample_s: float = 60.0
    """Between two samples: 1440 a day show day and night, at a few rows a server each."""
    roll_samples: int = 10
    """To a file, which is also written at the end: so much is lost if the monitor is killed."""
    roll_rows: int = 100_000
    """Or so many rows: a few megabytes."""
    wait_rows: int = 1_000_000
    """Waiting for a disk that is full or slow, about 300 bytes each; beyond it the oldest are dropped."""

    def __post_init__(self) -> None:
        if not 0 < self.sample_s < math.inf:
            raise InvalidInput("telemetry_every", self.sample_s, "must be above 0 seconds")
        if self.roll_samples < 1:
            raise InvalidInput("telemetry_roll_samples", self.roll_samples, "must be at least 1")
        if not 1 <= self.roll_rows <= self.wait_rows:
            rule = f"must lie between 1 and what may wait, {self.wait_rows}"
            raise InvalidInput("telemetry_roll_rows", self.roll_rows, rule)


NOT_KEPT = TelemetryConfig()


class Row(NamedTuple):
    """One measure of one thing. What does not belong to its level is None."""

    at_us: int
    monitor: str
    level: str
    server: str
    section_start: str | None = None
    """Places in the hash space in 16 hexadecimal digits: Spark has no unsigned numbers of 64 bits."""
    section_last: str | None = None
    key: str | None = None
    subject: str | None = None
    type: str | None = None
    accumulatable: bool | None = None
    processing: float | None = None
    """Busy share of the writer."""
    queue_wait_s: float | None = None
    size_bytes: int | None = None
    capacity_bytes: int | None = None
    rows: int | None = None
    templates: int | None = None
    arrival_per_s: float | None = None


def rows_of(monitor: str, reports: Iterable[Report], at_us: int) -> Iterator[Row]:
    for report in reports:
        yield from _rows_of(monitor, report, at_us)


def _rows_of(monitor: str, report: Report, at_us: int) -> Iterator[Row]:
    sample, server = report.sample, report.name
    yield Row(
        at_us,
        monitor,
        SERVER,
        server,
        processing=sample.busy,
        queue_wait_s=sample.queue_wait_s,
        size_bytes=sample.size_bytes,
        capacity_bytes=sample.capacity_bytes,
        rows=sum(section.rows for section in report.sections),
        templates=sum(section.templates for section in report.sections),
        arrival_per_s=float(sum(sample.arrivals_per_s.values())),
    )
    on = {line.section: _is_on(line, server) for line in report.lines}
    for said in report.sections:
        yield Row(
            at_us,
            monitor,
            SECTION,
            server,
            section_start=_start(said.section),
            section_last=_last(said.section),
            accumulatable=on.get(said.section),
            rows=said.rows,
            templates=said.templates,
            arrival_per_s=sample.arrivals_per_s.get(said.section, 0.0),
        )
    for family in report.families:
        key = key_of(family.subject, family.type)
        section = next((line.section for line in report.lines if key in line.section), None)
        yield Row(
            at_us,
            monitor,
            KEY,
            server,
            section_start=_start(section) if section is not None else None,
            section_last=_last(section) if section is not None else None,
            key=f"{key:016x}",
            subject=family.subject,
            type=family.type,
            templates=family.templates,
            arrival_per_s=family.arrival_per_s,
        )


def _is_on(line: Line, server: str) -> bool | None:
    member = line.member(server)
    return member.accumulatable if member is not None else None


def _start(section: Section) -> str:
    return f"{section.start:016x}"


def _last(section: Section) -> str:
    return f"{section.end - 1:016x}"


def by_day(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """A file holds rows of one day, counted from 1970 in UTC."""
    days: dict[int, list[Row]] = {}
    for row in rows:
        days.setdefault(row.at_us // _DAY_US, []).append(row)
    return days


class TelemetryBuffer:
    """Rows on their way to the disk. At most one batch is being written at a time."""

    def __init__(self, config: TelemetryConfig) -> None:
        self._config = config
        self._rows: deque[Row] = deque()
        self._sampled_s = -math.inf
        self._samples = 0
        """Since the last file."""
        self._writing: list[Row] = []
        self.written = 0
        self.dropped = 0
        self.failures = 0

    def __len__(self) -> int:
        return len(self._rows) + len(self._writing)

    def wants_sample(self, now_s: float) -> bool:
        return now_s - self._sampled_s >= self._config.sample_s

    def add(self, rows: Iterable[Row], now_s: float) -> None:
        self._sampled_s = now_s
        self._samples += 1
        self._rows.extend(rows)
        while len(self) > self._config.wait_rows and self._rows:
            self._rows.popleft()
            self.dropped += 1

    def next_batch(self, *, ends: bool = False) -> list[Row]:
        """What is to be written now; nothing before the last batch has ended."""
        is_due = ends or (
            len(self._rows) >= self._config.roll_rows or self._samples >= self._config.roll_samples
        )
        if self._writing or not self._rows or not is_due:
            return []
        count = len(self._rows) if ends else min(len(self._rows), self._config.roll_rows)
        self._writing = [self._rows.popleft() for _ in range(count)]
        self._samples = 0
        return self._writing

    def wrote(self) -> None:
        self.written += len(self._writing)
        self._writing = []

    def failed(self) -> None:
        """They wait in their old place for the next time, as far as there is room."""
        self.failures += 1
        self._rows.extendleft(reversed(self._writing))
        self._writing = []
