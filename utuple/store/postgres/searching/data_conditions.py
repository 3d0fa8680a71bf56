"""Conditions on data as SQL. Field names and values are bound parameters, never text of the statement.

SQLAlchemy takes half a millisecond to write one condition, and a template may have hundreds: so each form of a condition
is written once, and a template's text is put together from these. Casts of a field to a number stand inside CASE, since
PostgreSQL may evaluate the sides of an AND in any order.

Data is stored as text. Several conditions stand in a subquery that reads it as JSON once for each row: read anew for each
condition, a row of 300 fields took 200 conditions a hundred times as long. OFFSET 0 keeps PostgreSQL from undoing that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Numeric,
    Text,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal_column,
    not_,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import NullType, TypeEngine

from utuple.model.condition import (
    Absent,
    DataCondition,
    Equal,
    OneOf,
    Present,
    Range,
    TypeIs,
    Where,
)
from utuple.model.value import BYTES_NAME, Value, encode_checked
from utuple.store.postgres.statements import Parameters, Statement, compiled
from utuple.store.postgres.tables import events

Condition = ColumnElement[bool]

FORMS_MAX = 64
"""There are fewer."""
_JSON_TYPES = {
    "bool": "boolean",
    "number": "number",
    "text": "string",
    "list": "array",
    "null": "null",
    "mapping": "object",
    "bytes": "object",
}

_PLACE = "(/* data */)"
DATA: Condition = literal_column(_PLACE, Boolean)
"""Where the conditions on data are to stand in a statement."""
_EQUAL, _ONE_OF = Equal(None), OneOf((None,))
_DOCUMENT: ColumnElement[Any] = cast(events.c.data, JSONB)
_PARSED: ColumnElement[Any] = literal_column("parsed.document", JSONB)
_NAMED = re.compile(rb"%\((\w+)\)s")


def with_data(statement: Statement, where: Where) -> Statement:
    """The same, with these conditions in their place."""
    texts: list[bytes] = []
    parameters = dict(statement.parameters)
    document = _PARSED if len(where) > 1 else _DOCUMENT
    for number, (name, wanted) in enumerate(where.items()):
        form, values = _form_and_values(wanted)
        texts.append(_written(form, document).replace(b"#", b"_%d" % number))
        parameters[f"name_{number}"] = name
        parameters.update({f"{key}_{number}": value for key, value in values.items()})
    conditions = b" AND ".join(texts)
    if len(where) > 1:
        conditions = b"(SELECT %s FROM (%s) AS parsed)" % (conditions, _parsing())
    text = statement.text.replace(_PLACE.encode(), conditions)
    return Statement(text, parameters, statement.is_usual)


@cache
def _parsing() -> bytes:
    return b"SELECT %s AS document OFFSET 0" % compiled(_DOCUMENT).text


def _form_and_values(wanted: DataCondition) -> tuple[DataCondition, Parameters]:
    """A condition whose text is the same, and this one's parameters."""
    match wanted:
        case Equal(value):
            return _EQUAL, {"value": _json(value)}
        case OneOf(values):
            return _ONE_OF, {"value": array_of(list(map(_json, values)))}
        case Range(low, high) if wanted.of_numbers:
            form = _range(low is None, high is None, 0, 1)
            return form, {"low": _decimal(low), "high": _decimal(high)}
        case Range(low, high):
            form = _range(low is None, high is None, "a", "b")
            return form, {"low": low, "high": high}
        case _:
            return wanted, {}


@lru_cache(maxsize=FORMS_MAX)
def _range(is_low_open: bool, is_high_open: bool, low: int | str, high: int | str) -> Range:
    return Range(None if is_low_open else low, None if is_high_open else high)


@lru_cache(maxsize=2 * FORMS_MAX)
def _written(form: DataCondition, document: ColumnElement[Any]) -> bytes:
    """With # behind the name of each parameter."""
    meets = field_meets(form, document, bindparam("name", type_=Text))
    text = compiled(meets).text
    return b"(" + _NAMED.sub(rb"%(\1#)s", text) + b")"


def array_of(texts: Sequence[str]) -> str:
    """As PostgreSQL writes an array. None of them has U+0000 in it, which therefore can stand between them."""
    whole = "\x00".join(texts).replace("\\", "\\\\").replace('"', '\\"').replace("\x00", '","')
    return f'{{"{whole}"}}'


def _given(name: str, type_: TypeEngine[Any]) -> ColumnElement[Any]:
    """A parameter that PostgreSQL reads as this type by itself."""
    return cast(bindparam(name, type_=NullType()), type_)


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
        case Equal():
            return field == _given("value", JSONB())
        case OneOf():
            return field == func.any(_given("value", ARRAY(JSONB)))
        case Range(low, high) if wanted.of_numbers:
            inside = within(cast(field, Numeric), *_ends(low, high, Numeric()))
            return case((_is_a(field, "number"), inside), else_=false())
        case Range(low, high):
            text = document.op("->>", return_type=Text())(name).collate("C")
            return and_(_is_a(field, "string"), within(text, *_ends(low, high, Text())))
        case TypeIs(type_name):
            return _is_type(field, type_name)


def _ends(low: object, high: object, type_: TypeEngine[Any]) -> list[ColumnElement[Any] | None]:
    named = (("low", low), ("high", high))
    return [None if end is None else bindparam(name, type_=type_) for name, end in named]


def _is_a(field: ColumnElement[Any], json_type: str) -> Condition:
    return func.jsonb_typeof(field) == literal_column(f"'{json_type}'", Text)


def _is_type(field: ColumnElement[Any], type_name: str) -> Condition:
    has_type = _is_a(field, _JSON_TYPES[type_name])
    is_bytes = field.op("?", is_comparison=True)(literal_column(f"'{BYTES_NAME}'", Text))
    if type_name == "bytes":
        return and_(has_type, is_bytes)
    return and_(has_type, not_(is_bytes)) if type_name == "mapping" else has_type


def _json(value: Value) -> str:
    """One value as the JSON it has inside data."""
    return encode_checked(value).decode()


def _decimal(number: int | float | str | None) -> Decimal | None:
    """The decimal value JSON writes for a number, which is what it compares by."""
    return None if number is None else Decimal(repr(number))


def within(value: ColumnElement[Any], low: Any, high: Any) -> Condition:
    """Half-open; None leaves an end open."""
    above = true() if low is None else value >= low
    return above if high is None else and_(above, value < high)
