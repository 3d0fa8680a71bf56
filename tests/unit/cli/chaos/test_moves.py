"""Moves are counted by what their homes recorded of them."""

from __future__ import annotations

from utuple.cli.chaos.moves import Moves
from utuple.wire import utuple_pb2 as pb


def record(n: int, kind: pb.MoveKind.ValueType, step: pb.MoveStep.ValueType) -> pb.MoveRecord:
    return pb.MoveRecord(id=bytes([n]) * 16, order=pb.MoveOrder(kind=kind), step=step)


def test_a_move_counts_once_its_epoch_is_decided_and_only_once() -> None:
    moves = Moves()
    moves.note(record(1, pb.HELP_MEMORY, pb.LEARNING))
    assert moves.summary == {"total": 0, "by_kind": {}, "aborted": 0}
    assert moves.under_way == ["help-memory"]
    moves.note(record(1, pb.HELP_MEMORY, pb.COMMITTED))
    moves.note(record(1, pb.HELP_MEMORY, pb.DONE))
    moves.note(record(2, pb.SPLIT, pb.COMMITTED))
    assert moves.summary == {"total": 2, "by_kind": {"help-memory": 1, "split": 1}, "aborted": 0}
    assert moves.under_way == ["split"]


def test_a_move_that_was_given_up_is_no_move_and_is_under_way_until_everyone_knows() -> None:
    moves = Moves()
    moves.note(record(1, pb.DRAIN, pb.ABORTED))
    assert moves.summary == {"total": 0, "by_kind": {}, "aborted": 1}
    assert moves.under_way == ["drain"]
    moves.note(record(1, pb.DRAIN, pb.OVER))
    assert moves.under_way == [] and moves.aborted == 1
