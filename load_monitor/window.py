"""The window: from samples to loads that are steady enough to decide by. Pure: `now_s` is an argument.

Averages forget by elapsed time, not by sample, so that a slow or irregular poll means the same. An alarm is
raised by a load that stays above its threshold, and cleared below a lower one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ServerLoad, Trend
from utuple.errors import InvalidInput
from utuple.model.section import Section

LOAD_MAX = 4.0
"""A longer queue than that many seconds at full load says nothing more about demand."""
TREND_POINTS = 120
"""Kept over the policy's trend_s: enough for a straight line, little enough to fit it often."""
_TREND_POINTS_MIN = 10
"""Fewer say nothing about the hours to come."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a server says of itself when polled."""

    name: str
    busy: float
    queue_wait_s: float
    size_bytes: int
    capacity_bytes: int
    arrivals_per_s: Mapping[Section, float] = field(default_factory=dict)
    """Registrations by section."""
    searches: float = 0.0
    """The part of `busy` that help does not relieve: EFs and searches."""

    def __post_init__(self) -> None:
        for name in ("busy", "queue_wait_s", "size_bytes", "searches"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(name, getattr(self, name), "must be a number, at least 0")
        if self.capacity_bytes <= 0:
            raise InvalidInput("capacity_bytes", self.capacity_bytes, "must be above 0")


@dataclass(frozen=True, slots=True)
class Alarm:
    """Raised after `hold_s` above `start`; cleared below `stop`."""

    above_since_s: float | None = None
    raised: bool = False

    def next(self, load: float, now_s: float, start: float, stop: float, hold_s: float) -> Alarm:
        if self.raised and load >= stop:
            return self
        if load <= start:
            return Alarm()
        since_s = now_s if self.above_since_s is None else self.above_since_s
        return Alarm(since_s, now_s - since_s >= hold_s)


def smoothed(old: float, new: float, elapsed_s: float, smoothing_s: float) -> float:
    """The moving average after `elapsed_s`: half-way after 0.7 time constants, there after five."""
    return old + (new - old) * -math.expm1(-elapsed_s / smoothing_s)


@dataclass(slots=True)
class _Record:
    heard_s: float
    processing: float = 0.0
    processing_lately: float = 0.0
    searches: float = 0.0
    memory: float = 0.0
    capacity_bytes: int = 1
    arrivals_per_s: dict[Section, float] = field(default_factory=dict)
    processing_alarm: Alarm = Alarm()
    memory_alarm: Alarm = Alarm()
    spoke: bool = False


class Window:
    """The servers as lately heard. Holds one record a server, and the sections it last spoke of."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._records: dict[str, _Record] = {}
        self._totals: deque[tuple[float, float, float]] = deque(maxlen=TREND_POINTS)

    def expect(self, name: str, now_s: float) -> None:
        """A server is known of, by the table or an announcement: from now on its silence counts."""
        self._records.setdefault(name, _Record(now_s))

    def forget(self, name: str) -> None:
        self._records.pop(name, None)

    def heard(self, sample: Sample, now_s: float) -> None:
        """Take a sample; one older than the last heard is passed over."""
        record = self._records.setdefault(sample.name, _Record(now_s))
        if now_s < record.heard_s:
            return
        policy = self._policy
        behind = sample.queue_wait_s / policy.wait_at_full_s
        processing = min(LOAD_MAX, max(sample.busy, behind))
        memory = sample.size_bytes / sample.capacity_bytes
        elapsed_s = now_s - record.heard_s if record.spoke else math.inf
        tau_s = policy.smoothing_s
        record.processing = smoothed(record.processing, processing, elapsed_s, tau_s)
        share = min(1.0, sample.searches / sample.busy) if sample.busy else 0.0
        searches = processing * share  # who is behind is so with all it does
        record.searches = smoothed(record.searches, searches, elapsed_s, tau_s)
        lately = smoothed(record.processing_lately, record.processing, elapsed_s, policy.calm_s)
        record.processing_lately = max(record.processing, lately)
        record.memory = smoothed(record.memory, memory, elapsed_s, tau_s)
        record.arrivals_per_s = {
            section: smoothed(record.arrivals_per_s.get(section, rate), rate, elapsed_s, tau_s)
            for section, rate in sample.arrivals_per_s.items()
        }
        record.processing_alarm = record.processing_alarm.next(
            record.processing, now_s, policy.processing_start, policy.processing_stop, policy.hold_s
        )
        record.memory_alarm = record.memory_alarm.next(
            record.memory, now_s, policy.memory_start, policy.memory_stop, policy.hold_s
        )
        record.capacity_bytes, record.heard_s, record.spoke = sample.capacity_bytes, now_s, True

    def arrival_per_s(self, name: str, section: Section) -> float:
        record = self._records.get(name)
        return record.arrivals_per_s.get(section, 0.0) if record is not None else 0.0

    def loads(self, now_s: float, draining: Collection[str] = ()) -> tuple[ServerLoad, ...]:
        return tuple(
            ServerLoad(
                name,
                record.processing,
                record.memory,
                record.capacity_bytes,
                max(0.0, now_s - record.heard_s),
                record.processing_alarm.raised,
                record.memory_alarm.raised,
                record.processing_lately,
                name in draining,
                searches=min(record.searches, record.processing),
            )
            for name, record in sorted(self._records.items())
        )

    def trend(self, now_s: float) -> Trend:
        """The straight line through the cluster's total load since `trend_s` ago. Call it once a poll:
        it notes the present total."""
        policy, totals = self._policy, self._totals
        if not totals or now_s - totals[-1][0] >= policy.trend_s / TREND_POINTS:
            records = self._records.values()
            busy = sum(record.processing for record in records)
            size = sum(record.memory * record.capacity_bytes for record in records)
            totals.append((now_s, busy, size))
        while now_s - totals[0][0] > policy.trend_s:
            totals.popleft()
        if len(totals) < _TREND_POINTS_MIN:
            return Trend()
        times, busy_totals, size_totals = zip(*totals, strict=True)
        span_s = times[-1] - times[0]
        return Trend(_slope(times, busy_totals), _slope(times, size_totals), span_s)


def _slope(times: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Least squares, around the means so that large times lose no digits."""
    middle = sum(times) / len(times)
    mean = sum(values) / len(values)
    spread = sum((at - middle) ** 2 for at in times)
    joint = sum((at - middle) * (value - mean) for at, value in zip(times, values, strict=True))
    return joint / spread if spread > 0 else 0.0
