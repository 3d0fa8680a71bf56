"""Orders on the wire: every kind goes through unchanged, and what is no order is refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.cluster.move import WITH_HELPER, MoveKind, Order
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.moves import order_from_wire, order_to_wire


@st.composite
def orders(draw: st.DrawFn) -> Order:
    kind = draw(st.sampled_from(MoveKind))
    helper = draw(some.names) if kind in WITH_HELPER else ""
    return Order(
        kind,
        draw(some.sections),
        draw(st.integers(1, 1 << 60)),
        draw(some.names),
        helper,
        draw(some.keys),
        draw(some.names),
    )


@given(orders())
@example(Order(MoveKind.SPLIT, Section(0, HASH_SPACE), 1, "a", "b", HASH_SPACE - 1, "why"))
def test_an_order_goes_through_unchanged(order: Order) -> None:
    raw = order_to_wire(order).SerializeToString()
    again = order_from_wire(pb.MoveOrder.FromString(raw))
    assert again == order and again.why == order.why


def test_the_protocol_knows_exactly_our_kinds() -> None:
    assert set(pb.MoveKind.keys()) - {"MOVE_UNKNOWN"} == {kind.name for kind in MoveKind}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.MoveOrder(last=9, epoch=1, member="a"), "kind"),
        (pb.MoveOrder(kind=pb.FLIP_OFF, start=5, last=3, epoch=1, member="a"), "section"),
        (pb.MoveOrder(kind=pb.FLIP_OFF, last=9, epoch=1), "member"),
        (pb.MoveOrder(kind=pb.DRAIN, last=9, epoch=1, member="a"), "helper"),
        (pb.MoveOrder(kind=pb.RELEASE, last=9, epoch=1, member="a", helper="b"), "helper"),
    ],
)
def test_what_is_no_order_is_refused_by_its_field(message: pb.MoveOrder, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        order_from_wire(message)
    assert refused.value.field == field


def test_a_kind_of_a_later_version_is_refused_with_those_that_are_known() -> None:
    message = pb.MoveOrder(last=9, epoch=1, member="a")
    message.MergeFromString(b"\x08\x63")  # kind = 99
    with pytest.raises(InvalidInput, match="SPLIT"):
        order_from_wire(message)
