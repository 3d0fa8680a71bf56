"""Packed EFs and CAs on the wire. Only the shape is checked here: what a client says is checked row by row by the
server it says it to; between servers, whoever packed them has done that."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TypeVar

from utuple.errors import InvalidInput
from utuple.model.packed import Packed, packed_rows
from utuple.model.utuple import ID_BYTES, Family, Kind
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import Epochs, family_from_wire, family_to_wire, pack, refuse_unknown, unpack

T = TypeVar("T", str, bytes)


def templates_to_wire(
    given: Sequence[Packed], left_us: Iterable[int] = (), epochs: Epochs | None = None
) -> pb.Templates:
    if not given:
        return pb.Templates()
    ids, families, kinds, metadata, payloads, lifetimes, readers = zip(*given, strict=True)
    numbers = {family: number for number, family in enumerate(dict.fromkeys(families))}
    message = pb.Templates(
        families=[family_to_wire(family, epochs) for family in numbers],
        ids=b"".join(ids),
        lifetimes_s=pack(array("d", lifetimes)),
        left_us=pack(array("q", left_us)),
        metadata=metadata,
        payloads=_folded(payloads),
        readers=_folded(readers),
    )
    if len(numbers) > 1:
        message.family = pack(array("I", [numbers[family] for family in families]))
    if Kind.CA in kinds:
        message.commands = bytes(kind is Kind.CA for kind in kinds)
    return message


def taught_from_wire(message: pb.Templates) -> tuple[list[Packed], array[int]]:
    """With the lifetime each has left."""
    return templates_from_wire(message), unpack(
        "q", message.left_us, len(message.metadata), "left_us"
    )


def epochs_from_wire(message: pb.Templates) -> dict[Family, int]:
    return {family_from_wire(family): family.epoch for family in message.families}


def templates_from_wire(message: pb.Templates) -> list[Packed]:
    refuse_unknown(message, "templates")
    rows = len(message.metadata)
    ids = message.ids
    if len(ids) != rows * ID_BYTES:
        raise InvalidInput("ids", f"{len(ids)} bytes", f"must be {ID_BYTES} for each of {rows}")
    columns = zip(
        [ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)],
        _families(message, rows),
        _kinds(message.commands, rows),
        message.metadata,
        _unfolded(message.payloads, rows, "payloads"),
        unpack("d", message.lifetimes_s, rows, "lifetimes_s"),
        _unfolded(message.readers, rows, "readers"),
        strict=True,
    )
    return packed_rows(columns)


def _families(message: pb.Templates, rows: int) -> Iterable[Family]:
    families = [family_from_wire(family) for family in message.families]
    if not message.family:
        if rows and not families:
            raise InvalidInput("families", [], "a batch with rows names its families")
        return repeat(families[0], rows) if rows else ()
    numbers = unpack("I", message.family, rows, "family")
    if rows and max(numbers) >= len(families):
        raise InvalidInput("family", max(numbers), f"must be below {len(families)}")
    return [families[number] for number in numbers]


def _kinds(commands: bytes, rows: int) -> Iterable[Kind]:
    if not commands:
        return repeat(Kind.EF, rows)
    if len(commands) != rows:
        raise InvalidInput("commands", f"{len(commands)} bytes", f"must be one for each of {rows}")
    return [Kind.CA if is_command else Kind.EF for is_command in commands]


def _folded(column: Sequence[T]) -> Sequence[T]:
    """One value stands for every row when they are all alike."""
    return column[:1] if len(set(column)) == 1 else column


def _unfolded(column: Sequence[T], rows: int, field: str) -> Sequence[T]:
    if len(column) == 1 and rows > 1:
        return [column[0]] * rows
    if len(column) != rows:
        raise InvalidInput(field, f"{len(column)} values", f"must be one, or {rows}")
    return column
