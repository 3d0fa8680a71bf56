"""Between the model and the protocol: what the protocol can express goes through unchanged, the rest is
refused with the field, the value and the rule. Rows of a batch are checked by the server, one by one."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from utuple.errors import InvalidInput
from utuple.model.area import Box, Circle
from utuple.model.asked import asked_where, check_bytes
from utuple.model.columns import MICROSECONDS, NO_POSITION, Columns, lifetime_us
from utuple.model.condition import (
    ANY,
    AddressCondition,
    Equal,
    OneOf,
    Prefix,
    Range,
    address_condition,
    encode_where,
)
from utuple.model.utuple import ID_BYTES, Family, Template, UTuple
from utuple.model.utuple import family as checked_family
from utuple.model.value import decode_data, encode_data, normal_data
from utuple.wire import utuple_pb2 as pb

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
        message.readers.extend(_folded_texts(columns.readers))
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
        _readers(message, rows),
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


def _readers(message: pb.Columns, rows: int) -> list[str]:
    readers = list(message.readers)
    if not readers:
        return readers
    if len(readers) == 1 and rows > 1:
        return readers * rows
    if len(readers) != rows:
        raise InvalidInput("readers", f"{len(readers)} values", "must be one, or one a row")
    return readers


def _folded(column: array[int]) -> bytes:
    """One value stands for every row when they are all alike: the common case of lifetimes."""
    packed = pack(column)
    if len(column) == 1:
        return packed
    first = packed[: column.itemsize]
    return first if packed == first * len(column) else packed


def _folded_texts(texts: Iterable[str]) -> list[str]:
    texts = list(texts)
    return texts[:1] if len(texts) > 1 and len(set(texts)) == 1 else texts


# --- families, templates -------------------------------------------------------------------------


def family_to_wire(family: Family, epochs: Epochs | None = None) -> pb.Family:
    epoch = epochs.get(family, 0) if epochs else 0
    return pb.Family(subject=family.subject, type=family.type, epoch=epoch)


def family_from_wire(message: pb.Family) -> Family:
    refuse_unknown(message, "family")
    return checked_family(message.subject, message.type)


def template_to_wire(template: Template) -> pb.Template:
    message = pb.Template(since_us=template.since_us, until_us=template.until_us)
    match template.address:
        case Equal(value):
            message.address_is = value
        case OneOf(values):
            message.address_one_of.values.extend(values)
        case Prefix(text):
            message.address_prefix = text
        case Range(low, high):
            message.address_range.SetInParent()
            if low is not None:
                message.address_range.low = str(low)
            if high is not None:
                message.address_range.high = str(high)
    match template.area:
        case Box(south, west, north, east):
            message.box.CopyFrom(pb.Box(south=south, west=west, north=north, east=east))
        case Circle(lat, lon, radius_m):
            message.circle.CopyFrom(pb.Circle(lat=lat, lon=lon, radius_m=radius_m))
    return message


def template_from_wire(message: pb.Template) -> Template:
    refuse_unknown(message, "template")
    area: Box | Circle | None = None
    which = message.WhichOneof("area")
    if which == "box":
        box = message.box
        refuse_unknown(box, "area")
        area = Box(box.south, box.west, box.north, box.east)
    elif which == "circle":
        refuse_unknown(message.circle, "area")
        area = Circle(message.circle.lat, message.circle.lon, message.circle.radius_m)
    return Template(
        address=_address_from_wire(message),
        since_us=message.since_us if message.HasField("since_us") else None,
        until_us=message.until_us if message.HasField("until_us") else None,
        area=area,
    )


def _address_from_wire(message: pb.Template) -> AddressCondition:
    match message.WhichOneof("address"):
        case "address_is":
            return address_condition(Equal(message.address_is))
        case "address_one_of":
            refuse_unknown(message.address_one_of, "address")
            return address_condition(OneOf(tuple(message.address_one_of.values)))
        case "address_prefix":
            return address_condition(Prefix(message.address_prefix))
        case "address_range":
            ends = message.address_range
            refuse_unknown(ends, "address")
            low = ends.low if ends.HasField("low") else None
            high = ends.high if ends.HasField("high") else None
            return address_condition(Range(low, high))
        case _:
            return ANY


def templated_to_wire(utuple: UTuple, epochs: Epochs | None = None) -> pb.Templated:
    """An EF or a CA."""
    assert isinstance(utuple.metadata, Template)
    message = pb.Templated(
        id=utuple.id,
        family=family_to_wire(utuple.family, epochs),
        metadata=template_to_wire(utuple.metadata),
        lifetime_us=lifetime_us(utuple.lifetime_s),
        reader=utuple.reader or "",
    )
    if utuple.where is not None:
        message.where = encode_where(utuple.where)
    elif utuple.data is not None:
        message.data = encode_data(utuple.data)
    return message


def templated_from_wire(message: pb.Templated) -> UTuple:
    refuse_unknown(message, "template")
    half = message.WhichOneof("half")
    if half is None:
        raise InvalidInput("data", None, "a template has a data template (EF) or data (CA)")
    check_bytes(message.metadata.ByteSize(), len(message.where))
    named = len(message.metadata.address_one_of.values)
    return UTuple(
        id=message.id,
        family=family_from_wire(message.family),
        metadata=template_from_wire(message.metadata),
        data=decode_data(normal_data(message.data)) if half == "data" else None,
        where=asked_where(message.where, named) if half == "where" else None,
        lifetime_s=message.lifetime_us / MICROSECONDS,
        reader=message.reader or None,
    )


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
