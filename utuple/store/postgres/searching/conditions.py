"""A template as SQL conditions: they select what `matches` accepts.

Two parts `matches` has the last word on, in Python, row by row (`needs_check`): circles, of which SQL sees
the bounding box, and CFs, whose data template lies in the row and not in the question.

What is asked of data is written in `data_conditions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import NullType

from utuple.model.area import Area, Box, Circle
from utuple.model.condition import (
    AddressCondition,
    Equal,
    OneOf,
    Prefix,
    Present,
    Range,
)
from utuple.model.utuple import ID_BYTES, Family, Kind, Template, UTuple
from utuple.store.contract import OWN_ORIGIN
from utuple.store.postgres.origins import event_is_of, is_visible
from utuple.store.postgres.partitions import TIME_BUCKET_BITS
from utuple.store.postgres.searching.data_conditions import (
    DATA,
    Condition,
    array_of,
    with_data,
    within,
)
from utuple.store.postgres.statements import Parameters, Statement, compiled, raw_text
from utuple.store.postgres.tables import devices, events

SMALL_BYTES = 2_048
"""A payload that travels with few others in one piece."""
_SMALL: ColumnElement[int] = literal_column(str(SMALL_BYTES))
SHAPES_MAX = 64
"""Statements kept: there are not so many usual shapes of EFs."""


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
    shape = shape_of(template) if origin == OWN_ORIGIN else None
    if shape is None:
        asked = compiled(found(template, family, after, upto, now_us, origin, few))
        return with_data(asked, template.where) if template.where else asked
    values = {"family": family, "after": after, "upto": upto, "now_us": now_us}
    text = _text(shape, few, from_start=after == 0)
    return Statement(
        text, {**values, **values_of(template)}, is_usual=after == 0 and few is not None
    )


@lru_cache(maxsize=SHAPES_MAX)
def _text(shape: Template, few: int | None, *, from_start: bool) -> bytes:
    template = UTuple(bytes(ID_BYTES), Family("any", "any"), shape, None, {}, 0.0, "any")
    return compiled(found(template, 0, 0 if from_start else 1, 0, 0, few=few)).text


def shape_of(template: UTuple) -> Template | None:
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


def values_of(template: UTuple) -> Parameters:
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
        *([DATA] if template.where else []),
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
    """In the order `lookup.batch_of` reads them: id, payload, address, seq, time, position."""
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
            if not texts:
                return false()
            given = bindparam("addresses", array_of(texts), type_=NullType())
            return address == func.any(cast(given, ARRAY(Text)))
        case Range():
            return false() if wanted.of_numbers else within(address, wanted.low, wanted.high)
        case Prefix(text):
            return within(address, text, wanted.end)


def lies_in(area: Area, table: Table) -> Condition:
    """No position is NaN, which PostgreSQL takes for greater than every latitude."""
    box = area if isinstance(area, Box) else area.bounding_box()
    lat, lon = table.c.lat, table.c.lon
    south, north = _named("south", box.south, lat), _named("north", box.north, lat)
    west, east = _named("west", box.west, lon), _named("east", box.east, lon)
    east_west = or_ if box.crosses_antimeridian else and_
    return and_(lat >= south, lat <= north, east_west(lon >= west, lon <= east))
