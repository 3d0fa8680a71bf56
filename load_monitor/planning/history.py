"""The history: which moves are under way, and what the recent ones still forbid. Pure.

Here live the limits that keep the planner from thrashing. Moves are remembered by place in the hash space,
so both halves of a split section inherit what was done to the whole.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ClusterSnapshot
from utuple.cluster.move import Move, MoveKind
from utuple.model.section import Section

NEVER_S = -math.inf
K = TypeVar("K")


class History:
    def __init__(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self._now_s, self._policy = snapshot.now_s, policy
        self._starts = [load.line.section.start for load in snapshot.lines]
        self._ends = [load.line.section.end for load in snapshot.lines]
        self.locked: set[int] = set()
        """Lines with a move under way."""
        self.at_work: Counter[str] = Counter()
        """Servers named in moves under way, and in how many."""
        self.unsettled = sum(map(moves_load, snapshot.under_way))
        """Moves under way, or done so lately that loads do not show it yet."""
        self._line_moves: Counter[int] = Counter()
        self._server_moves: Counter[str] = Counter()
        self._touched_s: dict[str, float] = {}
        self._line_touched_s: dict[int, float] = {}
        self._line_grew_s: dict[int, float] = {}
        self._on_s: dict[tuple[int, str], float] = {}
        self._off_s: dict[tuple[int, str], float] = {}
        for move in snapshot.under_way:
            self.locked.update(self._lines(move.section))
            self.at_work.update(move.servers)
        for done in snapshot.recent:
            is_late = done.at_s <= snapshot.now_s - policy.limit_window_s
            if not is_late and done.move.kind is not MoveKind.PRUNE:
                self._remember(done.move, done.at_s, snapshot)
        self._restless = set(self._all_restless())

    def _remember(self, move: Move, at_s: float, snapshot: ClusterSnapshot) -> None:
        is_fresh = at_s > self._now_s - self._policy.settle_s
        self.unsettled += is_fresh and moves_load(move)
        touched = set(move.servers)
        self._server_moves.update(touched)
        on, off = move.learner, move.goes_off
        for place in self._lines(move.section):
            self._line_moves[place] += moves_load(move)
            _later(self._line_touched_s, place, at_s)
            if on is not None:
                _later(self._line_grew_s, place, at_s)
                _later(self._on_s, (place, on), at_s)
            if off is not None:
                _later(self._off_s, (place, off), at_s)
            if is_fresh:  # the load of all who are on has changed
                touched.update(snapshot.lines[place].line.accumulatable)
        for name in touched:
            _later(self._touched_s, name, at_s)

    def _lines(self, section: Section) -> Iterator[int]:
        low = bisect_right(self._ends, section.start)
        return iter(range(low, bisect_left(self._starts, section.end, low)))

    # ------------------------------------------------------------------------------- what is allowed now

    def line_is_free(self, place: int) -> bool:
        """No move under way, and its limit is not used up."""
        return place not in self.locked and (
            self._line_moves.get(place, 0) < self._policy.moves_per_section
        )

    def line_has_settled(self, place: int) -> bool:
        return self._has_passed(self._line_touched_s.get(place, NEVER_S), self._policy.settle_s)

    def server_has_settled(self, name: str) -> bool:
        """No move under way, the last one shows in its load, and its limit is not used up."""
        return name not in self._restless

    def _all_restless(self) -> Iterator[str]:
        policy = self._policy
        yield from self.at_work
        yield from (
            name
            for name, at_s in self._touched_s.items()
            if not self._has_passed(at_s, policy.settle_s)
        )
        yield from (
            name for name, moves in self._server_moves.items() if moves >= policy.moves_per_server
        )

    def may_turn_off(self, place: int, name: str) -> bool:
        return self._has_passed(self._on_s.get((place, name), NEVER_S), self._policy.stay_on_s)

    def may_turn_on(self, place: int, name: str) -> bool:
        return self._has_passed(self._off_s.get((place, name), NEVER_S), self._policy.stay_off_s)

    def may_shrink(self, place: int) -> bool:
        return self._has_passed(self._line_grew_s.get(place, NEVER_S), self._policy.stay_on_s)

    def _has_passed(self, since_s: float, wait_s: float) -> bool:
        return self._now_s - since_s >= wait_s


def moves_load(move: Move) -> bool:
    """Does it count against the limits? A suspension does not: it moves no load, and EFs and CAs wait for it. Nor does a prune, which
    a home makes by itself."""
    return move.kind not in (MoveKind.SUSPEND, MoveKind.PRUNE)


def _later(times: dict[K, float], at: K, at_s: float) -> None:
    times[at] = max(at_s, times.get(at, NEVER_S))
