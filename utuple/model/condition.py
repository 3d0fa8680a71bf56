"""Conditions: what a template asks of one field, of the address or of the data.

Each is a frozen value that cannot be built wrong, knows whether a value `meets` it, and has one JSON
form (a list: name first, then its arguments) used on the wire, in the store and in logs.
A missing field is passed as `MISSING`; only `Absent` is met by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from utuple.errors import InvalidInput
from utuple.model.limits import (
    MAX_ALTERNATIVES,
    MAX_DATA_BYTES,
)
from utuple.model.value import (
    TYPE_NAMES,
    Value,
    are_plainly_right,
    check_text,
    check_value,
    decode_data,
    encode_checked,
    is_number,
    number_key,
    plain,
    plain_scalar,
    same,
    type_name,
    value_key,
)

MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Present:
    """The field is there, whatever its value."""

    def meets(self, value: Value) -> bool:
        return value is not MISSING


@dataclass(frozen=True, slots=True)
class Absent:
    """The field is not there."""

    def meets(self, value: Value) -> bool:
        return value is MISSING


@dataclass(frozen=True, slots=True)
class Equal:
    """Equal to this; numbers as numbers, so that 1 equals 1.0."""

    value: Value

    def __post_init__(self) -> None:
        if not are_plainly_right((self.value,)):
            check_value("equal", self.value)
            object.__setattr__(self, "value", plain(self.value))

    def meets(self, value: Value) -> bool:
        return value is not MISSING and same(self.value, value)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Equal to one of these."""

    values: tuple[Value, ...]
    _keys: frozenset[Hashable] | None = field(default=None, init=False, repr=False, compare=False)
    """Of the values, once somebody has asked: each event that comes asks, and there may be thousands of values."""

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInput("one_of", (), "must name at least one value, or nothing can match")
        if len(self.values) > MAX_ALTERNATIVES:
            raise InvalidInput(
                "one_of", self.values, f"must name at most {MAX_ALTERNATIVES} values"
            )
        if not are_plainly_right(self.values):
            for position, value in enumerate(self.values):
                check_value(f"one_of[{position}]", value)
            object.__setattr__(self, "values", tuple(map(plain, self.values)))

    def meets(self, value: Value) -> bool:
        if self._keys is None:
            object.__setattr__(self, "_keys", frozenset(map(value_key, self.values)))
            assert self._keys is not None
        return value is not MISSING and value_key(value) in self._keys


@dataclass(frozen=True, slots=True)
class Range:
    """Half-open: low <= value < high, of numbers or of texts; None leaves an end open."""

    low: int | float | str | None
    high: int | float | str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", plain_scalar(self.low))
        object.__setattr__(self, "high", plain_scalar(self.high))
        ends = [end for end in (self.low, self.high) if end is not None]
        if not ends:
            raise InvalidInput("range", (None, None), "must have at least one end")
        for end in ends:
            if not (is_number(end) or isinstance(end, str)):
                raise InvalidInput("range", end, "ends must be numbers or texts")
            check_value("range", end)
        if len(ends) == 2:
            if is_number(ends[0]) != is_number(ends[1]):
                raise InvalidInput("range", tuple(ends), "ends must be both numbers or both texts")
            if not _order(ends[0]) < _order(ends[1]):
                raise InvalidInput(
                    "range", tuple(ends), "low must be below high (half-open), or nothing can match"
                )
        if self.low is None and self.high == "":
            raise InvalidInput("range", (None, ""), "no text is below the empty text")

    @property
    def of_numbers(self) -> bool:
        return is_number(self.low if self.low is not None else self.high)

    def meets(self, value: Value) -> bool:
        if self.of_numbers:
            if not is_number(value):
                return False
        elif not isinstance(value, str):
            return False
        at = _order(value)
        return (self.low is None or _order(self.low) <= at) and (
            self.high is None or at < _order(self.high)
        )


@dataclass(frozen=True, slots=True)
class TypeIs:
    """Of this type, by its name in `TYPE_NAMES`."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in TYPE_NAMES.values():
            known = ", ".join(sorted(set(TYPE_NAMES.values())))
            raise InvalidInput("type", self.name, f"must be one of {known}")

    def meets(self, value: Value) -> bool:
        return value is not MISSING and type_name(value) == self.name


@dataclass(frozen=True, slots=True)
class Prefix:
    """Text that begins so; a condition on the address only."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidInput("prefix", self.text, "must be text")
        check_text("prefix", self.text)

    def meets(self, value: Value) -> bool:
        return isinstance(value, str) and value.startswith(self.text)

    @property
    def end(self) -> str | None:
        """The first text after all that begin so, in code-point order; None if there is none."""
        for length in range(len(self.text), 0, -1):
            last = ord(self.text[length - 1])
            if last < 0x10FFFF:
                after = 0xE000 if last == 0xD7FF else last + 1
                return self.text[: length - 1] + chr(after)
        return None


DataCondition = Present | Absent | Equal | OneOf | Range | TypeIs
AddressCondition = Present | Equal | OneOf | Range | Prefix
Where = Mapping[str, DataCondition]
"""A data template: conditions by field name."""

ANY: Final = Present()
"""The field is there, whatever its value: where={"note": ANY}"""
ABSENT: Final = Absent()
"""The field is not there: where={"note": ABSENT}"""


def _order(value: Any) -> Any:
    return value if isinstance(value, str) else number_key(value)


def at_least(low: int | float | str) -> Range:
    """The value is `low` or more: numbers, or texts in code-point order.

    where={"kg": at_least(1000)}
    """
    return Range(low, None)


def below(high: int | float | str) -> Range:
    """The value is less than `high`: numbers, or texts in code-point order.

    where={"celsius": below(0)}
    """
    return Range(None, high)


