"""Between planned moves and the orders a home is given. Pure."""

from __future__ import annotations

from typing import assert_never

from load_monitor.planning.moves import (
    Drain,
    FlipOff,
    FlipOn,
    HelpMemory,
    HelpProcessing,
    Move,
    Release,
    Return,
    Split,
    Suspend,
)
from utuple.cluster.line import Line
from utuple.cluster.move import MoveKind, Order


def order_of(move: Move, line: Line, key: int | None = None) -> Order | None:
    """The order to the line's home. A split without a key inside its section cannot be ordered yet."""
    section, epoch, why = line.section, line.epoch, move.why
    match move:
        case HelpProcessing():
            kind, member, helper = MoveKind.HELP_PROCESSING, move.overloaded, move.helper
        case HelpMemory():
            kind, member, helper = MoveKind.HELP_MEMORY, move.overloaded, move.helper
        case FlipOn():
            kind, member, helper = MoveKind.FLIP_ON, move.member, ""
        case FlipOff():
            kind, member, helper = MoveKind.FLIP_OFF, move.member, ""
        case Split():
            if key is None or not section.start < key < section.end:
                return None
            return Order(MoveKind.SPLIT, section, epoch, move.overloaded, move.newcomer, key, why)
        case Drain():
            kind, member, helper = MoveKind.DRAIN, move.member, move.heir
        case Release():
            kind, member, helper = MoveKind.RELEASE, move.member, ""
        case Suspend():
            kind, member, helper = MoveKind.SUSPEND, move.member, ""
        case Return():
            kind, member, helper = MoveKind.RETURN, move.member, ""
        case _:
            assert_never(move)
    return Order(kind, section, epoch, member, helper, why=why)


def move_of(order: Order, home: str) -> Move:
    """What an order at that home does, whoever gave it."""
    section, member, helper, why = order.section, order.member, order.helper, order.why
    match order.kind:
        case MoveKind.HELP_PROCESSING:
            return HelpProcessing(section, member, helper, why)
        case MoveKind.HELP_MEMORY:
            return HelpMemory(section, member, helper, why)
        case MoveKind.FLIP_ON:
            return FlipOn(section, member, why)
        case MoveKind.FLIP_OFF:
            return FlipOff(section, member, why)
        case MoveKind.SPLIT:
            return Split(section, member, helper, why)
        case MoveKind.DRAIN:
            return Drain(section, member, helper, why)
        case MoveKind.RELEASE:
            return Release(section, member, why)
        case MoveKind.SUSPEND:
            return Suspend(section, member, why)
        case MoveKind.RETURN:
            return Return(section, member, home, why)  # a home teaches
