"""What a server keeps of moves through a restart: named notes in its store, written with the step that changes them. Pure.

move/ID      a home's record of a move
promise/ID   the lines this server is ready for
shipment/ID  what is being brought from here to an heir
taken/ID     how far the shadows of a drain have come here
left/ID      a section whose uTuples were brought away from here
leaving      the operator wants this server out of every line
grants       the grants it judges by, as they were signed; their number stands before them
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from utuple.cluster.layout import decode_layout, encode_layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.past import decode_history, encode_history
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.model.section import Section

LEAVING = "leaving"
GRANTS = "grants"
_NUMBER_BYTES = 8


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
class Received:
    """At the heir: how far a move's shadows have come."""

    seqs: dict[str, int]
    rows: int = 0


@dataclass(slots=True)
class KeptNotes:
    records: dict[bytes, MoveRecord] = field(default_factory=dict)
    promises: dict[bytes, tuple[Line, ...]] = field(default_factory=dict)
    shipments: dict[bytes, Shipment] = field(default_factory=dict)
    received: dict[bytes, Received] = field(default_factory=dict)
    left: list[Section] = field(default_factory=list)
    leaving: bool = False


def read_notes(notes: Mapping[str, bytes]) -> KeptNotes:
    kept = KeptNotes(leaving=LEAVING in notes)
    for note, body in notes.items():
        kind, _, id_ = note.partition("/")
        match kind:
            case "move":
                kept.records[bytes.fromhex(id_)] = decode_record(bytes.fromhex(id_), body)
            case "promise":
                kept.promises[bytes.fromhex(id_)] = decode_lines(body)
            case "shipment":
                kept.shipments[bytes.fromhex(id_)] = decode_shipment(body)
            case "taken":
                kept.received[bytes.fromhex(id_)] = decode_received(body)
            case "left":
                kept.left.append(decode_shipment(body).section)
    return kept


def encode_grants(number: int, body: bytes) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big") + body


def decode_grants(note: bytes | None) -> tuple[int, bytes]:
    """Their number, 0 if there are none, and the document as it was signed."""
    if note is None:
        return 0, b""
    return int.from_bytes(note[:_NUMBER_BYTES], "big"), note[_NUMBER_BYTES:]


def note_of(kind: str, id_: bytes) -> str:
    return f"{kind}/{id_.hex()}"


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
        "layout": encode_layout(move.layout).decode(),
        "past": encode_history(move.past).decode(),
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
        decode_layout(document.get("layout", "").encode()),
        decode_history(document.get("past", "").encode()),
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


def encode_received(received: Received) -> bytes:
    return json.dumps({"seqs": received.seqs, "rows": received.rows}).encode()


def decode_received(body: bytes) -> Received:
    document = json.loads(body)
    return Received(document["seqs"], document["rows"])


def _line_to_list(line: Line) -> list[Any]:
    members = [[m.name, m.accumulatable, m.suspended] for m in line.members]
    layout, past = encode_layout(line.layout).decode(), encode_history(line.past).decode()
    return [line.section.start, line.section.end, line.epoch, members, layout, past]


def _line_from_list(given: list[Any]) -> Line:
    """What earlier versions have noted has no layout, or no past."""
    start, end, epoch, members, *rest = given
    serving = tuple(Member(*member) for member in members)
    layout, past = (*(said.encode() for said in rest), b"", b"")[:2]
    return Line(Section(start, end), epoch, serving, decode_layout(layout), decode_history(past))
