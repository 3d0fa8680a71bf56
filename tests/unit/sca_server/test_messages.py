"""What comes from the wire is a value or is refused; what goes there can be read again."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from sca_server import messages
from sca_server.outbox import Parcel
from utuple.delivery.notice import News, Notice
from utuple.errors import Conflict, InvalidInput
from utuple.model.identity import uuid7
from utuple.model.utuple import Family
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import pack
from utuple.wire.deliveries import confirmed_from_wire, notice_to_wire

REQUESTS: tuple[type[Message], ...] = (
    pb.ScaRegisterRequest,
    pb.SimpleCommands,
    pb.FromReader,
    pb.StatusRequest,
)


@pytest.mark.parametrize("kind", REQUESTS)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_invalid(kind: type[Message], raw: bytes) -> None:
    try:
        message = messages.parse(kind, raw)
    except InvalidInput:
        return
    assert kind.FromString(message.SerializeToString()) == message


UNKNOWN = b"\xfa\x3e\x01x"  # field 1007


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (pb.StatusRequest, UNKNOWN),
        (pb.SimpleCommands, pb.SimpleCommands(confirm_us=1).SerializeToString() + UNKNOWN),
        (pb.SimpleCommands, b"\x0a\x04" + UNKNOWN),  # inside a family
        (pb.ScaRegisterRequest, b"\x0a\x04" + UNKNOWN),  # inside devices
        (pb.ScaRegisterRequest, b"\x0a\x06\x0a\x04" + UNKNOWN),  # inside a family of devices
        (pb.FromReader, b"\x0a\x06\x3a\x04" + UNKNOWN),  # inside an attach's registration
    ],
)
def test_an_unknown_field_is_refused_however_deep_it_lies(kind: type[Message], raw: bytes) -> None:
    assert kind.FromString(raw) is not None
    with pytest.raises(InvalidInput, match="field 1007"):
        messages.parse(kind, raw)


def simple(**change: object) -> pb.SimpleCommands:
    fields: dict[str, object] = {
        "families": [pb.Family(subject="aircon", type="power")],
        "ids": uuid7(0, 1) + uuid7(0, 2),
        "addresses": ["room-1", "room-2"],
        "payloads": [b"{}", b"{}"],
    }
    return pb.SimpleCommands(**{**fields, **change})  # type: ignore[arg-type]


def test_a_well_formed_batch_is_taken_as_it_is() -> None:
    commands = messages.commands_from_wire(simple(), 2)
    assert (len(commands), commands.families) == (2, (Family("aircon", "power"),))
    assert list(commands.family) == [0, 0] and commands.id_at(1) == uuid7(0, 2)
    assert len(messages.commands_from_wire(pb.SimpleCommands(), 2)) == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"ids": b"x" * 31}, "ids"),
        ({"ids": b"x" * 48}, "ids"),
        ({"ids": b"x" * 16}, "addresses"),
        ({"addresses": ["room-1"]}, "addresses"),
        ({"payloads": [b"{}"] * 3}, "payloads"),
        ({"families": []}, "families"),
        ({"families": [pb.Family(subject="", type="power")]}, "subject"),
        ({"family": b"x"}, "family"),
        ({"family": pack(array("I", [0, 1]))}, "family"),
    ],
)
def test_a_batch_of_the_wrong_shape_is_refused_by_the_field(
    change: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        messages.commands_from_wire(simple(**change), 2)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("asked_us", "granted_s"), [(0, 0.0), (1_500_000, 1.5), (10**12, 30.0), (2**63 - 1, 30.0)]
)
def test_the_wait_for_a_confirmation_is_bounded(asked_us: int, granted_s: float) -> None:
    assert messages.confirm_s(simple(confirm_us=asked_us), 30.0) == granted_s


def test_a_negative_wait_is_refused() -> None:
    with pytest.raises(InvalidInput):
        messages.confirm_s(simple(confirm_us=-1), 30.0)


@pytest.mark.parametrize(
    ("formals", "commands"), [(b"x" * 16, b""), (b"x" * 15, b"x" * 15), (b"x" * 16, b"x" * 32)]
)
def test_a_confirmation_of_the_wrong_size_is_refused(formals: bytes, commands: bytes) -> None:
    with pytest.raises(InvalidInput):
        confirmed_from_wire(pb.Confirm(formals=formals, commands=commands))


def test_a_confirmation_names_its_pairs_in_order() -> None:
    sent = pb.Confirm(formals=b"A" * 16 + b"B" * 16, commands=b"1" * 16 + b"2" * 16)
    assert confirmed_from_wire(sent) == ([b"A" * 16, b"B" * 16], [b"1" * 16, b"2" * 16])


def test_rows_refused_for_the_same_reason_share_one_refusal() -> None:
    empty = InvalidInput("address", "", "must not be empty")
    wrong: list[tuple[int, InvalidInput | Conflict]] = [
        (1, empty),
        (2, Conflict("other")),
        (5, empty),
    ]
    first, second = messages.refusals_to_wire(wrong, pb.DEVICES)
    assert (first.reason, list(first.rows), first.field) == (pb.INVALID, [1, 5], "address")
    assert (first.part, first.value, first.rule) == (pb.DEVICES, "''", "must not be empty")
    assert (second.reason, list(second.rows)) == (pb.CONFLICT, [2])


@pytest.mark.parametrize("several", [True, False])
def test_deliveries_travel_as_ids_times_and_payloads_device_by_device(several: bool) -> None:
    """The rest is the device's own, which it knows."""
    one, other = b"A" * 16, (b"B" if several else b"A") * 16
    parcel = Parcel()
    parcel.formals = [one, other, one]
    parcel.commands = [uuid7(5_000, 1), uuid7(7_000, 2), uuid7(5_000, 3)]
    parcel.payloads = [b"{}", b'{"on":true}', b"{}"]
    sent = messages.deliveries_to_wire(parcel, "sca-1").deliveries
    assert sent.columns == pb.Columns(
        ids=b"".join(parcel.commands),
        times_us=pack(array("q", [5_000, 7_000, 5_000])),
        payloads=parcel.payloads,
    )
    assert sent.formals == (one + other if several else one)
    assert sent.counts == (pack(array("I", [2, 1])) if several else b"")
    assert sent.rows == (pack(array("I", [0, 2, 1])) if several else b"")
    assert (sent.origin, sent.stored, sent.seqs) == ("sca-1", False, b"")


NOTES: list[tuple[Notice, Callable[[pb.ToReader], bool]]] = [
    (
        Notice(News.UNKNOWN, b"A" * 16),
        lambda m: m.attached.id == b"A" * 16 and m.attached.unknown,
    ),
    (Notice(News.DETACHED, b"A" * 16), lambda m: m.detached.id == b"A" * 16),
    (Notice(News.REPLACED, b"A" * 16), lambda m: m.replaced.id == b"A" * 16),
]


@pytest.mark.parametrize(("note", "says"), NOTES)
def test_a_note_says_the_same_on_the_wire(
    note: Notice, says: Callable[[pb.ToReader], bool]
) -> None:
    assert says(notice_to_wire(note))
