"""The workload: what a server bears, by cause and by family. Pure.

    events      EAs and CFs in the writer: each goes to one member, so help relieves a server of them
    searches    EFs, CAs and reads: in the writer, in the store's searches, and what was found on its way to readers. They
                go to every member of a line, so help does not relieve a server of them
    deliveries  live matches on their way to readers: they leave from the member that took the EA, as spread as EAs are

A share is busy time over time: of the one writer, of all connections for searching, and of the event loop. The
processing load (section 3.4) is their sum.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from enum import IntEnum

from utuple.cluster.load import NO_LOAD, Load, LoadByCause
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import Family
from utuple.server.writing.meter import WINDOW_S, Meter
from utuple.server.writing.queue import EF_ROWS
from utuple.server.writing.sample import Sample
from utuple.server.writing.transaction import PreparedBatch

_FORGOTTEN_PER_S = 0.001
_FORGOTTEN_SHARE = 1e-5
_WEIGHED_ROWS = 16
"""Of each batch so many are looked at for the size of a family's events, however large it is."""
_JOINED_S = 0.01
"""Pieces of work that end within this are kept as one: a reader's stream may be written to ten thousand times a second."""


class Cause(IntEnum):
    EVENTS = 0
    SEARCHES = 1
    DELIVERIES = 2


class Workload:
    def __init__(self, now_s: float) -> None:
        self.meter = Meter(now_s)
        self.families = FamilyLoads()
        self.sample = Sample()
        self._since_s = now_s
        self._parts: deque[tuple[float, Cause, int]] = deque()
        self._sums_us = [0, 0, 0]
        self._unbilled_us = 0
        """Of deliveries: since the writer last asked."""

    def load(self, queued: int, now_s: float, templates: int) -> Load:
        """As the writer's meter has it, with all that is borne as its busy share."""
        return replace(self.meter.load(queued, now_s, templates), busy=self.by_cause(now_s).total)

    def by_cause(self, now_s: float) -> LoadByCause:
        self._forget(now_s)
        span_us = max(1e-3, min(WINDOW_S, now_s - self._since_s)) * MICROSECONDS
        return LoadByCause(*(spent_us / span_us for spent_us in self._sums_us))

    def by_family(self, now_s: float) -> dict[Family, LoadByCause]:
        """The same figures, shared out. What each family costs is smoothed in another way than what all of them cost, so
        that it may be kept for thousands; shown as it is, a section could be busy mostly with searches at a server that
        is busy mostly with EAs, though it has no other section. So it only says in which proportion a cause is theirs."""
        found = self.families.by_cause(now_s)
        sums = sum(found.values(), NO_LOAD)
        whole = self.by_cause(now_s)
        events, searches, deliveries = (
            borne / kept if kept else 0.0 for borne, kept in zip(whole.each, sums.each, strict=True)
        )
        return {
            family: LoadByCause(
                load.events * events, load.searches * searches, load.deliveries * deliveries
            )
            for family, load in found.items()
        }

    def begin_answers(self) -> None:
        """What is delivered from now on is part of the batch that is being answered."""
        self._unbilled_us = 0

    def worked(self, began_s: float, prepared: PreparedBatch, now_s: float) -> None:
        """The writer has done this batch and answered it. Live matches that left meanwhile were counted as deliveries."""
        self.meter.worked(began_s, prepared.rows, now_s)
        self.families.arrived(prepared.accepted, now_s)
        for batch, _ in prepared.events:
            self.families.weigh(batch.columns, now_s)
            self.sample.note(batch.columns)
        spent_us = max(0, round((now_s - began_s) * MICROSECONDS) - self._unbilled_us)
        changes = {family: EF_ROWS * count for family, count in prepared.changes.items()}
        events, searches = prepared.accepted.total(), sum(changes.values())
        if not events + searches:  # positions of readers
            self._took(Cause.DELIVERIES, {}, spent_us, now_s)
            return
        on_events_us = spent_us * events // (events + searches)
        self._took(Cause.EVENTS, prepared.accepted, on_events_us, now_s)
        self._took(Cause.SEARCHES, changes, spent_us - on_events_us, now_s)

    def searched(self, who: Hashable, seconds: float, now_s: float) -> None:
        """The store was searched for so long, for this family if it is one."""
        families = [who] if isinstance(who, Family) else []
        self._took(Cause.SEARCHES, Counter(families), round(seconds * MICROSECONDS), now_s)

    def delivered(
        self, families: Collection[Family], seconds: float, now_s: float, *, stored: bool
    ) -> None:
        spent_us = round(seconds * MICROSECONDS)
        self._unbilled_us += spent_us
        cause = Cause.SEARCHES if stored else Cause.DELIVERIES
        self._took(cause, Counter(families), spent_us, now_s)

    def _took(
        self, cause: Cause, weights: Mapping[Family, int], spent_us: int, now_s: float
    ) -> None:
        if not spent_us:
            return
        self._sums_us[cause] += spent_us
        last = self._parts[-1] if self._parts else (-math.inf, cause, 0)
        if last[1] is cause and now_s - last[0] < _JOINED_S:
            self._parts[-1] = (last[0], cause, last[2] + spent_us)
        else:
            self._parts.append((now_s, cause, spent_us))
        self._forget(now_s)
        whole = sum(weights.values())
        for family, weight in weights.items():
            self.families.took(family, cause, spent_us * weight / whole / MICROSECONDS, now_s)

    def _forget(self, now_s: float) -> None:
        parts = self._parts
        while parts and parts[0][0] < now_s - WINDOW_S:
            _, cause, spent_us = parts.popleft()
            self._sums_us[cause] -= spent_us


