"""Moves and their records on the wire: each goes through unchanged, and what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.cluster.layout import NO_LAYOUT
from utuple.cluster.move import KINDS, Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import move_from_wire, move_to_wire, record_from_wire, record_to_wire


@st.composite
def moves(draw: st.DrawFn) -> Move:
    kind = draw(st.sampled_from(MoveKind))
    helper = draw(some.names) if KINDS[kind].has_helper else ""
    layout = draw(some.layouts()) if kind is MoveKind.PARTITION else NO_LAYOUT
    return Move(
        kind,
        draw(some.sections),
        draw(st.integers(1, 1 << 60)),
        draw(some.names),
        helper,
        draw(some.keys),
        draw(some.names),
        layout,
    )


@given(moves())
@example(Move(MoveKind.SPLIT, Section(0, HASH_SPACE), 1, "a", "b", HASH_SPACE - 1, "why"))
def test_a_move_goes_through_unchanged(move: Move) -> None:
    raw = move_to_wire(move).SerializeToString()
    again = move_from_wire(pb.Move.FromString(raw))
    assert again == move and again.why == move.why


@st.composite
def records(draw: st.DrawFn) -> MoveRecord:
    numbers = st.integers(0, 1 << 31)
    return MoveRecord(
        draw(st.binary(min_size=16, max_size=16)),
        draw(moves()),
        draw(some.lines()),
        draw(st.sampled_from(MoveStep)),
        tuple(draw(st.lists(some.lines(), max_size=2))),
        began_us=draw(numbers),
        committed_us=draw(numbers),
        ended_us=draw(numbers),
        copied=draw(numbers),
        rows=draw(numbers),
        held_us=draw(numbers),
        cuts=draw(numbers),
        reason=draw(some.names),
    )


@given(records())
def test_a_record_goes_through_unchanged(record: MoveRecord) -> None:
    raw = record_to_wire(record).SerializeToString()
    assert record_from_wire(pb.MoveRecord.FromString(raw)) == record


def test_the_protocol_knows_exactly_our_kinds_and_steps() -> None:
    assert set(pb.MoveKind.keys()) - {"MOVE_UNKNOWN"} == {kind.name for kind in MoveKind}
    assert set(pb.MoveStep.keys()) - {"STEP_UNKNOWN"} == {step.name for step in MoveStep}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.Move(last=9, epoch=1, member="a"), "kind"),
        (pb.Move(kind=pb.FLIP_OFF, start=5, last=3, epoch=1, member="a"), "section"),
        (pb.Move(kind=pb.FLIP_OFF, last=9, epoch=1), "member"),
        (pb.Move(kind=pb.DRAIN, last=9, epoch=1, member="a"), "helper"),
        (pb.Move(kind=pb.RELEASE, last=9, epoch=1, member="a", helper="b"), "helper"),
    ],
)
def test_what_is_no_move_is_refused_by_its_field(message: pb.Move, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        move_from_wire(message)
    assert refused.value.field == field


def test_a_step_of_a_later_version_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInput, match="COMMITTED"):
        record_from_wire(pb.MoveRecord(move=pb.Move(kind=pb.FLIP_OFF, last=9, member="a")))


def test_a_kind_of_a_later_version_is_refused_with_those_that_are_known() -> None:
    message = pb.Move(last=9, epoch=1, member="a")
    message.MergeFromString(b"\x08\x63")  # kind = 99
    with pytest.raises(InvalidInput, match="SPLIT"):
        move_from_wire(message)
