"""Notes of moves are read back as they were written, also those of an older version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from tests.unit.wire.test_moves import records
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.model.section import Section
from utuple.server.moving.notes import (
    Received,
    Shipment,
    encode_lines,
    encode_received,
    encode_record,
    encode_shipment,
    note_of,
    read_notes,
)

ID = b"i" * 16


@given(records())
def test_a_record_is_read_as_it_was_written(record: MoveRecord) -> None:
    kept = read_notes({note_of("move", record.id): encode_record(record)})
    assert kept.records == {record.id: record}
    assert kept.records[record.id].move.why == record.move.why


@given(some.sections, some.names, st.booleans(), st.lists(st.binary(min_size=16, max_size=16)))
def test_a_shipment_is_read_as_it_was_written(
    section: Section, heir: str, is_settled: bool, cancelled: list[bytes]
) -> None:
    shipment = Shipment(section, heir, is_settled, tuple(cancelled))
    body = encode_shipment(shipment)
    kept = read_notes({note_of("shipment", ID): body, note_of("left", ID): body})
    assert kept.shipments == {ID: shipment} and kept.left == [section]


@given(some.lines(), some.names, st.integers(0, 1 << 60))
def test_promises_and_what_was_received_are_read_as_they_were_written(
    line: Line, origin: str, seq: int
) -> None:
    received = Received({origin: seq}, 3)
    kept = read_notes(
        {
            note_of("promise", ID): encode_lines([line, line]),
            note_of("taken", ID): encode_received(received),
            "leaving": b"",
        }
    )
    assert kept.promises == {ID: (line, line)} and kept.received == {ID: received}
    assert kept.leaving and not read_notes({}).leaving


def test_a_record_of_the_version_before_is_read() -> None:
    """As a server wrote it when a move was an order: a store with a move under way is opened by a newer server."""
    body = (
        b'{"kind": "help-processing", "section": [0, 10], "epoch": 3, "member": "a", "helper": "b", "key": 0, '
        b'"why": "hot", "before": [0, 10, 3, [["a", true, false]]], "after": [], "step": "learning", '
        b'"began_us": 5, "committed_us": 0, "ended_us": 0, "copied": 0, "rows": 0, "held_us": 0, "cuts": 0, "reason": ""}'
    )
    move = Move(MoveKind.HELP_PROCESSING, Section(0, 10), 3, "a", "b", why="hot")
    line = Line(Section(0, 10), 3, (Member("a"),))
    expected = MoveRecord(ID, move, line, MoveStep.LEARNING, began_us=5)
    assert read_notes({note_of("move", ID): body}).records == {ID: expected}
