"""Faults aimed at one move: chance alone would seldom meet the few milliseconds it takes.

When an order is sent, now and then one of its calls is ambushed, or one of its sides dies as soon as a step of
it is stored, or its home is cut off from the other side for so long that it must be given up. Some seeds know
no aims at all: who is killed all the time learns everything anew all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tests.virtual.coverage import (
    ABORTABLE,
    CALLS,
    MANY_MEMBERS,
    MERGED_EPOCHS,
    MERGED_MEMBERS,
    NEIGHBOURS,
    OF_MOVES,
    PHASES,
    SIDES,
    STEPS,
    in_step,
)
from tests.virtual.programs.cluster import Cluster, Process
from tests.virtual.storm.faults import Faults
from tests.virtual.world.loop import Life
from tests.virtual.world.network import Call
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.server.moving.notes import decode_record
from utuple.store.contract import Transaction

_SHARES = (0.0, 0.3, 0.7)
"""Of a seed's orders, those that are aimed at."""
_SELDOM = frozenset(
    {
        *(MoveKind.DRAIN, MoveKind.RELEASE, MoveKind.RETURN, MoveKind.SUSPEND, MoveKind.MERGE),
        *(MoveKind.PARTITION, MoveKind.RECUT, MoveKind.GATHER),
    }
)
"""Of these, or of their calls, there are fewer: they are aimed at more often."""
_MANY = 4
_GIVE_UP_S = (8.5, 12.0)
"""A home cut off for so long gives a move up: its limit is 8 s."""


@dataclass(frozen=True)
class _Step:
    """Who dies when this step of this order is stored at its home."""

    move: Move
    step: MoveStep
    side: str


@dataclass(frozen=True)
class _Cut:
    """These two do not hear each other any more once this call of the other one comes, or was handled."""

    phase: str
    method: str
    home: str
    other: str


class Aims:
    def __init__(self, cluster: Cluster, faults: Faults) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._faults = faults
        self._dice = cluster.world.dice("aims")
        self._share = self._dice.choice(_SHARES)
        self._steps: list[_Step] = []
        self._cuts: list[_Cut] = []
        cluster.network.watchers.append(self._passes)
        cluster.when_died.append(self._died)
        for name in cluster.servers:
            disk = cluster.processes[name].disk
            assert disk is not None
            disk.when_stored.append(partial(self._stored, name))

    @property
    def are_over(self) -> bool:
        return self._faults.is_over

    def take(self, move: Move, line: Line) -> None:
        """This order is about to be sent."""
        dice = self._dice
        share = 1.6 * self._share if move.kind in _SELDOM else self._share
        if self._faults.is_over or dice.random() >= share:
            return
        aims: list[tuple[int, Callable[[Move, Line], None]]] = [
            (5, self._at_a_call),
            (6, self._at_a_step),
            (5 if move.kind in _SELDOM else 2, self._at_its_end),
        ]
        if move.kind not in ABORTABLE:
            del aims[-1]
        dice.choices([aim for _, aim in aims], [weight for weight, _ in aims])[0](move, line)

    def _at_a_call(self, move: Move, line: Line) -> None:
        method = self._dice.choice(CALLS[move.kind])
        if method == "forget":
            self._at_its_end(move, line)
        self._faults.ambush(self._dice.choice(PHASES), self._dice.choice(SIDES), {method})

    def _at_a_step(self, move: Move, line: Line) -> None:
        side = self._dice.choice(OF_MOVES)
        self._steps.append(_Step(move, self._dice.choice(STEPS), side))

    def _at_its_end(self, move: Move, line: Line) -> None:
        """Everything is done but the commit, and the other side is not heard any more."""
        phase, other = "before", move.helper or move.member
        method = self._dice.choice(("ready", "learn"))
        if move.kind is MoveKind.RELEASE:
            method = "vacant"
        elif move.kind is MoveKind.DRAIN and move.member == line.home:
            method = "ready"
        elif move.kind is MoveKind.DRAIN:
            phase, method, other = "after", "ship", move.member
        if other != line.home:
            self._cuts.append(_Cut(phase, method, line.home, other))

    # --- when it comes -------------------------------------------------------------------------------

    def _passes(self, phase: str, call: Call) -> None:
        if not self._cuts or self._faults.is_over:
            return
        for cut in self._cuts:
            if (phase, call.method, call.target.name) == (cut.phase, cut.method, cut.other):
                self._cuts.remove(cut)
                self._world.count("fault home cut off before a commit")
                self._faults.cut([cut.home], [cut.other], self._dice.uniform(*_GIVE_UP_S))
                return

    def _stored(self, home: str, transaction: Transaction) -> None:
        if self._faults.is_over:
            return
        for record in _records(transaction.notes):
            if record.step is MoveStep.LEARNING:
                self._note_begin(record, home)
            for aim in [one for one in self._steps if one.move == record.move]:
                if aim.step is record.step:
                    self._steps.remove(aim)
                    names = [home] if aim.side == "home" else sorted(_others(record, home))
                    if names:
                        name = self._dice.choice(names)
                        self._world.count("fault ambush of a step")
                        self._world.loop.later(0.0, self._kill, name)

    def _kill(self, name: str) -> None:
        if not self._faults.is_over:
            self._world.trace("ambush of a step:", name)
            self._cluster.crash(name, self._faults.away_s())

    def _note_begin(self, record: MoveRecord, home: str) -> None:
        """A move is under way."""
        if len(record.before.members) >= _MANY:
            self._world.count(MANY_MEMBERS)
        if record.move.kind is MoveKind.MERGE:
            self._note_merge(record, home)
        section = record.move.section
        for name in self._cluster.servers:
            disk = self._cluster.processes[name].disk
            for other in _records(disk.notes) if disk is not None else ():
                beside = other.move.section
                if other.step in STEPS and (
                    beside.end == section.start or section.end == beside.start
                ):
                    self._world.count(NEIGHBOURS)

    def _note_merge(self, record: MoveRecord, home: str) -> None:
        disk = self._cluster.processes[home].disk
        assert disk is not None
        parts = [line for line in disk.lines if line.section.overlaps(record.move.section)]
        if len({line.epoch for line in parts}) > 1:
            self._world.count(MERGED_EPOCHS)
        if len(record.before.members) > 1:
            self._world.count(MERGED_MEMBERS)

    # --- what was met --------------------------------------------------------------------------------

    def _died(self, process: Process, life: Life) -> None:
        """Which moves were in which step, durably, when a server died?"""
        if process.name not in self._cluster.servers:
            return
        for home in self._cluster.servers:
            place = self._cluster.processes[home]
            if place.disk is None or not (place is process or place.is_up):
                continue
            for record in _records(place.disk.notes):
                if record.step in STEPS and (
                    home == process.name or process.name in _others(record, home)
                ):
                    side = "home" if home == process.name else "other"
                    self._world.count(in_step(side, record.move.kind, record.step))


def _records(notes: Mapping[str, bytes | None]) -> list[MoveRecord]:
    found = []
    for note, body in notes.items():
        kind, _, id_ = note.partition("/")
        if kind == "move" and body is not None:
            found.append(decode_record(bytes.fromhex(id_), body))
    return found


def _others(record: MoveRecord, home: str) -> set[str]:
    """Who takes part beside the home: helper, learner, heir; of a flip or suspension its member and whoever
    must hear of it."""
    named = {record.move.member, record.move.helper} - {home, ""}
    return named or set(record.audience) - {home}
