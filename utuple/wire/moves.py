"""Orders of moves on the wire. Kinds go by name, so that the numbers are the protocol's alone."""

from __future__ import annotations

from utuple.cluster.move import MoveKind, Order
from utuple.errors import InvalidInput
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb


def order_to_wire(order: Order) -> pb.MoveOrder:
    return pb.MoveOrder(
        kind=pb.MoveKind.Value(order.kind.name),
        start=order.section.start,
        last=order.section.end - 1,
        epoch=order.epoch,
        member=order.member,
        helper=order.helper,
        key=order.key,
        why=order.why,
    )


def order_from_wire(message: pb.MoveOrder) -> Order:
    """Refuses a kind this version does not know, and whatever is no order."""
    kind = _KINDS.get(message.kind)
    if kind is None:
        raise InvalidInput("kind", message.kind, f"must be one of {', '.join(_NAMES)}")
    return Order(
        kind,
        Section(message.start, message.last + 1),
        message.epoch,
        message.member,
        message.helper,
        message.key,
        message.why,
    )


_KINDS = {int(pb.MoveKind.Value(kind.name)): kind for kind in MoveKind}
_NAMES = [kind.name for kind in MoveKind]
