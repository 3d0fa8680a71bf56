"""The steps of a move, as they reach the writer, and what it keeps of them. Pure values.

Each step is carried out in the writer's order and is durable before it is answered. On the home: Begin,
Commit, Abort, End. On whoever takes part: Learn, Promise, HearLines, Forget, BeginShipping, Take,
EndShipping.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from utuple.cluster.line import Line, Member, ServerInfo
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.model.section import Section
from utuple.store.contract import FormalPosition


@dataclass(frozen=True, slots=True)
class Shipment:
    """At a drained server: what is being brought to the heir, until it is deleted here."""

    section: Section
    heir: str
    is_settled: bool = False
    """The move is committed: what came since is handed over, then everything goes."""
    cancelled: tuple[bytes, ...] = ()
    """CFs cancelled here since."""


@dataclass(frozen=True, slots=True)
class Taken:
    """At the heir: how far a move's shadows have come."""

    seqs: dict[str, int]
    rows: int = 0


# --- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    id: bytes
    move: Move


@dataclass(frozen=True, slots=True)
class Commit:
    id: bytes
    cut: int | None
    """How many changes of the section's EFs and CAs the learner has; None: nobody had to learn."""
    copied: int = 0
    rows: int = 0
    cuts: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    id: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Everyone who must know does."""

    id: bytes
    held_us: int = 0


@dataclass(frozen=True, slots=True)
class Learn:
    id: bytes
    attempt: int
    """Grows each time the home begins anew."""
    number: int
    """Of this portion: a late one is passed over, or it could undo what came after it."""
    templates: Sequence[Packed]
    left_us: Sequence[int]
    """The lifetime each has left."""
    cancelled: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Promise:
    """Durably ready for these lines, once it is answered."""

    id: bytes
    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]
    learned: tuple[int, bytes] | None
    """Count and digest of what must be known."""
    shipped: int | None
    """How many shadows must be held."""


@dataclass(frozen=True, slots=True)
class HearLines:
    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]
    settled: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Forget:
    id: bytes


@dataclass(frozen=True, slots=True)
class CheckLine:
    """Is this the line here, in the writer's order, and is this server off in it?"""

    line: Line


@dataclass(frozen=True, slots=True)
class BeginShipping:
    id: bytes
    line: Line
    heir: ServerInfo


@dataclass(frozen=True, slots=True)
class Take:
    id: bytes
    origin: str
    after: int
    events: Columns
    seqs: array[int]
    events_left_us: array[int]
    devices: Columns
    devices_left_us: array[int]
    positions: Sequence[FormalPosition] = ()
    cancelled: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class EndShipping:
    """The heir has everything: what was shipped is deleted."""

    id: bytes


@dataclass(frozen=True, slots=True)
class Leave:
    """The operator's wish."""

    stay: bool


Step: TypeAlias = (
    Begin
    | Commit
    | Abort
    | End
    | Learn
    | Promise
    | HearLines
    | Forget
    | CheckLine
    | BeginShipping
    | Take
    | EndShipping
    | Leave
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step."""

    done: bool
    reason: str = ""
    never: bool = False
    """It is not a matter of time."""
    count: int = 0
    digest: bytes = b""


# --- as notes ------------------------------------------------------------------------------------


def encode_record(record: MoveRecord) -> bytes:
    move = record.move
    document = {
        "kind": move.kind.value,
        "section": [move.section.start, move.section.end],
        "epoch": move.epoch,
        "member": move.member,
        "helper": move.helper,
        "key": move.key,
        "why": move.why,
        "before": _line_to_list(record.before),
        "after": [_line_to_list(line) for line in record.after],
        "step": record.step.value,
        **{name: getattr(record, name) for name in _PLAIN},
    }
    return json.dumps(document).encode()


def decode_record(id_: bytes, body: bytes) -> MoveRecord:
    document = json.loads(body)
    move = Move(
        MoveKind(document["kind"]),
        Section(*document["section"]),
        document["epoch"],
        document["member"],
        document["helper"],
        document["key"],
        document["why"],
    )
    return MoveRecord(
        id_,
        move,
        _line_from_list(document["before"]),
        MoveStep(document["step"]),
        tuple(_line_from_list(line) for line in document["after"]),
        **{name: document[name] for name in _PLAIN},
    )


_PLAIN = ("began_us", "committed_us", "ended_us", "copied", "rows", "held_us", "cuts", "reason")


def encode_lines(lines: Sequence[Line]) -> bytes:
    return json.dumps([_line_to_list(line) for line in lines]).encode()


def decode_lines(body: bytes) -> tuple[Line, ...]:
    return tuple(_line_from_list(line) for line in json.loads(body))


def encode_shipment(shipment: Shipment) -> bytes:
    return json.dumps(
        {
            "section": [shipment.section.start, shipment.section.end],
            "heir": shipment.heir,
            "is_settled": shipment.is_settled,
            "cancelled": [id_.hex() for id_ in shipment.cancelled],
        }
    ).encode()


def decode_shipment(body: bytes) -> Shipment:
    document = json.loads(body)
    return Shipment(
        Section(*document["section"]),
        document["heir"],
        document["is_settled"],
        tuple(bytes.fromhex(id_) for id_ in document["cancelled"]),
    )


def encode_taken(taken: Taken) -> bytes:
    return json.dumps({"seqs": taken.seqs, "rows": taken.rows}).encode()


def decode_taken(body: bytes) -> Taken:
    document = json.loads(body)
    return Taken(document["seqs"], document["rows"])


def with_cancelled(shipment: Shipment, id_: bytes) -> Shipment:
    return replace(shipment, cancelled=(*shipment.cancelled, id_))


def _line_to_list(line: Line) -> list[Any]:
    members = [[m.name, m.accumulatable, m.suspended] for m in line.members]
    return [line.section.start, line.section.end, line.epoch, members]


def _line_from_list(given: list[Any]) -> Line:
    start, end, epoch, members = given
    return Line(Section(start, end), epoch, tuple(Member(*member) for member in members))
