"""A cluster of loads only, in one thread from a seed: demand flows by the table, stores fill and expire, and
the planner under test closes the loop. Nothing here matches uTuples; it shows where load goes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from load_monitor.planning.planner import Plan, plan
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ClusterSnapshot, Done, MemberLoad, SectionLoad
from load_monitor.window import Sample, Window
from utuple.cluster.line import Line, first_table
from utuple.cluster.move import Move, MoveKind, line_of, target
from utuple.cluster.table import Table
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

EVERYWHERE = Section(0, HASH_SPACE)
Demand = Callable[[float], Mapping[int, float]]
"""Registrations per second of each key, at a time."""
Asked = Callable[[float], Mapping[int, float]]
"""The share of a server's time that EFs and reads of each key take, at a time."""


@dataclass
class Stock:
    """What one server holds of one key: rows by expiry."""

    batches: deque[tuple[float, float]] = field(default_factory=deque)
    rows: float = 0.0

    def add(self, expiry_s: float, rows: float) -> None:
        self.batches.append((expiry_s, rows))
        self.rows += rows

    def inherit(self, other: Stock) -> None:
        self.batches = deque(sorted((*self.batches, *other.batches)))
        self.rows += other.rows

    def expire(self, now_s: float) -> None:
        while self.batches and self.batches[0][0] <= now_s:
            self.rows -= self.batches.popleft()[1]
        if not self.batches:
            self.rows = 0.0