class FamilyLoads:
    """What each family costs, smoothed: EAs and CFs per second, and shares by cause."""

    def __init__(self) -> None:
        self._rates: dict[Family, _Decaying] = {}
        self._shares: dict[Family, _Decaying] = {}
        self._sizes: dict[Family, _Decaying] = {}
        """Rows that were looked at, and their bytes."""

    def arrived(self, accepted: Mapping[Family, int], now_s: float) -> None:
        for family, rows in accepted.items():
            self._rates.setdefault(family, _Decaying(1, now_s)).add(0, rows, now_s)

    def weigh(self, columns: Columns, now_s: float) -> None:
        for row in range(0, len(columns), len(columns) // _WEIGHED_ROWS + 1):
            family = columns.families[columns.family[row]]
            kept = self._sizes.setdefault(family, _Decaying(2, now_s))
            kept.add(0, 1, now_s)
            kept.add(1, len(columns.payloads[row]), now_s)

    def mean_bytes(self, now_s: float) -> dict[Family, float]:
        """Of the data of each family's EAs."""
        found = _now(self._sizes, _FORGOTTEN_PER_S, now_s)
        return {
            family: size / rows
            for family, (rows, size) in found.items()
            if rows >= _FORGOTTEN_PER_S
        }

    def took(self, family: Family, cause: Cause, seconds: float, now_s: float) -> None:
        self._shares.setdefault(family, _Decaying(len(Cause), now_s)).add(cause, seconds, now_s)

    def per_s(self, now_s: float) -> dict[Family, float]:
        found = _now(self._rates, _FORGOTTEN_PER_S, now_s)
        return {family: values[0] for family, values in found.items()}

    def by_cause(self, now_s: float) -> dict[Family, LoadByCause]:
        found = _now(self._shares, _FORGOTTEN_SHARE, now_s)
        return {family: LoadByCause(*values) for family, values in found.items()}


class _Decaying:
    """Sums that forget: each is the rate per second over about the window."""

    def __init__(self, size: int, now_s: float) -> None:
        self._values = [0.0] * size
        self._at_s = now_s

    def add(self, at: int, amount: float, now_s: float) -> None:
        self.now(now_s)[at] += amount / WINDOW_S

    def now(self, now_s: float) -> list[float]:
        factor = math.exp(min(0.0, self._at_s - now_s) / WINDOW_S)
        self._values, self._at_s = [value * factor for value in self._values], now_s
        return self._values


def _now(kept: dict[Family, _Decaying], least: float, now_s: float) -> dict[Family, list[float]]:
    """Without those that come to nothing, which are forgotten."""
    found = {family: decaying.now(now_s) for family, decaying in kept.items()}
    for family, values in found.items():
        if sum(values) < least:
            del kept[family]
    return found
