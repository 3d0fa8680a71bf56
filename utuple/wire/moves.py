"""Moves and their records on the wire. Kinds and steps go by name, so that the numbers are the protocol's alone."""

from __future__ import annotations

from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import InvalidInput
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, line_to_wire

_KINDS = {pb.MoveKind.Value(kind.name): kind for kind in MoveKind}
_STEPS = {pb.MoveStep.Value(step.name): step for step in MoveStep}
_PLAIN = (
    "id",
    "began_us",
    "committed_us",
    "ended_us",
    "copied",
    "rows",
    "held_us",
    "cuts",
    "reason",
)
"""Fields of a record that are the same in the message."""


def move_to_wire(move: Move) -> pb.Move:
    return pb.Move(
        kind=pb.MoveKind.Value(move.kind.name),
        start=move.section.start,
        last=move.section.end - 1,
        epoch=move.epoch,
        member=move.member,
        helper=move.helper,
        key=move.key,
        why=move.why,
    )


def move_from_wire(message: pb.Move) -> Move:
    """Refuses a kind this version does not know, and whatever is no move."""
    kind = _KINDS.get(message.kind)
    if kind is None:
        names = ", ".join(kind.name for kind in MoveKind)
        raise InvalidInput("kind", message.kind, f"must be one of {names}")
    section = Section(message.start, message.last + 1)
    return Move(
        kind,
        section,
        message.epoch,
        message.member,
        message.helper,
        message.key,
        message.why,
    )


def record_to_wire(record: MoveRecord) -> pb.MoveRecord:
    return pb.MoveRecord(
        move=move_to_wire(record.move),
        step=pb.MoveStep.Value(record.step.name),
        before=line_to_wire(record.before),
        after=map(line_to_wire, record.after),
        **{name: getattr(record, name) for name in _PLAIN},
    )


def record_from_wire(message: pb.MoveRecord) -> MoveRecord:
    step = _STEPS.get(message.step)
    if step is None:
        names = ", ".join(step.name for step in MoveStep)
        raise InvalidInput("step", message.step, f"must be one of {names}")
    return MoveRecord(
        move=move_from_wire(message.move),
        step=step,
        before=line_from_wire(message.before),
        after=tuple(map(line_from_wire, message.after)),
        **{name: getattr(message, name) for name in _PLAIN},
    )
