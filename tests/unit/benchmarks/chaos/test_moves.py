"""Moves are counted by what their homes recorded of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.chaos.moves import Moves, gist, sentence
from utuple.cluster.line import Line, Member
from utuple.cluster.move import KINDS, Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.model.section import Section

S = 1_000_000


def record(n: int, kind: MoveKind, step: MoveStep, reason: str = "") -> MoveRecord:
    section = Section(16 * n, 16 * n + 16)
    move = Move(kind, section, 3, "a", "b" if KINDS[kind].has_helper else "")
    before = Line(section, 3, (Member("a"),))
    return MoveRecord(bytes([n]) * 16, move, before, step, reason=reason)


def taught(n: int, held_us: int, began_us: int = 10 * S, ended_us: int = 11 * S) -> MoveRecord:
    made = record(n, MoveKind.HELP_MEMORY, MoveStep.DONE)
    return replace(made, began_us=began_us, ended_us=ended_us, held_us=held_us, cuts=1)


def test_a_move_counts_once_its_epoch_is_decided_and_only_once() -> None:
    moves = Moves()
    moves.note("a", [record(1, MoveKind.HELP_MEMORY, MoveStep.LEARNING)])
    assert (moves.made.total(), len(moves.under_way)) == (0, 1)
    assert moves.busy == (Section(16, 32),)
    moves.note("a", [record(1, MoveKind.HELP_MEMORY, MoveStep.COMMITTED)])
    moves.note(
        "a",
        [
            record(1, MoveKind.HELP_MEMORY, MoveStep.DONE),
            record(2, MoveKind.SPLIT, MoveStep.COMMITTED),
        ],
    )
    assert moves.made == {"help-memory": 1, "split": 1}
    assert [one.id[0] for one in moves.under_way] == [2] and not moves.busy


def test_a_move_whose_beginning_was_lost_never_was_and_one_that_ended_is_not_forgotten() -> None:
    moves = Moves()
    moves.note(
        "a",
        [record(1, MoveKind.SPLIT, MoveStep.DONE), record(2, MoveKind.DRAIN, MoveStep.LEARNING)],
    )
    moves.note("b", [])
    assert len(moves.under_way) == 1
    moves.note("a", [])
    assert moves.under_way == [] and moves.made == {"split": 1}


def test_a_move_that_was_given_up_is_no_move_and_is_under_way_until_everyone_knows() -> None:
    moves = Moves()
    moves.note("a", [record(1, MoveKind.DRAIN, MoveStep.ABORTED, "why")])
    assert moves.made.total() == 0
    assert [sentence(one) for one in moves.under_way] == [
        "drain a -> b [0000000000000010, 0000000000000020) e3: aborted, why"
    ]
    moves.note("a", [record(1, MoveKind.DRAIN, MoveStep.OVER, "why")])
    assert moves.under_way == [] and moves.left == ()
    summary = moves.summary()
    assert (summary["aborted"], summary["aborted_by_kind"]) == (1, {"drain": 1})
    assert summary["aborted_because"] == {"why": 1}


def test_who_was_drained_has_left_for_good() -> None:
    moves = Moves()
    moves.note(
        "a",
        [record(1, MoveKind.DRAIN, MoveStep.COMMITTED), record(2, MoveKind.RELEASE, MoveStep.DONE)],
    )
    assert moves.left == (("a", Section(16, 32)),)


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        ("server-2 cannot leave: it holds 17 uTuples", "cannot leave: it holds uTuples"),
        ("server-2 cannot leave: the line here is [0, 1) e3", "cannot leave"),
        (
            "not made within 60 s: the learner is not ready: server-1 was drained of this section",
            "was drained of this section",
        ),
        ("not made within 60 s: 127.0.0.1:12 does not take the connection", "not made within"),
        ("the address of server-5 is not known", "the address is not known"),
        ("server-1 knows 3 of 5", "… knows … of …"),
    ],
)
def test_reasons_are_counted_without_names_and_numbers(reason: str, short: str) -> None:
    assert gist(reason) == short


def test_how_long_efs_were_held_back_is_told_and_whether_a_fault_was_near() -> None:
    moves = Moves()
    for n, held_us in enumerate((3_000, 5_000, 150_000)):
        moves.note("a", [taught(n, held_us)])
    moves.note("a", [taught(7, 200_000, 50 * S, 52 * S)])
    assert moves.summary([(51 * S, 60 * S)])["held_back_ms"] == {
        "median": 150.0,
        "most": 200.0,
        "over_100": 2,
        "over_100_in_peace": 1,
    }
    assert [(one.id[0], peace) for one, peace in moves.held_back([(51 * S, 60 * S)])] == [
        (2, True),
        (7, False),
    ]
