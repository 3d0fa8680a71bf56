"""A template as SQL conditions: they select what `matches` accepts.

Two parts `matches` has the last word on, in Python, row by row (`needs_check`): circles, of which SQL sees
the bounding box, and CFs, whose data template lies in the row and not in the question.

Field names and values are bound parameters, never text of the statement. Casts of a field to a number
stand inside CASE, since PostgreSQL may evaluate the sides of an AND in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Numeric,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from utuple.model.area import Area, Box, Circle
from utuple.model.condition import (
    Absent,
    AddressCondition,
    DataCondition,
    Equal,
    OneOf,
    Prefix,
    Present,
    Range,
    TypeIs,
)
from utuple.model.utuple import ID_BYTES, Family, Kind, Template, UTuple
from utuple.model.value import BYTES_NAME, Value, encode_data
from utuple.store.contract import OWN_ORIGIN
from utuple.store.leaves import TIME_BUCKET_BITS
from utuple.store.origins import event_is_of, is_visible
from utuple.store.statements import Parameters, Statement, compiled, raw_text
from utuple.store.tables import devices, events

Condition = ColumnElement[bool]

SMALL_BYTES = 2_048
"""A payload that travels with few others in one piece."""
_SMALL: ColumnElement[int] = literal_column(str(SMALL_BYTES))
SHAPES_MAX = 64
"""Statements kept: there are not so many usual shapes of EFs."""

_JSON_TYPES = {
    "bool": "boolean",
    "number": "number",
    "text": "string",
    "list": "array",
    "null": "null",
    "mapping": "object",
    "bytes": "object",
}


def question(
    template: UTuple,
    family: int,
    after: int,
    upto: int,
    now_us: int,
    origin: str = OWN_ORIGIN,
    few: int | None = None,
) -> Statement:
    """`found`, ready to be asked. To compile it takes about as long as to find a hundred rows, so the usual
    shapes of an EF are compiled once."""
    shape = _shape(template) if origin == OWN_ORIGIN else None
    if shape is None:
        return compiled(found(template, family, after, upto, now_us, origin, few))
    asked = {"family": family, "after": after, "upto": upto, "now_us": now_us}
    text = _text(shape, few, from_start=after == 0)
    return Statement(text, {**asked, **_values(template)}, is_usual=after == 0 and few is not None)


@lru_cache(maxsize=SHAPES_MAX)
def _text(shape: Template, few: int | None, *, from_start: bool) -> bytes:
    template = UTuple(bytes(ID_BYTES), Family("any", "any"), shape, None, {}, 0.0, "any")
    return compiled(found(template, 0, 0 if from_start else 1, 0, 0, few=few)).text


def _shape(template: UTuple) -> Template | None:
    """A template whose statement has the same text, or None if it is not worth keeping."""
    metadata = template.metadata
    assert isinstance(metadata, Template)
    address = metadata.address
    is_one = isinstance(address, Equal) and isinstance(address.value, str)
    if template.kind is not Kind.EF or template.where:
        return None
    if not (is_one or isinstance(address, Present)):
        return None
    box = _box(metadata.area)
    if box is not None:
        box = Box(0.0, 1.0, 0.0, 0.0) if box.crosses_antimeridian else Box(0.0, 0.0, 0.0, 0.0)
    return Template(
        address=Equal("any") if is_one else Present(),
        since_us=None if metadata.since_us is None else 0,
        until_us=None if metadata.until_us is None else 1,
        area=box,
    )


def _values(template: UTuple) -> Parameters:
    """Of the parameters that `metadata_conditions` names."""
    metadata = template.metadata
    assert isinstance(metadata, Template)
    values: Parameters = {"since_us": metadata.since_us, "until_us": metadata.until_us}
    if isinstance(metadata.address, Equal):
        values["address"] = metadata.address.value
        values["first_bucket"], values["last_bucket"] = _buckets(metadata)
    if (box := _box(metadata.area)) is not None:
        values.update(south=box.south, north=box.north, west=box.west, east=box.east)
    return values


def _box(area: Area | None) -> Box | None:
    return area.bounding_box() if isinstance(area, Circle) else area


def _named(name: str, value: Any, column: ColumnElement[Any]) -> ColumnElement[Any]:
    return bindparam(name, value, type_=column.type)


def found(
    template: UTuple,
    family: int,
    after: int,
    upto: int,
    now_us: int,
    origin: str = OWN_ORIGIN,
    few: int | None = None,
) -> Select[Any]:
    """The rows of a search in seq order: EAs of one origin for an EF, CFs of all for a CA. With `few` so many of them
    at most, in any order, and a payload that is large is NULL: to sort them costs PostgreSQL more than us."""
    table = events if template.kind is Kind.EF else devices
    assert isinstance(template.metadata, Template)
    c = table.c
    asked = select(
        *event_columns(small=few is not None)
        if table is events
        else device_columns(small=few is not None)
    ).where(  # in this order PostgreSQL looks at a row: what refuses most comes first, what costs most last
        c.family == _named("family", family, c.family),
        *metadata_conditions(template.metadata, table),
        c.expires_us > _named("now_us", now_us, c.expires_us),
        *seq_conditions(c.seq, after, upto),
        event_is_of(origin) if table is events else is_visible(c.origin),
        *data_conditions(template),
    )
    return asked.order_by(c.seq) if few is None else asked.limit(literal_column(str(few)))


def seq_conditions(seq: ColumnElement[int], after: int, upto: int) -> Iterator[ColumnElement[bool]]:
    """Who has seen something already mostly lacks little, and that lies together: the index on seqs finds it. From
    the start on they say next to nothing, and PostgreSQL must not think that the index would help."""
    if after == 0:
        nothing: ColumnElement[int] = literal_column("0")
        yield seq + nothing <= _named("upto", upto, seq)
    else:
        yield seq <= _named("upto", upto, seq)
        yield seq > _named("after", after, seq)


def event_columns(*, small: bool = False) -> list[ColumnElement[Any]]:
    """In the order `portable.batch_of` reads them: id, payload, address, seq, time, position."""
    table = events
    return [table.c.id, _payload(table.c.data, small=small), *_plain(table)]


def device_columns(*, small: bool = False) -> list[ColumnElement[Any]]:
    """The same, then expiry, lifetime and reader."""
    table = devices
    return [
        table.c.id,
        _payload(table.c.wanted, small=small),
        *_plain(table),
        table.c.expires_us,
        table.c.lifetime_us,
        table.c.reader,
    ]


def _payload(column: ColumnElement[Any], *, small: bool) -> ColumnElement[Any]:
    raw = raw_text(column)
    return case((func.octet_length(column) <= _SMALL, raw)) if small else raw


def _plain(table: Table) -> list[ColumnElement[Any]]:
    c = table.c
    return [c.address, c.seq, c.time_us, c.lat, c.lon]


def needs_check(template: UTuple) -> bool:
    """Is what SQL finds only a superset of the matches?"""
    metadata = template.metadata
    return template.kind is Kind.CA or (
        isinstance(metadata, Template) and isinstance(metadata.area, Circle)
    )


# --- metadata ------------------------------------------------------------------------------------


def metadata_conditions(template: Template, table: Table) -> Iterator[Condition]:
    yield address_meets(template.address, table.c.address)
    time_us = table.c.time_us
    if template.since_us is not None:
        yield time_us >= _named("since_us", template.since_us, time_us)
    if template.until_us is not None:
        yield time_us < _named("until_us", template.until_us, time_us)
    if table is events and isinstance(template.address, Equal | OneOf):
        yield from bucket_conditions(template)
    if template.area is not None:
        yield lies_in(template.area, table)


def bucket_conditions(template: Template) -> Iterator[Condition]:
    """What the times say already, in the words of the address's index (see `leaves`)."""
    shift: ColumnElement[int] = literal_column(str(TIME_BUCKET_BITS))
    bucket = cast(events.c.time_us.op(">>")(shift), Integer)
    first, last = _buckets(template)
    if first is not None:
        yield bucket >= _named("first_bucket", first, bucket)
    if last is not None:
        yield bucket <= _named("last_bucket", last, bucket)


