"""Packed EFs and CAs between servers: they come through unchanged, and a wrong shape is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.packed import Packed, packed
from utuple.model.utuple import Family, Template, UTuple
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import taught_from_wire, templates_to_wire

halves = st.lists(
    st.builds(packed, st.one_of(some.event_formals(), some.command_actuals())), max_size=6
)


@given(halves, st.data())
def test_templates_come_through_unchanged(given_: list[Packed], data: st.DataObject) -> None:
    left_us = [data.draw(st.integers(0, 2**62)) for _ in given_]
    sent = templates_to_wire(given_, left_us).SerializeToString()
    came, left = taught_from_wire(pb.Templates.FromString(sent))
    assert came == given_ and list(left) == left_us
    assert all(type(one) is Packed for one in came)


def two() -> pb.Templates:
    made = [
        packed(UTuple(bytes([n]) * 16, Family("truck", kind), Template(), None, {}, 60.0, kind))
        for n, kind in ((1, "load"), (2, "speed"))
    ]
    return templates_to_wire(made, [5, 6])


@pytest.mark.parametrize(
    ("field", "spoil"),
    [
        ("ids", lambda m: m.ClearField("ids")),
        ("families", lambda m: (m.ClearField("families"), m.ClearField("family"))),
        ("family", lambda m: m.families.pop()),
        ("family", lambda m: setattr(m, "family", b"\0\0\0\0")),
        ("commands", lambda m: setattr(m, "commands", b"\0")),
        ("payloads", lambda m: m.payloads.extend([b"{}"] * 2)),
        ("lifetimes_s", lambda m: setattr(m, "lifetimes_s", b"")),
        ("left_us", lambda m: setattr(m, "left_us", bytes(8))),
        ("readers", lambda m: m.ClearField("readers")),
        ("templates", lambda m: m.MergeFromString(b"\xf8\x01\x01")),
    ],
)
def test_a_wrong_shape_is_refused(field: str, spoil: Callable[[pb.Templates], object]) -> None:
    message = two()
    spoil(message)
    with pytest.raises(InvalidInput) as refused:
        taught_from_wire(message)
    assert refused.value.field == field
