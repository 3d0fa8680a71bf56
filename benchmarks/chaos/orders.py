"""Which move is ordered next: drawn from dice among those that fit the table, now and then one that cannot be
made and must be refused. Pure: the same dice and the same table give the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from utuple.admin.choice import layout_of
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, line_of, target
from utuple.errors import InvalidInput
from utuple.model.section import Section

WEIGHTS: dict[MoveKind, float] = {
    MoveKind.HELP_PROCESSING: 3.0,
    MoveKind.HELP_MEMORY: 2.5,
    MoveKind.FLIP_ON: 2.0,
    MoveKind.FLIP_OFF: 2.5,
    MoveKind.SPLIT: 2.0,
    MoveKind.DRAIN: 1.0,
    MoveKind.RELEASE: 2.0,
    MoveKind.SUSPEND: 1.5,
    MoveKind.RETURN: 2.5,
    MoveKind.MERGE: 8.0,
    MoveKind.PARTITION: 1.0,
    MoveKind.RECUT: 1.0,
    MoveKind.GATHER: 2.0,
}
"""How often each comes, against the others that fit. More return than are suspended; a drain cannot be undone. Neighbours
that may merge are rare."""

MEMBERS_MOST = 4
"""Of a line: every EF and CA goes to each."""
JOINERS_LEAST = 3
"""Servers that must still be free to join a section once one more was drained of it."""
WRONG_SHARE = 0.1
BUSY_SHARE = 0.05
"""Of all orders are for any section, also one that a move is under way in."""
EMPTY_SHARE = 0.8
"""Of releases are of members that are known to hold nothing: the others are refused."""
NEW_SHARE = 0.5
"""Of those that need somebody else, while a server is in no line: it is that one."""
STORED_SHARE = 0.6
"""Of splits are at a stored uTuple's key, as section 3.6 has it; the rest anywhere."""
CUTS = ("address:p", "lat:35", "lon:0:139", "address:d:p,lat:0:35.6")
"""By which lines are partitioned, as an operator would say it."""
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Situation:
    lines: tuple[Line, ...]
    servers: tuple[str, ...]
    lines_most: int
    """A section is split only while there are fewer."""
    busy: tuple[Section, ...] = ()
    """Where a move is under way."""
    keys: tuple[int, ...] = ()
    """Of stored uTuples."""
    empty: frozenset[tuple[str, int]] = frozenset()
    """Members that hold nothing, each with the start of its section."""
    left: tuple[tuple[str, Section], ...] = ()
    """Servers that were drained of a section: they never join it again."""


@dataclass(frozen=True, slots=True)
class Ordered:
    to: str
    move: Move
    fits: bool = True
    """False: no server may take it, whatever has happened since."""


def next_order(dice: Random, now: Situation) -> Ordered | None:
    """None if nothing fits."""
    if now.lines and dice.random() < WRONG_SHARE:
        return dice.choice(list(wrong_orders(dice.choice(now.lines), now.servers)))
    lines = now.lines
    if dice.random() >= BUSY_SHARE:
        lines = tuple(line for line in lines if not any(map(line.section.overlaps, now.busy)))
    return _fitting(dice, lines, now)


def _fitting(dice: Random, lines: Sequence[Line], now: Situation) -> Ordered | None:
    kinds: dict[MoveKind, list[Ordered]] = {}
    for line in lines:
        for move in possible(line, now):
            kinds.setdefault(move.kind, []).append(Ordered(line.home, move))
    if not kinds:
        return None
    weights = [WEIGHTS[kind] for kind in kinds]
    kind = dice.choices(list(kinds), weights)[0]
    chosen = dice.choice(_preferred(dice, kind, kinds[kind], now))
    if kind is not MoveKind.SPLIT:
        return chosen
    return replace(chosen, move=replace(chosen.move, key=_key(dice, chosen.move.section, now)))


def _preferred(
    dice: Random, kind: MoveKind, ordered: list[Ordered], now: Situation
) -> list[Ordered]:
    some: list[Ordered] = []
    if kind is MoveKind.RELEASE and dice.random() < EMPTY_SHARE:
        some = [one for one in ordered if (one.move.member, one.move.section.start) in now.empty]
    elif ordered[0].move.helper and dice.random() < NEW_SHARE:
        at_work = {member.name for line in now.lines for member in line.members}
        some = [one for one in ordered if one.move.helper not in at_work]
    return some or ordered


def _key(dice: Random, section: Section, now: Situation) -> int:
    stored = sorted({key for key in now.keys if section.start < key < section.end})
    if stored and dice.random() < STORED_SHARE:
        return dice.choice(stored)
    return dice.randrange(section.start + 1, section.end)


# --- what fits a line --------------------------------------------------------------------------------


