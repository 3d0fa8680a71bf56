"""Observing: from what servers say of themselves, and the table, to the snapshot a plan is made from. Pure.

The table is the managers' with the servers' own lines over it, the highest epoch winning: a home knows its
lines before anybody else does. The past comes from the homes' records of moves, so a monitor that has just
started, or a second one, knows what was done lately.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from load_monitor.planning.policy import HALF, Policy
from load_monitor.planning.snapshot import (
    UNKNOWN,
    ClusterSnapshot,
    Done,
    MemberLoad,
    SectionLoad,
    ServerLoad,
)
from load_monitor.window import Sample, Window
from utuple.cluster.line import Line
from utuple.cluster.load import NO_LOAD, LoadByCause
from utuple.cluster.move import Move, MoveKind, line_of
from utuple.cluster.record import MoveRecord
from utuple.cluster.table import Table
from utuple.errors import InvalidInput
from utuple.model.section import Section

PENDING_S = 10.0
"""How long an accepted order counts as under way before its home has shown it."""
_MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class SectionReport:
    """What a server says of one of its sections."""

    section: Section
    rows: int = 0
    templates: int = 0
    is_empty: bool = False
    is_splittable: bool = False
    some_key: int | None = None
    by_cause: LoadByCause = NO_LOAD


@dataclass(frozen=True, slots=True)
class FamilyReport:
    """What a server says of one of its busiest families."""

    subject: str
    type: str
    arrival_per_s: float
    templates: int = 0
    by_cause: LoadByCause = NO_LOAD


@dataclass(frozen=True, slots=True)
class Report:
    """A server's answer."""

    sample: Sample
    lines: tuple[Line, ...] = ()
    sections: tuple[SectionReport, ...] = ()
    moves: tuple[MoveRecord, ...] = ()
    """Of which it is or was the home."""
    leaving: bool = False
    families: tuple[FamilyReport, ...] = ()
    """The busiest; not all of them."""
    left: tuple[Section, ...] = ()
    """What it was drained of."""
    shipments: int = 0
    """Drains whose last words the heir has not heard."""

    @property
    def name(self) -> str:
        return self.sample.name


@dataclass(frozen=True, slots=True)
class PollResult:
    """The cluster in one poll."""

    lines: tuple[Line, ...]
    """As a manager has them."""
    servers: frozenset[str]
    """All that are known of, but those drained and stopped."""
    reports: tuple[Report, ...]
    """Of those that answered."""


