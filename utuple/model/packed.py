"""Packed: an EF or a CA as it is stored and as it travels. Pure.

A server keeps very many EFs and seldom looks at one as a whole. So it keeps the two halves of each in their one JSON
encoding, and makes the uTuple when somebody asks for it. What was packed here was checked before, so `Packed.utuple`
puts its parts together without a second look, which would take most of the time of a server that starts or learns.
What came from a user or a client was not: `checked` and `checked_utuple` look at everything, limits included.

A new field of a template has its place here (`Packed`, `packed`, `utuple`, `checked_utuple`) and one in `wire/codec.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import orjson

from utuple.errors import InvalidInput
from utuple.model.area import Area, Box, Circle
from utuple.model.condition import (
    ANY,
    Absent,
    AddressCondition,
    DataCondition,
    Equal,
    OneOf,
    TypeIs,
    Where,
    address_condition,
    condition_from_list,
    condition_to_list,
    decode_where,
    encode_where,
    forms_of,
    where_of,
)
from utuple.model.limits import MAX_ALTERNATIVES, MAX_CONDITIONS, MAX_TEMPLATE_BYTES
from utuple.model.terms import DEFAULT, Terms, decode_terms, encode_terms
from utuple.model.utuple import Family, Kind, Template, UTuple
from utuple.model.value import check_parts, compact, decode_data, encode_data, normal_data

T = TypeVar("T")
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
    terms: bytes = b""
    """Of delivery (`model.terms`); empty: the default."""

    @property
    def utuple(self) -> UTuple:
        is_formal = self.kind is Kind.EF
        return _checked_utuple(
            self.id,
            self.family,
            decode_metadata(self.metadata),
            None if is_formal else decode_data(self.payload),
            decode_where(self.payload) if is_formal else None,
            self.lifetime_s,
            self.reader or None,
            decode_terms(self.terms) if self.terms else None,
        )


def packed_columns(
    *,
    ids: Iterable[bytes],
    families: Iterable[Family],
    kinds: Iterable[Kind],
    metadata: Iterable[bytes],
    payloads: Iterable[bytes],
    lifetimes_s: Iterable[float],
    readers: Iterable[str],
    terms: Iterable[bytes],
) -> list[Packed]:
    """Many at once, from one column for each field: a million of them are made without a call of Python for each."""
    rows = zip(ids, families, kinds, metadata, payloads, lifetimes_s, readers, terms, strict=True)
    return list(map(tuple.__new__, repeat(Packed), rows))


def checked(half: Packed) -> Packed:
    """What somebody sent, brought to its one encoding, or refused."""
    return packed(checked_utuple(half))


def checked_utuple(half: Packed) -> UTuple:
    """What somebody sent, as a uTuple that keeps every rule, or refused."""
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
    return UTuple(
        id=half.id,
        family=half.family,
        metadata=Template(address, place[1], place[2], _asked_area(place[3])),
        data=None if is_formal else decode_data(normal_data(half.payload)),
        where=asked_where(half.payload, named) if is_formal else None,
        lifetime_s=half.lifetime_s,
        reader=half.reader or None,
        terms=_asked_terms(half),
    )


def _asked_terms(half: Packed) -> Terms | None:
    if half.terms and half.kind is not Kind.EF:
        raise InvalidInput("terms", half.terms, "are of an EF alone")
    asked = decode_terms(half.terms)
    return None if asked == DEFAULT else asked


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
        id=utuple.id,
        family=utuple.family,
        kind=kind,
        metadata=encode_metadata(utuple.metadata),
        payload=payload,
        lifetime_s=utuple.lifetime_s,
        reader=utuple.reader or "",
        terms=encode_terms(utuple.terms),
    )


# --- limits of what a user asks at once ----------------------------------------------------------


def asked_where(
    encoded: bytes, alternatives: int = 0, field: str = "where"
) -> dict[str, DataCondition]:
    """A data template that came from a user, beside an address condition with so many alternatives: what is too much is
    refused before anything is made of it."""
    check_bytes(0, len(encoded))
    if encoded == b"{}":
        return {}
    check_parts(encoded, field)
    forms = forms_of(encoded, field)
    named = (
        len(form) - 1
        for form in forms.values()
        if isinstance(form, list) and form[:1] == ["one_of"]
    )
    _check_counts(len(forms), (alternatives, *named), field)
    return where_of(forms, field)


def check_many(where: Where, address: AddressCondition = ANY) -> None:
    """Refuse a template that asks more at once than a server looks at in passing. What is stored was taken by its own
    version's limits, so only what comes from a user is asked."""
    _check_counts(len(where), map(_alternatives, (address, *where.values())), "where")


def _alternatives(wanted: DataCondition | AddressCondition) -> int:
    return len(wanted.values) if isinstance(wanted, OneOf) else 0


def _check_counts(conditions: int, alternatives: Iterable[int], field: str) -> None:
    if conditions > MAX_CONDITIONS:
        raise InvalidInput(
            field, f"{conditions} conditions", f"must be at most {MAX_CONDITIONS} conditions"
        )
    if (values := sum(alternatives)) > MAX_ALTERNATIVES:
        rule = f"all one_of of a template together name at most {MAX_ALTERNATIVES} values"
        raise InvalidInput(field, f"{values} values", rule)


def check_bytes(metadata: int, where: int) -> None:
    """Of a template's two halves, as JSON."""
    if metadata + where > MAX_TEMPLATE_BYTES:
        raise InvalidInput(
            "where" if where > metadata else "address",
            f"{metadata + where} bytes",
            f"a template must be at most {MAX_TEMPLATE_BYTES} bytes",
        )


# --- the metadata half ---------------------------------------------------------------------------


def encode_metadata(template: Template) -> bytes:
    # Of checked values, all of them numbers and texts: what `encode_data` would write.
    return compact(
        orjson.dumps(
            {
                "address": condition_to_list(template.address),
                "since_us": template.since_us,
                "until_us": template.until_us,
                "area": _area_to_list(template.area),
            }
        )
    )


def decode_metadata(encoded: bytes) -> Template:
    form = orjson.loads(encoded)
    area = form["area"]
    area = None if area is None else _AREAS[area[0]](*area[1:])
    return _checked_template(_address(form["address"]), form["since_us"], form["until_us"], area)


def _address(form: list[Any]) -> AddressCondition:
    if form[0] == "equal":
        return _checked_equal(form[1])
    condition = condition_from_list("address", form)
    assert not isinstance(condition, Absent | TypeIs), "such an address was never packed"
    return condition


def _maker_from_checked(made: type[T]) -> Callable[..., T]:
    """Makes values of a frozen dataclass with slots from parts that were checked before, in the order of its fields.

    These classes check what they are built from. What was packed has passed that already, in this process, in another
    server or before it was stored; to check it once more would take most of the time of a server that starts or learns
    with a million EFs. So the parts are put into the slots directly, here and nowhere else."""
    setters = [getattr(made, one.name).__set__ for one in fields(made)]  # type: ignore[arg-type]

    def make(*parts: object) -> T:
        value = object.__new__(made)
        for put, part in zip(setters, parts, strict=True):
            put(value, part)
        return value

    return make


_checked_equal = _maker_from_checked(Equal)
_checked_template = _maker_from_checked(Template)
_checked_utuple = _maker_from_checked(UTuple)


def _area_to_list(area: Area | None) -> list[object] | None:
    match area:
        case Box(south, west, north, east):
            return ["box", south, west, north, east]
        case Circle(lat, lon, radius_m):
            return ["circle", lat, lon, radius_m]
    return None
