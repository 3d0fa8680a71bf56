"""Moves ordered continually, of every kind, at whoever is home; and how they must end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from tests.virtual.coverage import ended
from tests.virtual.plan import BEGIN_S, STORM_S
from tests.virtual.programs.cluster import Cluster
from tests.virtual.programs.servers import address_of
from tests.virtual.storm.aims import Aims
from tests.virtual.storm.around_moves import Scenes
from utuple.cluster.dimension import Bound
from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line
from utuple.cluster.move import KINDS, Move, MoveKind
from utuple.cluster.record import MoveStep
from utuple.cluster.table import Table
from utuple.errors import UTupleError
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.wire.cluster import move_to_wire

_MOVES_MOST = (0, 6, 12, 18)
_BESIDE_MONITORS = (0, 6)
_NEIGHBOURS = 0.3
"""The share of orders with one for the neighbouring section at the same time."""
_LINES_MOST = 6
_ILLEGAL = 0.1
"""The share of orders that do not fit the table."""
_WEIGHTS = {
    MoveKind.DRAIN: 4,
    MoveKind.RELEASE: 4,
    MoveKind.FLIP_ON: 2,
    MoveKind.FLIP_OFF: 2,
    MoveKind.MERGE: 3,
    MoveKind.PARTITION: 4,
    MoveKind.RECUT: 3,
    MoveKind.GATHER: 2,
    MoveKind.PRUNE: 2,
}
"""They fit only where a member is off, several are on, or neighbours have the same home."""
FINISH_S = 120.0
"""From healing until every move is over and nobody is suspended."""


class Moves:
    def __init__(
        self, cluster: Cluster, families: Iterable[Family], scenes: Scenes, aims: Aims
    ) -> None:
        self._cluster = cluster
        self._scenes = scenes
        self._aims = aims
        self._world = cluster.world
        self._dice = cluster.world.dice("moves")
        self._keys = [key_of(*family) for family in families]

    async def run(self, *, planned: bool) -> None:
        """Through the storm; where monitors plan, this is an operator beside them."""
        dice = self._dice
        most = dice.choice(_BESIDE_MONITORS if planned else _MOVES_MOST)
        times = sorted(dice.uniform(BEGIN_S, BEGIN_S + STORM_S) for _ in range(most))
        for at_s in times:
            await asyncio.sleep(max(0.0, at_s - self._world.now_s))
            lines = list(self._table())
            if not lines:
                continue
            at = dice.randrange(len(lines))
            await asyncio.gather(*map(self._give, self._some_orders(lines[at : at + 2])))

    def _some_orders(self, lines: Sequence[Line]) -> list[Move]:
        """For the first of these lines; often one for its neighbour as well. If they are alike, that is the same one: then
        they stay so, and can be merged with several members."""
        first, *beside = lines
        moves = [self._some_order(first)]
        if beside and self._dice.random() < _NEIGHBOURS:
            (other,) = beside
            if moves[0] is not None and other.members == first.members:
                moves.append(_twin(moves[0], other))
            else:
                moves.append(self._some_order(other))
        return [move for move in moves if move is not None]

    async def _give(self, move: Move) -> None:
        self.expect(move)
        await self._send(move)
        if move.kind is MoveKind.SUSPEND:
            self._world.loop.later(self._dice.uniform(3.0, 8.0), self._bring_back)

    def expect(self, move: Move) -> None:
        """It is about to be sent: scenes are played around it, and faults are aimed at it. Not in the calm:
        what a scene does then would still be under way when the history is judged."""
        line = self._table().line_of(move.section.start)
        if line is not None and not self._aims.are_over:
            self._scenes.play(move, line)
            self._aims.take(move, line)

    def _bring_back(self) -> None:
        life = self._cluster.processes["operator"].life
        assert life is not None
        for line in self._table():
            for move in _returns(line):
                self.expect(move)
                self._world.loop.start(life, self._send(move))

    async def finish(self) -> None:
        """All is healed: who is suspended returns, and every move comes to its end."""
        until_s = self._world.now_s + FINISH_S
        calm = 0
        while self._world.now_s < until_s:
            away = [one for line in self._table() for one in _returns(line)]
            for move in away:
                await self._send(move)
            calm = 0 if away or self._undone() else calm + 1
            if calm == 2:  # an order that was thought lost may still have been on its way
                self._count()
                return
            await asyncio.sleep(2.0)
        self._count()
        for said in self._undone() or [str(line) for line in self._table()]:
            self._world.bug(f"never over, though all is healed: {said}")

    # --- what there is -------------------------------------------------------------------------------

    def _table(self) -> Table:
        """The newest lines of all, up or not: as a monitor would know them soon."""
        table = Table()
        for name in self._cluster.servers:
            engine = self._cluster.engine(name)
            for line in engine.writer.lines.all if engine is not None else ():
                table.hear(line)
        return table

    def _undone(self) -> list[str]:
        found = []
        for name in self._cluster.servers:
            engine = self._cluster.engine(name)
            if engine is None or self._cluster.network.place(address_of(name)) is None:
                found.append(f"{name} is down, or has not opened its store yet")
                continue
            if engine.state != "serving":
                found.append(f"{name} is {engine.state}: orders may wait there")
            moves = engine.writer.moves
            found += [f"{name}: {record}" for record in moves.home.undone]
            found += [f"{name}: ships {move.hex()}" for move in moves.participant.shipments]
        return found

    def _count(self) -> None:
        for name in self._cluster.servers:
            engine = self._cluster.engine(name)
            for record in engine.writer.moves.home.records.values() if engine is not None else ():
                done = record.step in (MoveStep.DONE, MoveStep.COMMITTED)
                self._world.count(ended(record.move.kind, completed=done))

    # --- orders --------------------------------------------------------------------------------------

    def _some_order(self, line: Line) -> Move | None:
        dice = self._dice
        servers = self._cluster.servers
        if dice.random() < _ILLEGAL:
            return _any_order(line, servers, self._keys, dice)
        by_kind: dict[MoveKind, list[Move]] = {}
        lines = list(self._table())
        fitting = _fitting(line, servers, self._keys, splits=len(lines) < _LINES_MOST)
        for move in (*fitting, *_merges(line, lines)):
            by_kind.setdefault(move.kind, []).append(move)
        if not by_kind:
            return None
        kinds = sorted(by_kind, key=lambda kind: kind.value)
        kind = dice.choices(kinds, [_WEIGHTS.get(kind, 1) for kind in kinds])[0]
        return dice.choice(by_kind[kind])

    async def _send(self, move: Move) -> None:
        line = self._table().line_of(move.section.start)
        if line is None:
            return
        self._world.trace("order", move)
        try:
            answer = await self._cluster.network.call(
                address_of(line.home), "move", move_to_wire(move), 3.0
            )
        except UTupleError as error:
            self._world.trace("order lost", error)
        else:
            self._world.trace("order", "accepted" if answer.accepted else answer.reason)


def _returns(line: Line) -> Iterator[Move]:
    for member in line.members:
        if member.suspended:
            yield Move(MoveKind.RETURN, line.section, line.epoch, member.name)


def _fitting(line: Line, servers: list[str], keys: list[int], *, splits: bool) -> Iterator[Move]:
    """Every order that fits this line."""
    section, epoch = line.section, line.epoch
    on = line.accumulatable
    off = [m.name for m in line.members if not m.accumulatable and not m.suspended]
    others = [name for name in servers if line.member(name) is None]
    yield from _returns(line)
    for member in on:
        for helper in (*others, *off):
            yield Move(MoveKind.HELP_PROCESSING, section, epoch, member, helper)
            yield Move(MoveKind.HELP_MEMORY, section, epoch, member, helper)
        if len(on) > 1:
            yield Move(MoveKind.FLIP_OFF, section, epoch, member)
        for key in keys if splits else ():
            if section.start < key < section.end:
                for helper in others:
                    yield Move(MoveKind.SPLIT, section, epoch, member, helper, key)
    for member in off:
        yield Move(MoveKind.FLIP_ON, section, epoch, member)
        yield Move(MoveKind.RELEASE, section, epoch, member)
        for heir in on:
            yield Move(MoveKind.DRAIN, section, epoch, member, heir)
    if line.layout.axes:
        yield Move(MoveKind.GATHER, section, epoch, line.home)
        if set(on) - {line.home}:
            for layout in (*_layouts(line), *_layouts(line, turned=1)):
                for learner, step in line.layout.recuts(layout, line.home)[:1]:
                    yield Move(MoveKind.RECUT, section, epoch, line.home, learner, layout=step)
        if line.past:
            yield Move(MoveKind.PRUNE, section, epoch, line.home)
    elif len(on) > 1 and line.home in on:
        for layout in _layouts(line):
            yield Move(MoveKind.PARTITION, section, epoch, line.home, layout=layout)
    for member in (*on, *off):
        if member != line.home and set(on) - {member}:
            yield Move(MoveKind.SUSPEND, section, epoch, member)


_CUTS: Sequence[tuple[str, tuple[Bound, ...]]] = (
    ("data.kg", (2, 5, 7)),
    ("address", ("o", "s")),
    ("lat", (20.0, 35.0)),
    ("lon", (-20.0, 139.0)),
)
"""Where the events and watches of a plan (plan.py) fall apart."""


def _layouts(line: Line, turned: int = 0) -> Iterator[Layout]:
    """By each dimension alone, by two, and by all. The home owns every segment; one each goes to the others in turn."""
    others = [name for name in line.accumulatable if name != line.home]
    chosen = [*((cut,) for cut in _CUTS), _CUTS[:2], _CUTS[1:3], _CUTS]
    for cuts in chosen:
        axes = []
        for turn, (dimension, bounds) in enumerate(cuts):
            names = (others[(at + turn + turned) % len(others)] for at in range(len(bounds) + 1))
            axes.append(Axis(dimension, bounds, tuple((name, line.home) for name in names)))
        yield Layout(tuple(axes))


def _merges(line: Line, lines: Iterable[Line]) -> Iterator[Move]:
    """With either neighbour of the same home; also if their members are others, which must be refused."""
    for other in lines:
        first, second = sorted((line, other), key=lambda one: one.section)
        if first.section.end == second.section.start and line.home == other.home:
            section = Section(first.section.start, second.section.end)
            epoch = max(line.epoch, other.epoch)
            yield Move(MoveKind.MERGE, section, epoch, line.home, key=second.section.start)


def _twin(move: Move, line: Line) -> Move | None:
    """The same for another line; what cuts or joins sections has none."""
    if move.kind in (MoveKind.SPLIT, MoveKind.MERGE):
        return None
    return replace(move, section=line.section, epoch=line.epoch)


def _any_order(line: Line, servers: list[str], keys: list[int], dice: Random) -> Move:
    kind = dice.choice(sorted(MoveKind, key=lambda kind: kind.value))
    member, helper = dice.choice(servers), dice.choice(servers)
    epoch = max(1, line.epoch + dice.choice((-1, 0, 0, 1)))
    with_helper = {one for one in MoveKind if KINDS[one].has_helper}
    key = dice.choice(keys)
    return Move(kind, line.section, epoch, member, helper if kind in with_helper else "", key)