def between(low: int | float | str, high: int | float | str) -> Range:
    """The value is `low` or more and less than `high` (half-open): numbers, or texts in code-point order.

    where={"kg": between(1000, 2000)}
    address=between("truck-100", "truck-200")
    """
    return Range(low, high)


def one_of(*values: Value) -> OneOf:
    """The value equals one of these.

    where={"state": one_of("on", "idle")}
    address=one_of("truck-17", "truck-18")
    """
    return OneOf(values)


def prefix(text: str) -> Prefix:
    """The address begins with this text. For `address=` only.

    address=prefix("truck-")
    """
    return Prefix(text)


def data_condition(field: str, asked: object) -> DataCondition:
    """What a user wrote in `where=`: a condition, a type, or a plain value (equal)."""
    if isinstance(asked, Present | Absent | Equal | OneOf | Range | TypeIs):
        return asked
    if isinstance(asked, Prefix):
        raise InvalidInput(field, asked, "prefix is a condition on the address only")
    if isinstance(asked, type):
        if asked not in TYPE_NAMES:
            names = ", ".join(kind.__name__ for kind in TYPE_NAMES)
            raise InvalidInput(field, asked, f"a type must be one of {names}")
        return TypeIs(TYPE_NAMES[asked])
    check_value(field, asked)
    return Equal(asked)


def data_template(
    asked: Mapping[str, object] | None, field: str = "where"
) -> dict[str, DataCondition]:
    if asked is None:
        return {}
    if not isinstance(asked, Mapping):
        raise InvalidInput(field, asked, "must be a mapping of names to conditions")
    check_value(field, dict.fromkeys(asked))
    return {
        plain_scalar(name): data_condition(f"{field}.{name}", wanted)
        for name, wanted in asked.items()
    }


def address_condition(asked: object) -> AddressCondition:
    """What a user wrote in `address=` of a template."""
    if asked is None or isinstance(asked, Present):
        return ANY
    if isinstance(asked, str):
        asked = Equal(asked)
    if isinstance(asked, Prefix):
        return ANY if asked.text == "" else asked
    if isinstance(asked, Equal | OneOf):
        values = asked.values if isinstance(asked, OneOf) else (asked.value,)
        for value in values:
            if not isinstance(value, str) or not value:
                raise InvalidInput("address", value, "addresses are texts and not empty")
        return asked
    if isinstance(asked, Range):
        if asked.of_numbers:
            raise InvalidInput("address", asked, "an address range has texts as its ends")
        return asked
    raise InvalidInput("address", asked, "must be a text, prefix(...), one_of(...) or between(...)")


def where_meets(where: Where, data: Mapping[str, Value]) -> bool:
    """Does this data satisfy every condition? Fields the template does not name are ignored."""
    return all(wanted.meets(data.get(name, MISSING)) for name, wanted in where.items())


# --- the JSON form -----------------------------------------------------------------------------

_BUILDERS: dict[str, Callable[..., DataCondition | Prefix]] = {
    "any": Present,
    "absent": Absent,
    "equal": Equal,
    "one_of": lambda *values: OneOf(values),
    "range": Range,
    "type": TypeIs,
    "prefix": Prefix,
}


def condition_to_list(wanted: DataCondition | AddressCondition) -> list[Value]:
    match wanted:
        case Present():
            return ["any"]
        case Absent():
            return ["absent"]
        case Equal(value):
            return ["equal", value]
        case OneOf(values):
            return ["one_of", *values]
        case Range(low, high):
            return ["range", low, high]
        case TypeIs(name):
            return ["type", name]
        case Prefix(text):
            return ["prefix", text]


def condition_from_list(field: str, form: object) -> DataCondition | Prefix:
    # The name's type first: what came over the wire may be anything, also unhashable.
    if not (isinstance(form, list) and form and isinstance(form[0], str) and form[0] in _BUILDERS):
        raise InvalidInput(field, form, f"must be a list that begins with one of {list(_BUILDERS)}")
    try:
        return _BUILDERS[form[0]](*form[1:])
    except TypeError:
        raise InvalidInput(field, form, f"wrong number of arguments for {form[0]!r}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{field}.{error.field}", error.value, error.rule) from None


def encode_where(where: Where) -> bytes:
    """The one encoding of a data template: names sorted, so that equal templates have equal bytes."""
    if not where:
        return b"{}"
    check_value("where", dict.fromkeys(where))
    encoded = encode_checked({name: condition_to_list(where[name]) for name in sorted(where)})
    _check_size(encoded, "where")
    return encoded


def _check_size(encoded: bytes, field: str) -> None:
    if len(encoded) > MAX_DATA_BYTES:
        raise InvalidInput(
            field, f"{len(encoded)} bytes", f"must be at most {MAX_DATA_BYTES} bytes"
        )


def decode_where(encoded: bytes, field: str = "where") -> dict[str, DataCondition]:
    """One that is stored; what comes from a user is asked in `asked`."""
    if encoded == b"{}":
        return {}
    _check_size(encoded, field)
    return where_of(forms_of(encoded, field), field)


def forms_of(encoded: bytes, field: str) -> dict[str, Any]:
    """Conditions by name, in their JSON form."""
    try:
        forms = decode_data(encoded)
    except InvalidInput as error:
        raise InvalidInput(field, error.value, error.rule) from None
    except orjson.JSONDecodeError as error:
        raise InvalidInput(field, encoded, f"must be JSON: {error}") from None
    if not isinstance(forms, dict):
        raise InvalidInput(field, forms, "must be a mapping of names to conditions")
    return forms


def where_of(forms: Mapping[str, Any], field: str) -> dict[str, DataCondition]:
    where = {name: condition_from_list(f"{field}.{name}", form) for name, form in forms.items()}
    return data_template(where, field)