class VirtualLoad:
    def __init__(
        self,
        names: list[str],
        demand: Demand,
        policy: Policy | None = None,
        *,
        service_per_s: float = 1_000.0,
        lifetime_s: float = 120.0,
        capacity_rows: int = 10**9,
        move_s: float = 4.0,
        asked: Asked = lambda _: {},
    ) -> None:
        self.policy = policy or Policy()
        self.names, self.demand, self.asked = list(names), demand, asked
        self.draining: set[str] = set()
        self.down: set[str] = set()
        self.now_s = 0.0
        self.table = Table(first_table(names))
        self.done: list[Done] = []
        self.last_plan = Plan()
        self.loads: dict[str, float] = {}
        self._service_per_s, self._lifetime_s = service_per_s, lifetime_s
        self._capacity_rows, self._move_s = capacity_rows, move_s
        self._window = Window(self.policy)
        self._queues: dict[str, float] = defaultdict(float)
        self._stocks: dict[tuple[str, int], Stock] = {}
        self._under_way: list[tuple[float, Move]] = []

    def run(self, until_s: float, step_s: float = 2.0) -> None:
        while self.now_s < until_s:
            self.now_s += step_s
            self._finish_moves()
            arrivals = self._flow(step_s)
            self._sample(arrivals, step_s)
            self._plan()

    # -------------------------------------------------------------------------------------------- questions

    def lines(self) -> list[Line]:
        return list(self.table)

    def line_of(self, key: int) -> Line:
        line = self.table.line_of(key)
        assert line is not None
        return line

    def rows(self, name: str, section: Section = EVERYWHERE) -> float:
        return sum(
            stock.rows
            for (holder, key), stock in self._stocks.items()
            if holder == name and key in section
        )

    def memory(self, name: str) -> float:
        return self.rows(name) / self._capacity_rows

    # ------------------------------------------------------------------------------------------------ steps

    def _flow(self, step_s: float) -> dict[str, dict[Section, float]]:
        """Each key's demand in equal parts to the members that are on, as in section 3.4, step 5: less
        kind to the planner than clients that look for the shortest wait."""
        arrivals: dict[str, dict[Section, float]] = {name: {} for name in self.names}
        for key, per_s in self.demand(self.now_s).items():
            line = self.line_of(key)
            on = [name for name in line.accumulatable if name not in self.down]
            for name in on:
                part = per_s / len(on)
                arrivals[name][line.section] = arrivals[name].get(line.section, 0.0) + part
                stock = self._stocks.setdefault((name, key), Stock())
                stock.add(self.now_s + self._lifetime_s, part * step_s)
        for stock in self._stocks.values():
            stock.expire(self.now_s)
        self._stocks = {place: stock for place, stock in self._stocks.items() if stock.batches}
        return arrivals

    def _sample(self, arrivals: dict[str, dict[Section, float]], step_s: float) -> None:
        sizes: dict[str, float] = defaultdict(float)
        for (holder, _), stock in self._stocks.items():
            sizes[holder] += stock.rows
        for name in self.names:
            rate, capacity = sum(arrivals[name].values()), self._service_per_s
            searches = self._searches(name)
            self.loads[name] = rate / capacity + searches
            queued = max(0.0, self._queues[name] + (rate - capacity) * step_s)
            self._queues[name] = min(queued, capacity)  # clients wait: a queue has a limit
            self._window.expect(name, self.now_s)
            if name not in self.down:
                busy, wait_s = min(1.0, rate / capacity), self._queues[name] / capacity
                size = int(sizes[name])
                stored = (size, self._capacity_rows, arrivals[name])
                sample = Sample(name, busy + searches, wait_s, *stored, searches)
                self._window.heard(sample, self.now_s)

    def _searches(self, name: str) -> float:
        """Every member is asked, on or off."""
        return sum(
            share
            for key, share in self.asked(self.now_s).items()
            if self.line_of(key).member(name) is not None
        )

    def _held(self) -> tuple[dict[tuple[str, int], float], dict[int, set[int]]]:
        """Rows by server and line, and the keys of each line, in one pass. A line by its start."""
        rows: dict[tuple[str, int], float] = defaultdict(float)
        keys: dict[int, set[int]] = defaultdict(set)
        for (name, key), stock in self._stocks.items():
            start = self.line_of(key).section.start
            rows[name, start] += stock.rows
            keys[start].add(key)
        return rows, keys

    def snapshot(self) -> ClusterSnapshot:
        oldest_s = self.now_s - self.policy.limit_window_s
        return ClusterSnapshot(
            self.now_s,
            self._window.loads(self.now_s, self.draining),
            tuple(self._section_loads()),
            tuple(move for _, move in self._under_way),
            tuple(done for done in self.done if done.at_s > oldest_s),
            self._window.trend(self.now_s),
        )

    def _section_loads(self) -> Iterator[SectionLoad]:
        rows, keys = self._held()
        for line in self.table:
            section = line.section
            members = tuple(
                MemberLoad(
                    int(rows[member.name, section.start]),
                    0,
                    self._window.arrival_per_s(member.name, section),
                    not rows[member.name, section.start],
                )
                for member in line.members
            )
            yield SectionLoad(line, members, len(keys[section.start] - {section.start}) > 1)

    def _split_key(self, section: Section) -> int:
        keys = sorted({key for _, key in self._stocks if key in section and key != section.start})
        return keys[len(keys) // 2] if keys else (section.start + section.end) // 2

    def _plan(self) -> None:
        self.last_plan = plan(self.snapshot(), self.policy)
        self._under_way += ((self.now_s + self._move_s, move) for move in self.last_plan.moves)

    def _finish_moves(self) -> None:
        for due_s, move in list(self._under_way):
            if due_s > self.now_s:
                continue
            self._under_way.remove((due_s, move))
            if move.kind is MoveKind.RELEASE:
                assert self.rows(move.member, move.section) == 0
            if move.kind is MoveKind.DRAIN:
                self._bring(move)
            if move.kind is MoveKind.SPLIT:
                move = replace(move, key=self._split_key(move.section))
            for line in target(move, line_of(move, self.table.overlapping(move.section))):
                assert self.table.hear(line)
            self.done.append(Done(move, self.now_s))
            assert self.table.is_whole

    def _bring(self, move: Move) -> None:
        for (holder, key), stock in list(self._stocks.items()):
            if holder == move.member and key in move.section:
                self._stocks.setdefault((move.helper, key), Stock()).inherit(stock)
                del self._stocks[holder, key]