def _buckets(template: Template) -> tuple[int | None, int | None]:
    since_us, until_us = template.since_us, template.until_us
    return (
        None if since_us is None else since_us >> TIME_BUCKET_BITS,
        None if until_us is None else (until_us - 1) >> TIME_BUCKET_BITS,
    )


def address_meets(wanted: AddressCondition, address: ColumnElement[str]) -> Condition:
    match wanted:
        case Present():
            return true()
        case Equal(value):
            is_text = isinstance(value, str)
            return address == _named("address", value, address) if is_text else false()
        case OneOf(values):
            texts = [value for value in values if isinstance(value, str)]
            return address == func.any(literal(texts, ARRAY(Text))) if texts else false()
        case Range():
            return false() if wanted.of_numbers else _within(address, wanted.low, wanted.high)
        case Prefix(text):
            return _within(address, text, wanted.end)


def lies_in(area: Area, table: Table) -> Condition:
    """No position is NaN, which PostgreSQL takes for greater than every latitude."""
    box = area if isinstance(area, Box) else area.bounding_box()
    lat, lon = table.c.lat, table.c.lon
    south, north = _named("south", box.south, lat), _named("north", box.north, lat)
    west, east = _named("west", box.west, lon), _named("east", box.east, lon)
    east_west = or_ if box.crosses_antimeridian else and_
    return and_(lat >= south, lat <= north, east_west(lon >= west, lon <= east))


