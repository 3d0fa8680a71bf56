"""The moves of load as values, and what each does to its line. Pure.

A move names what shall become of one line; how that is carried out without losing a match is the servers'
protocol. `carried_out` gives the lines that result, by utuple.cluster.changes alone, so that a simulation
applies plans as the cluster does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from utuple.cluster import changes
from utuple.cluster.line import Line
from utuple.cluster.table import Table
from utuple.errors import InvalidInput
from utuple.model.section import Section


@dataclass(frozen=True, slots=True)
class HelpProcessing:
    """Section 3.4, figure 3: the helper joins; both take EAs and CFs."""

    section: Section
    overloaded: str
    helper: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class HelpMemory:
    """Section 3.5, figure 4: the helper joins, or comes on; the overloaded member goes off."""

    section: Section
    overloaded: str
    helper: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class FlipOn:
    """A.1: a member that is off comes on. EFs and CAs reached it with lifetime 0 while it was off: it
    must be taught those before it takes EAs and CFs, so this is a help to a member, not a bare flag."""

    section: Section
    member: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class FlipOff:
    """A.1: a member goes off because the others that are on suffice. Nothing is copied."""

    section: Section
    member: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Split:
    """Section 3.6, figure 5: for a server that has no section yet. The overloaded server chooses the key
    where it carries the move out: that of a random stored uTuple."""

    section: Section
    overloaded: str
    newcomer: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Drain:
    """The last step of a drain: what the member, which is off, still holds is brought to the heir, and
    the member leaves the line."""

    section: Section
    member: str
    heir: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Release:
    """A.3: a member that is off and holds nothing leaves the line."""

    section: Section
    member: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Suspend:
    """EFs and CAs no longer wait for a member that is silent."""

    section: Section
    member: str
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    """A suspended member answers again: the teacher, a member that is on, has every EF and CA it missed.
    It comes back as a helper does, on."""

    section: Section
    member: str
    teacher: str
    why: str = field(default="", compare=False)


Help: TypeAlias = HelpProcessing | HelpMemory
Move: TypeAlias = Help | FlipOn | FlipOff | Split | Drain | Release | Suspend | Return


def servers_of(move: Move) -> tuple[str, ...]:
    """The servers a move names: they are at work in it."""
    match move:
        case HelpProcessing() | HelpMemory():
            return (move.overloaded, move.helper)
        case Split():
            return (move.overloaded, move.newcomer)
        case Drain():
            return (move.member, move.heir)
        case Return():
            return (move.member, move.teacher)
        case _:
            return (move.member,)


def turned_on(move: Move) -> str | None:
    """Who takes EAs and CFs of the section after the move and may not have before."""
    match move:
        case HelpProcessing() | HelpMemory():
            return move.helper
        case Split():
            return move.newcomer
        case FlipOn() | Return():
            return move.member
        case _:
            return None


def turned_off(move: Move) -> str | None:
    """Who no longer takes EAs and CFs of the section, or of a part of it."""
    match move:
        case HelpMemory() | Split():
            return move.overloaded
        case FlipOff() | Suspend():
            return move.member
        case _:
            return None


def changed(move: Move, line: Line, key: int | None = None) -> tuple[Line, ...]:
    """The line's next epoch: one line, or the two halves of a split (at `key`, else in the middle)."""
    match move:
        case HelpProcessing():
            return (changes.helped(line, move.overloaded, move.helper),)
        case HelpMemory():
            return (changes.helped(line, move.overloaded, move.helper, memory=True),)
        case FlipOn():
            return (changes.flagged(line, move.member, accumulatable=True),)
        case FlipOff():
            return (changes.flagged(line, move.member, accumulatable=False),)
        case Return():
            return (changes.helped(line, move.teacher, move.member),)
        case Split():
            middle = (line.section.start + line.section.end) // 2
            return changes.split(
                line, middle if key is None else key, move.overloaded, move.newcomer
            )
        case Drain() | Release():
            return (changes.released(line, move.member),)
        case Suspend():
            return (changes.suspended(line, move.member),)
    assert_never(move)


def carried_out(move: Move, table: Table, key: int | None = None) -> tuple[Line, ...]:
    """The lines for `table` to hear once the move is made."""
    line = table.line_of(move.section.start)
    if line is None or line.section != move.section:
        raise InvalidInput("section", str(move.section), f"is no line's of the table, but {line}")
    return changed(move, line, key)
