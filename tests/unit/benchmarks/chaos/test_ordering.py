"""What was answered to orders, counted."""

from __future__ import annotations

from benchmarks.chaos.ordering import Given
from benchmarks.chaos.orders import Ordered
from utuple.cluster.move import Move, MoveKind
from utuple.model.section import Section

RIGHT = Ordered("a", Move(MoveKind.FLIP_OFF, Section(0, 9), 1, "a"))
WRONG = Ordered("a", Move(MoveKind.SUSPEND, Section(0, 9), 1, "a"), fits=False)


def test_orders_are_taken_or_refused_for_a_reason() -> None:
    given = Given()
    given.answered(RIGHT, accepted=True, reason="")
    given.answered(RIGHT, accepted=False, reason="a move is under way here: flip-off a [0, 9) e1")
    given.answered(WRONG, accepted=False, reason="a home that is down keeps its section unchanged")
    summary = given.summary
    assert (summary["taken"], summary["refused"]) == (1, {"a move is under way here": 1})
    assert (summary["wrong_refused"], summary["wrong_taken"]) == (1, 0)


def test_a_wrong_order_that_was_taken_is_told() -> None:
    given = Given()
    given.answered(WRONG, accepted=True, reason="")
    assert len(given.wrong_taken) == 1 and "suspend a" in given.wrong_taken[0]