def _within(value: ColumnElement[Any], low: Any, high: Any) -> Condition:
    """Half-open; None leaves an end open."""
    above = true() if low is None else value >= low
    return above if high is None else and_(above, value < high)


# --- data ----------------------------------------------------------------------------------------


def data_conditions(template: UTuple) -> Iterator[Condition]:
    if template.where is None:
        return
    document = cast(events.c.data, JSONB)
    for name, wanted in template.where.items():
        yield field_meets(wanted, document, literal(name, Text))


def field_meets(
    wanted: DataCondition, document: ColumnElement[Any], name: ColumnElement[str]
) -> Condition:
    """A missing field is NULL, which meets nothing that is not asked by `?`."""
    is_there: Condition = document.op("?", is_comparison=True)(name)
    field = document.op("->", return_type=JSONB())(name)
    match wanted:
        case Present():
            return is_there
        case Absent():
            return not_(is_there)
        case Equal(value):
            return field == cast(literal(_json(value), Text), JSONB)
        case OneOf(values):
            alternatives = literal([_json(value) for value in values], ARRAY(Text))
            return field == func.any(cast(alternatives, ARRAY(JSONB)))
        case Range(low, high) if wanted.of_numbers:
            inside = _within(cast(field, Numeric), _decimal(low), _decimal(high))
            return case((func.jsonb_typeof(field) == "number", inside), else_=false())
        case Range(low, high):
            text = document.op("->>", return_type=Text())(name).collate("C")
            is_text = func.jsonb_typeof(field) == "string"
            return and_(is_text, _within(text, low, high))
        case TypeIs(type_name):
            return _is_type(field, type_name)


def _is_type(field: ColumnElement[Any], type_name: str) -> Condition:
    has_type = func.jsonb_typeof(field) == _JSON_TYPES[type_name]
    is_bytes = field.op("?", is_comparison=True)(literal(BYTES_NAME, Text))
    if type_name == "bytes":
        return and_(has_type, is_bytes)
    return and_(has_type, not_(is_bytes)) if type_name == "mapping" else has_type


def _json(value: Value) -> str:
    """One value as the JSON it has inside data."""
    return encode_data({"v": value}).decode()[len('{"v":') : -1]


def _decimal(number: int | float | str | None) -> Decimal | None:
    """The decimal value JSON writes for a number, which is what it compares by."""
    return None if number is None else Decimal(repr(number))