def possible(line: Line, now: Situation) -> list[Move]:
    """All that fit. A split's key is still to be chosen: it has the last of its section."""
    return [move for move in _sensible(line, now) if fits(move, now.lines)]


def fits(move: Move, lines: Sequence[Line]) -> bool:
    try:
        target(move, line_of(move, [one for one in lines if one.section.overlaps(move.section)]))
    except InvalidInput:
        return False
    return True


def _sensible(line: Line, now: Situation) -> Iterator[Move]:
    drained = {name for name, section in now.left if section.overlaps(line.section)}
    joiners = [name for name in now.servers if name not in drained and _may_join(name, line)]
    splits = len(now.lines) < now.lines_most and line.section.end - line.section.start > 1
    for member in line.members:
        if not member.accumulatable:
            yield from _of_one_that_is_off(member, line, len(set(now.servers) - drained))
            continue
        yield _order(MoveKind.FLIP_OFF, line, member)
        for helper in joiners:
            yield _order(MoveKind.HELP_PROCESSING, line, member, helper)
            yield _order(MoveKind.HELP_MEMORY, line, member, helper)
            if splits:
                last = line.section.end - 1
                yield replace(_order(MoveKind.SPLIT, line, member, helper), key=last)
    if not any(member.suspended for member in line.members):
        for member in line.members[1:]:
            yield _order(MoveKind.SUSPEND, line, member)
    if line.layout.axes:
        yield _order(MoveKind.GATHER, line, line.members[0])
        for by in CUTS if len(line.accumulatable) > 1 else ():
            for learner, layout in line.layout.recuts(layout_of(line, by), line.home)[:1]:
                yield replace(_order(MoveKind.RECUT, line, line.members[0], learner), layout=layout)
    elif len(line.accumulatable) > 1:
        for by in CUTS:
            yield replace(
                _order(MoveKind.PARTITION, line, line.members[0]), layout=layout_of(line, by)
            )
    for other in now.lines:
        if other.section.start == line.section.end:
            yield _merge(line, other)


def _of_one_that_is_off(member: Member, line: Line, free: int) -> Iterator[Move]:
    """`free` servers may still be members of this section."""
    yield _order(MoveKind.RETURN if member.suspended else MoveKind.FLIP_ON, line, member)
    yield _order(MoveKind.RELEASE, line, member)
    if free > JOINERS_LEAST:
        for heir in line.accumulatable:
            yield _order(MoveKind.DRAIN, line, member, heir)


def _may_join(name: str, line: Line) -> bool:
    member = line.member(name)
    return len(line.members) < MEMBERS_MOST if member is None else not member.accumulatable


def _order(kind: MoveKind, line: Line, member: Member, helper: str = "") -> Move:
    return Move(kind, line.section, line.epoch, member.name, helper, why="chaos")


def _merge(line: Line, other: Line) -> Move:
    whole, epoch = Section(line.section.start, other.section.end), max(line.epoch, other.epoch)
    key = other.section.start
    return Move(MoveKind.MERGE, whole, epoch, line.home, key=key, why="chaos")


# --- what fits no line -------------------------------------------------------------------------------


def wrong_orders(line: Line, servers: Sequence[str]) -> Iterator[Ordered]:
    """Each breaks one rule, and breaks it at this epoch for ever."""
    section, epoch, on = line.section, line.epoch, line.accumulatable
    orders = [
        Move(MoveKind.FLIP_ON, section, epoch, NOBODY),
        Move(MoveKind.HELP_PROCESSING, section, epoch, on[0], on[0]),
        Move(MoveKind.SPLIT, section, epoch, on[0], NOBODY, section.start),
        Move(MoveKind.SUSPEND, section, epoch, line.home),
        Move(MoveKind.RELEASE, section, epoch, on[0]),
        Move(MoveKind.RETURN, section, epoch, on[0]),
        Move(MoveKind.DRAIN, section, epoch, on[0], NOBODY),
        Move(MoveKind.FLIP_ON, section, epoch - 1, on[0]),
        Move(MoveKind.MERGE, section, epoch, line.home, key=section.start),
    ]
    if len(on) == 1:
        orders.append(Move(MoveKind.FLIP_OFF, section, epoch, on[0]))
    if section.end - section.start > 1:
        half = section.split_at((section.start + section.end) // 2)[0]
        orders.append(Move(MoveKind.FLIP_ON, half, epoch, on[0]))
    for move in orders:
        yield Ordered(line.home, replace(move, why="chaos: must be refused"), fits=False)
    for name in servers:
        if name != line.home:
            move = Move(MoveKind.FLIP_ON, section, epoch, on[0], why="chaos: not the home")
            yield Ordered(name, move, fits=False)
