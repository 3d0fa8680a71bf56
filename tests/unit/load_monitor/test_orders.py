"""Planned moves as orders: what the home makes of an order is what the planner meant by the move."""

from __future__ import annotations

from hypothesis import given

from load_monitor.orders import move_of, order_of
from load_monitor.planning.moves import Return, Split, changed
from load_monitor.planning.planner import plan
from load_monitor.planning.snapshot import ClusterSnapshot
from tests.unit.load_monitor.clusters import POLICY, any_snapshots
from utuple.cluster.line import Line, Member
from utuple.cluster.move import MoveKind, Order, target
from utuple.model.section import Section

LINE = Line(Section(100, 200), 7, (Member("A"), Member("B", accumulatable=False)))


@given(any_snapshots)
def test_an_order_does_to_its_line_what_its_move_does(snapshot: ClusterSnapshot) -> None:
    lines = {load.line.section: load.line for load in snapshot.lines}
    for move in plan(snapshot, POLICY).moves:
        line = lines[move.section]
        middle = (line.section.start + line.section.end) // 2
        order = order_of(move, line, middle)
        assert order is not None
        assert target(order, line) == changed(move, line, middle)
        assert order.why == move.why


@given(any_snapshots)
def test_an_order_read_again_is_the_move_it_came_from(snapshot: ClusterSnapshot) -> None:
    lines = {load.line.section: load.line for load in snapshot.lines}
    for move in plan(snapshot, POLICY).moves:
        line = lines[move.section]
        order = order_of(move, line, (line.section.start + line.section.end) // 2)
        assert order is not None
        again = move_of(order, line.home)
        if isinstance(move, Return):  # the home teaches, whoever else could have
            move = Return(move.section, move.member, line.home)
        assert again == move


def test_a_split_is_ordered_only_at_a_key_strictly_inside_its_section() -> None:
    split = Split(LINE.section, "A", "Z", "Z has no section yet")
    for key in (None, 0, 100, 200, 300):
        assert order_of(split, LINE, key) is None
    assert order_of(split, LINE, 101) == Order(MoveKind.SPLIT, LINE.section, 7, "A", "Z", 101)