class SnapshotBuilder:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._window = Window(policy)
        self._looked_s: float | None = None
        self._table = Table()
        self._known: set[str] = set()
        self._leaving: set[str] = set()
        self._left: dict[str, tuple[Section, ...]] = {}
        self._shipments: dict[str, int] = {}
        self._past: dict[bytes, tuple[Move, int]] = {}
        self._pending: dict[bytes, tuple[Move, float]] = {}
        self._sections: dict[tuple[str, Section], SectionReport] = {}

    def snapshot(self, seen: PollResult, now_s: float, now_us: int) -> ClusterSnapshot:
        """`now_s` never jumps; `now_us` is the wall time the homes' records are told in."""
        if self._looked_s is not None and now_s - self._looked_s > self._policy.silent_s:
            self._window = Window(self._policy)  # we slept: nobody else was silent
        self._looked_s = now_s
        own = (line for report in seen.reports for line in report.lines)
        self._table = Table((*seen.lines, *own))
        members = {member.name for line in self._table for member in line.members}
        self._meet(seen.servers | members, now_s)
        for report in seen.reports:
            self._window.heard(report.sample, now_s)
            (self._leaving.add if report.leaving else self._leaving.discard)(report.name)
            self._left[report.name] = report.left
            self._shipments[report.name] = report.shipments
        self._sections = {
            (report.name, section.section): section
            for report in seen.reports
            for section in report.sections
        }
        under_way = self._under_way(seen.reports, now_s, now_us)
        return ClusterSnapshot(
            now_s,
            tuple(self._present(members, now_s)),
            tuple(map(self._section_load, self._table)),
            under_way,
            tuple(self._recent(now_s, now_us)),
            self._window.trend(now_s),
            tuple(_announced(seen.reports)),
        )

    def addressed(self, move: Move) -> tuple[str, Move] | None:
        """The home to ask, and what for: a split with its key. None: it cannot be said yet."""
        try:
            line = line_of(move, self._table.overlapping(move.section))
        except InvalidInput:
            return None
        if line.section != move.section:
            return None
        if move.kind is MoveKind.SPLIT:
            key = self._split_key(line, move.member)
            if key is None:
                return None
            move = replace(move, key=key)
        return line.home, move

    def note_accepted(self, id_: bytes, move: Move, now_s: float) -> None:
        """A home has taken this order; until it shows it, it counts as under way."""
        self._pending[id_] = move, now_s

    # ------------------------------------------------------------------------------------------- servers

    def _meet(self, names: Iterable[str], now_s: float) -> None:
        names = set(names)
        for gone in self._known - names:
            self._window.forget(gone)
            self._leaving.discard(gone)
            self._left.pop(gone, None)
            self._shipments.pop(gone, None)
        for name in names:
            self._window.expect(name, now_s)
        self._known = names

    def _present(self, members: set[str], now_s: float) -> Iterable[ServerLoad]:
        """Without those that are in no line and silent: stopped after a drain, or before they began."""
        for load in self._window.loads(now_s, self._leaving):
            if load.name in members or load.silent_s <= self._policy.silent_s:
                left, owed = self._left.get(load.name, ()), self._shipments.get(load.name, 0)
                yield replace(load, left=left, shipments=owed) if left or owed else load

    # ---------------------------------------------------------------------------------------------- lines

    def _section_load(self, line: Line) -> SectionLoad:
        members = tuple(self._member_load(member.name, line.section) for member in line.members)
        reports = self._reports(line)
        splittable = self._is_empty(line) or any(report.is_splittable for report in reports)
        return SectionLoad(line, members, splittable)

    def _member_load(self, name: str, section: Section) -> MemberLoad:
        said = self._sections.get((name, section))
        if said is None:
            return UNKNOWN
        arrival_per_s = self._window.arrival_per_s(name, section)
        searches = said.by_cause.searches
        return MemberLoad(said.rows, said.templates, arrival_per_s, said.is_empty, searches)

    def _reports(self, line: Line, first: str = "") -> list[SectionReport]:
        names = sorted((m.name for m in line.members), key=lambda name: name != first)
        found = (self._sections.get((name, line.section)) for name in names)
        return [report for report in found if report is not None]

    def _is_empty(self, line: Line) -> bool:
        """Every member has said so."""
        reports = self._reports(line)
        return len(reports) == len(line.members) and all(report.is_empty for report in reports)

    def _split_key(self, line: Line, giver: str) -> int | None:
        """Section 3.6: of a stored uTuple, the giver's own first; where nothing is stored, or the policy says so, the
        middle."""
        section = line.section
        if self._policy.split_at == HALF or self._is_empty(line):
            return (section.start + section.end) // 2
        keys = (report.some_key for report in self._reports(line, giver) if report.is_splittable)
        return next((key for key in keys if key is not None and section.start < key), None)

    # ---------------------------------------------------------------------------------------------- moves

    def _under_way(self, reports: Iterable[Report], now_s: float, now_us: int) -> tuple[Move, ...]:
        oldest_us = now_us - int(self._policy.limit_window_s * _MICROSECONDS)
        moves: list[Move] = []
        for report in reports:
            for record in report.moves:
                self._pending.pop(record.id, None)
                if not record.decided_us:
                    moves.append(record.move)
                elif record.decided_us > oldest_us:
                    self._past[record.id] = record.move, record.decided_us
        for id_, (_, at_s) in list(self._pending.items()):
            if now_s - at_s > PENDING_S:
                del self._pending[id_]
        for id_, (_, ended_us) in list(self._past.items()):
            if ended_us <= oldest_us:
                del self._past[id_]
        return (*moves, *(move for move, _ in self._pending.values()))

    def _recent(self, now_s: float, now_us: int) -> Iterable[Done]:
        """On our own clock; a home whose clock is ahead has not acted in the future."""
        for move, ended_us in self._past.values():
            yield Done(move, now_s - max(0, now_us - ended_us) / _MICROSECONDS)


def _announced(reports: Iterable[Report]) -> Iterable[Move]:
    records = (record for report in reports for record in report.moves)
    return (record.move for record in records if record.is_undone and record.decided_us)
