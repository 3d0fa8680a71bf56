"""Between the model and the protocol: what the protocol can express goes through unchanged, the rest is
refused with the field, the value and the rule. Rows of a batch are checked by the server, one by one."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import TypeVar

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from utuple.errors import InvalidInput
from utuple.model.columns import NO_POSITION, Columns
from utuple.model.packed import Packed, packed_columns
from utuple.model.utuple import ID_BYTES, Family, Kind
from utuple.model.utuple import family as checked_family
from utuple.wire import utuple_pb2 as pb

T = TypeVar("T", str, bytes)

Epochs = Mapping[Family, int]
"""The epoch of the line each family was routed by."""

MAX_SEVERAL = 1_000
"""Messages a reader may send in one."""

MAX_POSITIONS = 10_000
"""Positions in one message of a reader."""

_SWAP = sys.byteorder == "big"


# --- packed columns ------------------------------------------------------------------------------


def pack(column: array[int] | array[float]) -> bytes:
    if _SWAP:
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def unpack(code: str, packed: bytes, rows: int, field: str) -> array:  # type: ignore[type-arg]
    column = array(code)
    if len(packed) != rows * column.itemsize:
        raise InvalidInput(
            field,
            f"{len(packed)} bytes",
            f"must be {column.itemsize} bytes for each of {rows} rows",
        )
    column.frombytes(packed)
    if _SWAP:
        column.byteswap()
    return column


def columns_to_wire(columns: Columns, epochs: Epochs | None = None) -> pb.Columns:
    message = pb.Columns()
    write_columns(message, columns, epochs)
    return message


def write_columns(message: pb.Columns, columns: Columns, epochs: Epochs | None = None) -> None:
    """Into this empty message: one that is part of another is written in its place, since copying it there would
    cost as much as writing it."""
    for family in columns.families:
        epoch = epochs.get(family, 0) if epochs else 0
        message.families.add(subject=family.subject, type=family.type, epoch=epoch)
    message.ids = columns.ids
    message.times_us = pack(columns.times_us)
    message.lifetimes_us = _folded(columns.lifetimes_us)
    message.addresses.extend(columns.addresses)
    message.payloads.extend(columns.payloads)
    if columns.readers:
        message.readers.extend(_folded_values(columns.readers))
    if len(columns.families) > 1:
        message.family = pack(columns.family)
    lats = columns.lats
    if lats and (lats[0] == lats[0] or any(lat == lat for lat in lats)):
        message.lats = pack(lats)
        message.lons = pack(columns.lons)


def columns_from_wire(message: pb.Columns) -> tuple[Columns, dict[Family, int]]:
    """The batch, and the epoch each family was routed by. Only the shape is checked here."""
    refuse_unknown(message, "columns")
    families: list[Family] = []
    epochs: dict[Family, int] = {}
    for wire in message.families:
        families.append(own := family_from_wire(wire))
        epochs[own] = wire.epoch
    ids, numbers = message.ids, message.family
    rows = len(ids) // ID_BYTES
    if len(ids) != rows * ID_BYTES:
        raise InvalidInput("ids", f"{len(ids)} bytes", "must be 16 bytes a row")
    if rows and not families:
        raise InvalidInput("families", [], "a batch with rows names its families")
    family = unpack("I", numbers, rows, "family") if numbers else array("I", bytes(4 * rows))
    if numbers and max(family) >= len(families):
        raise InvalidInput("family", max(family), f"must be below {len(families)}")
    addresses, payloads = tuple(message.addresses), tuple(message.payloads)
    if len(addresses) != rows or len(payloads) != rows:
        name, given = ("addresses", addresses) if len(addresses) != rows else ("payloads", payloads)
        raise InvalidInput(name, f"{len(given)} values", f"must be one for each of {rows} rows")
    columns = Columns(
        tuple(families),
        family,
        ids,
        unpack("q", message.times_us, rows, "times_us"),
        _positions(message.lats, rows, "lats"),
        _positions(message.lons, rows, "lons"),
        _lifetimes(message.lifetimes_us, rows),
        addresses,
        payloads,
        _unfolded(message.readers, rows, "readers") if message.readers else [],
    )
    return columns, epochs


def _positions(packed: bytes, rows: int, field: str) -> array[float]:
    if packed:
        return unpack("d", packed, rows, field)
    return array("d", [NO_POSITION]) * rows


def _lifetimes(packed: bytes, rows: int) -> array[int]:
    if len(packed) == 8 and rows != 1:
        return unpack("q", packed, 1, "lifetimes_us") * rows
    return unpack("q", packed, rows, "lifetimes_us")


def _folded(column: array[int]) -> bytes:
    """One value stands for every row when they are all alike: the common case of lifetimes."""
    packed = pack(column)
    if len(column) == 1:
        return packed
    first = packed[: column.itemsize]
    return first if packed == first * len(column) else packed


# --- families, templates -------------------------------------------------------------------------


def family_to_wire(family: Family, epochs: Epochs | None = None) -> pb.Family:
    epoch = epochs.get(family, 0) if epochs else 0
    return pb.Family(subject=family.subject, type=family.type, epoch=epoch)


def family_from_wire(message: pb.Family) -> Family:
    refuse_unknown(message, "family")
    return checked_family(message.subject, message.type)


def templates_to_wire(
    given: Sequence[Packed], left_us: Iterable[int] = (), epochs: Epochs | None = None
) -> pb.Templates:
    """EFs and CAs, as many as there are; calls that take one are given one row. What a client says is checked row by row
    by the server it says it to (`model.packed.checked`); between servers whoever packed them has done that."""
    numbers = {
        family: number for number, family in enumerate(dict.fromkeys([one.family for one in given]))
    }
    message = pb.Templates(
        families=[family_to_wire(family, epochs) for family in numbers],
        ids=b"".join([one.id for one in given]),
        lifetimes_s=pack(array("d", [one.lifetime_s for one in given])),
        left_us=pack(array("q", left_us)),
        metadata=[one.metadata for one in given],
        payloads=_folded_values([one.payload for one in given]),
        readers=_folded_values([one.reader for one in given]),
    )
    if len(numbers) > 1:
        message.family = pack(array("I", [numbers[one.family] for one in given]))
    if any(one.terms for one in given):
        message.terms.extend(_folded_values([one.terms for one in given]))
    if any(one.kind is Kind.CA for one in given):
        message.commands = bytes(one.kind is Kind.CA for one in given)
    return message


def templates_from_wire(message: pb.Templates) -> list[Packed]:
    """Only the shape is checked here."""
    refuse_unknown(message, "templates")
    rows = len(message.metadata)
    ids = message.ids
    if len(ids) != rows * ID_BYTES:
        raise InvalidInput("ids", f"{len(ids)} bytes", f"must be {ID_BYTES} for each of {rows}")
    return packed_columns(
        ids=[ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)],
        families=_families_from_wire(message, rows),
        kinds=_kinds(message.commands, rows),
        metadata=message.metadata,
        payloads=_unfolded(message.payloads, rows, "payloads"),
        lifetimes_s=unpack("d", message.lifetimes_s, rows, "lifetimes_s"),
        readers=_unfolded(message.readers, rows, "readers"),
        terms=_unfolded(message.terms, rows, "terms") if message.terms else repeat(b"", rows),
    )


def template_from_wire(message: pb.Templates) -> tuple[Packed, int]:
    """The one EF or CA of a call that takes one, and the epoch it was routed by."""
    found = templates_from_wire(message)
    if len(found) != 1:
        raise InvalidInput("template", f"{len(found)} templates", "this call takes one")
    return found[0], epochs_from_wire(message)[found[0].family]


def taught_from_wire(message: pb.Templates) -> tuple[list[Packed], array[int]]:
    """What one server teaches another: EFs and CAs, and the lifetime that each has left."""
    left_us = unpack("q", message.left_us, len(message.metadata), "left_us")
    return templates_from_wire(message), left_us


def epochs_from_wire(message: pb.Templates) -> dict[Family, int]:
    return {family_from_wire(family): family.epoch for family in message.families}


def _families_from_wire(message: pb.Templates, rows: int) -> Iterable[Family]:
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


def _folded_values(column: Sequence[T]) -> Sequence[T]:
    """One value stands for every row when they are all alike."""
    return column[:1] if len(set(column)) == 1 else column


def _unfolded(column: Sequence[T], rows: int, field: str) -> Sequence[T]:
    if len(column) == 1 and rows > 1:
        return [column[0]] * rows
    if len(column) != rows:
        raise InvalidInput(field, f"{len(column)} values", f"must be one, or {rows}")
    return column


# --- what readers say ----------------------------------------------------------------------------


def said_in(message: pb.FromReader) -> Sequence[pb.FromReader]:
    """What a reader's message says: one thing, or several."""
    refuse_unknown(message, "message")
    if not message.HasField("several"):
        return [message]
    refuse_unknown(message.several, "several")
    messages = message.several.messages
    if len(messages) > MAX_SEVERAL:
        raise InvalidInput("several", len(messages), f"must be at most {MAX_SEVERAL} messages")
    for one in messages:
        refuse_unknown(one, "message")
        if one.HasField("several"):
            raise InvalidInput("several", "several", "must not hold another")
    return messages


def refuse_unknown(message: Message, field: str) -> None:
    """An unknown field is a newer peer's wish we would silently drop: refuse it instead."""
    unknown = UnknownFieldSet(message)
    if len(unknown):
        number = unknown[0].field_number
        raise InvalidInput(field, f"field {number}", "is not known to this version of the protocol")
