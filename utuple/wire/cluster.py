"""Lines, servers, load and moves on the wire.

Kinds and steps of moves go by name, so that the numbers are the protocol's alone.
"""

from __future__ import annotations

from functools import lru_cache

from utuple.cluster.layout import decode_layout, encode_layout
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.cluster.load import Load, LoadByCause
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.past import decode_history, encode_history
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import InvalidInput
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb

REMEMBERED = 4_096
"""Lines and servers are told again and again, mostly the same ones: so many are read only once."""
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


def line_to_wire(line: Line) -> pb.Line:
    return pb.Line(
        start=line.section.start,
        last=line.section.end - 1,
        epoch=line.epoch,
        members=[
            pb.Member(
                name=member.name, accumulatable=member.accumulatable, suspended=member.suspended
            )
            for member in line.members
        ],
        layout=encode_layout(line.layout),
        past=encode_history(line.past),
    )


def line_from_wire(message: pb.Line) -> Line:
    return _line(message.SerializeToString())


@lru_cache(REMEMBERED)
def _line(raw: bytes) -> Line:
    message = pb.Line.FromString(raw)
    return Line(
        Section(message.start, message.last + 1),
        message.epoch,
        tuple(Member(m.name, m.accumulatable, m.suspended) for m in message.members),
        decode_layout(message.layout),
        decode_history(message.past),
    )


def server_to_wire(server: ServerInfo) -> pb.ServerInfo:
    return pb.ServerInfo(
        name=server.name, address=server.address, role=server.role, since_us=server.since_us
    )


def server_from_wire(message: pb.ServerInfo) -> ServerInfo:
    return _server(message.SerializeToString())


@lru_cache(REMEMBERED)
def _server(raw: bytes) -> ServerInfo:
    message = pb.ServerInfo.FromString(raw)
    return ServerInfo(message.name, message.address, message.role or "server", message.since_us)


def load_to_wire(load: Load) -> pb.Load:
    return pb.Load(
        queued=load.queued,
        arrival_per_s=load.arrival_per_s,
        service_per_s=load.service_per_s,
        busy=load.busy,
        templates=load.templates,
    )


def load_from_wire(message: pb.Load) -> Load:
    return Load(
        message.queued,
        message.arrival_per_s,
        message.service_per_s,
        message.busy,
        message.templates,
    )


def causes_to_wire(causes: LoadByCause) -> pb.LoadByCause:
    return pb.LoadByCause(
        events=causes.events, searches=causes.searches, deliveries=causes.deliveries
    )


def causes_from_wire(message: pb.LoadByCause) -> LoadByCause:
    return LoadByCause(message.events, message.searches, message.deliveries)


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
        layout=encode_layout(move.layout),
        past=encode_history(move.past),
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
        decode_layout(message.layout),
        decode_history(message.past),
    )


def record_to_wire(record: MoveRecord) -> pb.MoveRecord:
    return pb.MoveRecord(
        move=move_to_wire(record.move),
        step=pb.MoveStep.Value(record.step.name),
        lines=map(line_to_wire, (record.before, *record.after)),
        **{name: getattr(record, name) for name in _PLAIN},
    )


def record_from_wire(message: pb.MoveRecord) -> MoveRecord:
    step = _STEPS.get(message.step)
    if step is None:
        names = ", ".join(step.name for step in MoveStep)
        raise InvalidInput("step", message.step, f"must be one of {names}")
    before, *after = map(line_from_wire, message.lines or [pb.Line()])
    return MoveRecord(
        move=move_from_wire(message.move),
        step=step,
        before=before,
        after=tuple(after),
        **{name: getattr(message, name) for name in _PLAIN},
    )
