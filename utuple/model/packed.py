"""Packed: an EF or a CA as it lies in the store and travels between servers. Pure.

A server keeps very many EFs and seldom looks at one as a whole: what it keeps of each are its two halves in their
one JSON encoding, and the uTuple is made when somebody asks for it. Whoever packs has checked, so that its parts
are put together again without a second look, which would take most of the time of a server that starts or learns.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any, NamedTuple

import orjson

from utuple.errors import InvalidInput
from utuple.model.area import Area, Box, Circle
from utuple.model.asked import asked_where, check_bytes
from utuple.model.condition import (
    Absent,
    AddressCondition,
    Equal,
    OneOf,
    TypeIs,
    address_condition,
    condition_from_list,
    condition_to_list,
    decode_where,
    encode_where,
)
from utuple.model.utuple import Family, Kind, Template, UTuple
from utuple.model.value import check_parts, decode_data, encode_data, normal_data

_AREAS: dict[str, type[Box] | type[Circle]] = {"box": Box, "circle": Circle}


class Packed(NamedTuple):
    id: bytes
    family: Family
    kind: Kind
    """EF or CA."""
    metadata: bytes
    payload: bytes
    """The data half: conditions of an EF, values of a CA."""
    lifetime_s: float
    reader: str
    """Empty on a CA."""

    @property
    def utuple(self) -> UTuple:
        id_, family, kind, metadata, payload, lifetime_s, reader = self
        is_formal = kind is Kind.EF
        made = _new(UTuple)
        _set_id(made, id_)
        _set_family(made, family)
        _set_metadata(made, decode_metadata(metadata))
        _set_data(made, None if is_formal else decode_data(payload))
        _set_where(made, decode_where(payload) if is_formal else None)
        _set_lifetime_s(made, lifetime_s)
        _set_reader(made, reader or None)
        return made


def packed_rows(rows: Iterable[tuple[Any, ...]]) -> list[Packed]:
    """Many, without a call of Python for each."""
    return list(map(tuple.__new__, repeat(Packed), rows))


def checked(half: Packed) -> Packed:
    """As somebody said it, brought to the one encoding or refused."""
    is_formal = half.kind is Kind.EF
    check_bytes(len(half.metadata), len(half.payload) if is_formal else 0)
    check_parts(half.metadata, "metadata")
    try:
        form = orjson.loads(half.metadata)
        place = [form.pop(name) for name in ("address", "since_us", "until_us", "area")]
    except (ValueError, AttributeError, KeyError, TypeError):
        raise InvalidInput("metadata", half.metadata, "must be a template's JSON") from None
    if form:
        raise InvalidInput("metadata", sorted(form), "no template says such a thing")
    address = _asked_address(place[0])
    named = len(address.values) if isinstance(address, OneOf) else 0
    return packed(
        UTuple(
            half.id,
            half.family,
            Template(address, place[1], place[2], _asked_area(place[3])),
            None if is_formal else decode_data(normal_data(half.payload)),
            asked_where(half.payload, named) if is_formal else None,
            half.lifetime_s,
            half.reader or None,
        )
    )


def _asked_address(form: object) -> AddressCondition:
    return address_condition(condition_from_list("address", form))


def _asked_area(form: object) -> Area | None:
    if form is None:
        return None
    try:
        assert isinstance(form, list)
        return _AREAS[form[0]](*form[1:])
    except InvalidInput:
        raise
    except (AssertionError, IndexError, KeyError, TypeError):
        raise InvalidInput("area", form, "must be a box or a circle") from None


def packed(utuple: UTuple) -> Packed:
    assert isinstance(utuple.metadata, Template), "only EFs and CAs are packed"
    if utuple.where is not None:
        kind, payload = Kind.EF, encode_where(utuple.where)
    else:
        assert utuple.data is not None
        kind, payload = Kind.CA, encode_data(utuple.data)
    return Packed(
        utuple.id,
        utuple.family,
        kind,
        encode_metadata(utuple.metadata),
        payload,
        utuple.lifetime_s,
        utuple.reader or "",
    )


def encode_metadata(template: Template) -> bytes:
    # Of checked values, all of them numbers and texts: what `encode_data` would write.
    return orjson.dumps(
        {
            "address": condition_to_list(template.address),
            "since_us": template.since_us,
            "until_us": template.until_us,
            "area": _area_to_list(template.area),
        }
    )


def decode_metadata(encoded: bytes) -> Template:
    form = orjson.loads(encoded)
    made = _new(Template)
    _set_address(made, _address(form["address"]))
    _set_since_us(made, form["since_us"])
    _set_until_us(made, form["until_us"])
    area = form["area"]
    _set_area(made, None if area is None else _AREAS[area[0]](*area[1:]))
    return made


def _address(form: list[Any]) -> AddressCondition:
    if form[0] == "equal":
        made = _new(Equal)
        _set_value(made, form[1])
        return made
    condition = condition_from_list("address", form)
    assert not isinstance(condition, Absent | TypeIs), "such an address was never packed"
    return condition


_new = object.__new__
_set_value = getattr(Equal, "value").__set__  # noqa: B009  mypy knows no slots of a class
_set_address, _set_since_us, _set_until_us, _set_area = (
    getattr(Template, name).__set__ for name in ("address", "since_us", "until_us", "area")
)
_set_id, _set_family, _set_metadata, _set_data, _set_where, _set_lifetime_s, _set_reader = (
    getattr(UTuple, name).__set__
    for name in ("id", "family", "metadata", "data", "where", "lifetime_s", "reader")
)
"""Frozen and checked when built: here they are neither yet."""


def _area_to_list(area: Area | None) -> list[object] | None:
    match area:
        case Box(south, west, north, east):
            return ["box", south, west, north, east]
        case Circle(lat, lon, radius_m):
            return ["circle", lat, lon, radius_m]
    return None
