"""The board a plan is made on: the snapshot indexed once, and what was planned so far.

Everything the rules ask is a lookup here, so that a plan costs one pass over the lines and one sort of the
servers. Pure: a board lives within one call of `plan`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from load_monitor.planning.history import History, moves_load
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ClusterSnapshot, MemberLoad, SectionLoad, ServerLoad
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, merge_of, target
from utuple.errors import InvalidInput


class Place(NamedTuple):
    """A server in a line: the `position`-th member of the `row`-th line."""

    row: int
    position: int


class Roomy(NamedTuple):
    """Members of a line that have room: is one of them on, and those that are off."""

    is_on: bool
    off: tuple[str, ...]


class Board:
    def __init__(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self.policy = policy
        self.rows: tuple[SectionLoad, ...] = snapshot.lines
        self.servers: dict[str, ServerLoad] = {server.name: server for server in snapshot.servers}
        self.history = History(snapshot, policy)
        self.moves: list[Move] = []
        kinds = Counter(move.kind for move in snapshot.under_way)
        self.lines_soon = len(self.rows) + kinds[MoveKind.SPLIT] - kinds[MoveKind.MERGE]
        """How many there are once the moves under way are made."""
        self.on: dict[str, list[Place]] = defaultdict(list)
        """Where each server takes EAs and CFs."""
        self.off: dict[str, list[Place]] = defaultdict(list)
        self.suspended: list[Place] = []
        self.crowded: list[int] = []
        """Lines with more than one member: only they can shrink."""
        self._arrival_per_s: dict[str, float] = {}
        self._roomy_rows: dict[int, Roomy] = {}
        self._planned_rows: set[int] = set()
        self._planned_servers: set[str] = set()
        self._silent = {s.name for s in snapshot.servers if s.silent_s > policy.silent_s}
        self._moves_left = policy.at_once(len(self.servers)) - self.history.unsettled
        self._index()
        self._pool_from = 0

    def _index(self) -> None:
        arrivals: dict[str, float] = defaultdict(float)
        for row, load in enumerate(self.rows):
            members = load.line.members
            if len(members) > 1:
                self.crowded.append(row)
            for position, member in enumerate(members):
                place, name = Place(row, position), member.name
                if member.accumulatable:
                    self.on[name].append(place)
                elif member.suspended:
                    self.suspended.append(place)
                else:
                    self.off[name].append(place)
                arrival = load.members[position].arrival_per_s
                if arrival:
                    arrivals[name] += arrival
        self._arrival_per_s = dict(arrivals)

    # --------------------------------------------------------------------------------------- what is there

    def line(self, place: Place) -> Line:
        return self.rows[place.row].line

    def member(self, place: Place) -> Member:
        return self.rows[place.row].line.members[place.position]

    def member_load(self, place: Place) -> MemberLoad:
        return self.rows[place.row].members[place.position]

    def answers(self, name: str) -> bool:
        return name not in self._silent

    def pressure(self, server: ServerLoad) -> float:
        """How near a server is to the nearer of its thresholds: 1.0 is there."""
        return max(
            server.processing / self.policy.processing_start,
            server.memory / self.policy.memory_start,
        )

    def share(self, place: Place) -> float:
        """The part of the member's processing load that comes from EAs and CFs of this section, which is what a move
        takes away: by arrivals, or in equal parts in a cluster that does not measure them."""
        name = self.member(place).name
        spread, total = self.servers[name].spread, self._arrival_per_s.get(name, 0.0)
        if total > 0:
            return spread * self.member_load(place).arrival_per_s / total
        return 0.0 if self._arrival_per_s else spread / max(1, len(self.on.get(name, ())))

    def takes_some(self, place: Place) -> bool:
        """Does anything come in there, as far as that is measured?"""
        return self.member_load(place).arrival_per_s > 0 or not self._arrival_per_s

    def is_past_help(self, server: ServerLoad) -> bool:
        """Overloaded by EFs and searches alone: they go to every member, so that no helper would bring it below."""
        return server.processing_high and server.searches >= self.policy.processing_stop

    def hottest_first(self, name: str) -> list[Place]:
        """Where this server takes EAs and CFs, lines free to move only."""
        free = [place for place in self.on.get(name, ()) if self.is_free(place.row)]
        return sorted(free, key=lambda place: (-self.share(place), place.row))

    def is_in_hand(self, name: str) -> bool:
        """Its hottest section is in a move, which may be all the relief it needs (A.2)."""
        places = self.on.get(name)
        if not places:
            return False
        row = min(places, key=lambda place: (-self.share(place), place.row)).row
        return row in self._planned_rows or row in self.history.locked

    def has_room(self, name: str) -> bool:
        """May it take more: it answers, stays, and is not itself near a threshold."""
        server, policy = self.servers[name], self.policy
        return (
            name not in self._silent
            and not (server.draining or server.processing_high or server.memory_high)
            and server.processing <= policy.helper_processing_max
            and server.memory <= policy.helper_memory_max
        )

    def others_on(self, place: Place) -> list[str]:
        """The other members that take EAs and CFs of the section, and answer."""
        me = self.member(place).name
        return [name for name in self.answering_on(place.row) if name != me]

    def answering_on(self, row: int) -> list[str]:
        """Who takes EAs and CFs of the section, and answers."""
        silent = self._silent
        return [
            member.name
            for member in self.rows[row].line.members
            if member.accumulatable and member.name not in silent
        ]

    # ------------------------------------------------------------------------------------- what is allowed

    @property
    def is_full(self) -> bool:
        """As many moves at once as the cluster is to make."""
        return self._moves_left <= 0

    def is_free(self, row: int) -> bool:
        """The line may change now: nothing moves in it, its limit is not used up, and its home answers,
        for only the home can decide a new epoch."""
        return (
            row not in self._planned_rows
            and self.history.line_is_free(row)
            and self.answers(self.rows[row].line.home)
        )

    def is_unlocked(self, row: int) -> bool:
        """The same without the limit: for what must not wait."""
        return (
            row not in self._planned_rows
            and row not in self.history.locked
            and self.answers(self.rows[row].line.home)
        )

    def may_move(self, name: str) -> bool:
        return name not in self._planned_servers and self.history.server_has_settled(name)

    def may_join(self, name: str, row: int) -> bool:
        section = self.rows[row].line.section
        return not any(gone.overlaps(section) for gone in self.servers[name].left)

    def helper_among(self, names: Iterable[str]) -> str | None:
        """The lightest of those that can help."""
        able = (name for name in names if self.has_room(name) and self.may_move(name))
        return min(able, key=lambda name: (self.pressure(self.servers[name]), name), default=None)

    def member_to_turn_on(self, row: int) -> str | None:
        """A.1: a helper that is in charge of the section already."""
        return self.helper_among(
            name for name in self._roomy(row).off if self.history.may_turn_on(row, name)
        )

    def has_room_in(self, row: int) -> bool:
        """Does anybody who takes EAs and CFs of the section have room?"""
        return self._roomy(row).is_on

    def _roomy(self, row: int) -> Roomy:
        """Kept: a line of many overloaded members is asked for by each of them."""
        found = self._roomy_rows.get(row)
        if found is None:
            able = [m for m in self.rows[row].line.serving if self.has_room(m.name)]
            off = tuple(member.name for member in able if not member.accumulatable)
            found = self._roomy_rows[row] = Roomy(len(able) > len(off), off)
        return found

    def newcomer_to(self, row: int) -> str | None:
        """The lightest server that can help and is not in the line yet."""
        line = self.rows[row].line
        if len(line.members) >= self.policy.members_max:
            return None
        names = {member.name for member in line.members}
        helpers = (name for name in self._helpers() if name not in names)
        return next((name for name in helpers if self.may_join(name, row)), None)

    @cached_property
    def _pool(self) -> list[tuple[float, str]]:
        """All that have room, the lightest first."""
        servers = self.servers.items()
        return sorted((self.pressure(load), name) for name, load in servers if self.has_room(name))

    def _helpers(self) -> Iterator[str]:
        pool = self._pool
        while self._pool_from < len(pool) and not self.may_move(pool[self._pool_from][1]):
            self._pool_from += 1
        for at in range(self._pool_from, len(pool)):
            if self.may_move(pool[at][1]):
                yield pool[at][1]

    # ------------------------------------------------------------------------------------- what is planned

    def plan(
        self,
        row: int,
        kind: MoveKind,
        member: str,
        helper: str = "",
        *,
        why: str,
        touched: Iterable[str] = (),
    ) -> None:
        """Plan this move. Nothing else is planned for its line, its servers and those it touches. What a partitioned line does not
        admit, as that its home goes off, has to wait until it is gathered: that is planned instead."""
        line = self.rows[row].line
        move = Move(kind, line.section, line.epoch, member, helper, why=why)
        if line.layout.axes and not _is_admitted(move, line):
            why = f"{why}, and its section is partitioned"
            move = Move(MoveKind.GATHER, line.section, line.epoch, line.home, why=why)
        self._take(move, [row], touched)

    def plan_merge(self, row: int, *, why: str) -> None:
        """Plan that this line and the next become one. No server is touched: each does afterwards what it did before."""
        first, second = self.rows[row].line, self.rows[row + 1].line
        self._take(merge_of(first, second, why), [row, row + 1], ())

    def _take(self, move: Move, rows: Iterable[int], touched: Iterable[str]) -> None:
        self.moves.append(move)
        self._planned_rows.update(rows)
        self._planned_servers.update(move.servers, touched)
        self._moves_left -= moves_load(move)


def _is_admitted(move: Move, line: Line) -> bool:
    if move.kind is MoveKind.SPLIT:  # its home chooses the key
        move = replace(move, key=(line.section.start + line.section.end) // 2)
    try:
        target(move, line)
    except InvalidInput:
        return False
    return True
