"""Data: what a user's mapping may hold, how values compare, and their one encoding, JSON.

Numbers compare by the decimal value JSON writes for them, so that Python, PostgreSQL and any index
agree: 1 equals 1.0, a bool is no number, NaN and infinities cannot be written. Bytes are written as
{"$bytes": "<base64>"}; the name "$bytes" is therefore reserved.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, cast

import orjson

from utuple.errors import InvalidInput
from utuple.model.limits import (
    MAX_DATA_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_NAME_BYTES,
    MAX_PARTS,
    MIN_INTEGER,
)

Value = Any
"""None, bool, int, float, str, bytes, list or dict of these. Users may also give NumPy's scalars."""

BYTES_NAME = "$bytes"
_EXACT_FLOAT = 2**53
_EXACTLY = frozenset((str, int, float, bool, type(None), bytes, list, tuple, dict))
_PLAIN = frozenset((str, int, float, bool, type(None)))
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SUSPECT = (b"null", b"\\u0000", b'"$bytes"')


_KINDS = "biufSU"
"""Of NumPy's types: bool, integers, floats, bytes and text."""
_PLAIN_TYPES = (bool, int, float, str, bytes)


def check_name(field: str, name: object) -> str:
    """A subject, type, address or reader name: text, not empty, not long, storable."""
    if not isinstance(name, str):
        raise InvalidInput(field, name, "must be text")
    check_text(field, name)
    if not name:
        raise InvalidInput(field, name, "must not be empty")
    if len(name) * 4 > MAX_NAME_BYTES and len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidInput(field, name, f"must be at most {MAX_NAME_BYTES} bytes of UTF-8")
    return name


def are_plain_names(column: Sequence[object]) -> bool:
    """True if `check_name` passes each, seen at one glance; False may be a false alarm."""
    names = cast(Sequence[str], column)
    try:
        whole = "\n".join(names)
    except TypeError:
        return False
    sizes = set(map(len, names))
    return (
        whole.isascii()
        and "\x00" not in whole
        and 0 not in sizes
        and max(sizes, default=0) <= MAX_NAME_BYTES
    )


def check_text(field: str, text: str) -> str:
    if "\x00" in text:
        raise InvalidInput(field, text, "must not contain U+0000, which PostgreSQL cannot store")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(field, text, "must not contain lone surrogates") from None
    return text


def check_value(field: str, value: Value) -> None:
    """Refuse what cannot be carried; says which part of the data is wrong."""
    if not isinstance(value, list | tuple | dict) or not are_plainly_right((value,)):
        _walk(field, value, 1)


def are_plainly_right(values: Iterable[Value]) -> bool:
    """True if `check_value` passes each. It looks at one depth of all of them at a time, without a call of Python for
    each part: a megabyte may have half a million. False may be a false alarm."""
    level = list(values)
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, level))
        if not kinds <= _EXACTLY:
            return False
        if str in kinds and not _are_storable(_of_type(str, level)):
            return False
        if int in kinds:
            numbers = _of_type(int, level)
            if min(numbers) < MIN_INTEGER or max(numbers) > MAX_INTEGER:
                return False
        if float in kinds and not all(map(math.isfinite, _of_type(float, level))):
            return False
        lists = [item for item in level if type(item) is list or type(item) is tuple]
        mappings = _of_type(dict, level) if dict in kinds else []
        names = list(chain.from_iterable(mappings))
        if names and not (
            set(map(type, names)) == {str}
            and _are_storable(names)
            and all(names)
            and BYTES_NAME not in names
        ):
            return False
        level = [*chain.from_iterable(lists), *chain.from_iterable(map(dict.values, mappings))]
        if not level:
            return True
    return False


def _of_type(kind: type, values: list[Value]) -> list[Value]:
    return [item for item in values if type(item) is kind]


def _are_storable(texts: list[str]) -> bool:
    whole = "".join(texts)
    try:
        return "\x00" not in whole and (whole.isascii() or bool(whole.encode()))
    except UnicodeEncodeError:
        return False


def _walk(field: str, value: Value, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(field, value, f"must be nested at most {MAX_DEPTH} deep")
    if value is None or isinstance(value, bool | bytes):
        return
    if isinstance(value, int):
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise InvalidInput(field, value, f"must lie in [{MIN_INTEGER}, {MAX_INTEGER}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(field, value, "must be a finite number")
    elif isinstance(value, str):
        check_text(field, value)
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _walk(f"{field}[{position}]", item, depth + 1)
    elif isinstance(value, Mapping):
        _check_mapping(field, value, depth)
    elif (meant := plain_scalar(value)) is not value:
        _walk(field, meant, depth)
    else:
        raise InvalidInput(
            field, value, "must be a number, text, bool, bytes, null, or a list or mapping of these"
        )


def plain(value: Value) -> Value:
    """NumPy's scalars as the plain values they mean, at any depth, in a value that `check_value` has passed."""
    if isinstance(value, Mapping):
        return {plain_scalar(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        items = map(plain, value)
        return tuple(items) if isinstance(value, tuple) else list(items)
    return plain_scalar(value)


def _check_mapping(field: str, value: Mapping[Any, Any], depth: int) -> None:
    for name, item in value.items():
        inner = f"{field}.{name}"
        if not isinstance(name, str):
            raise InvalidInput(inner, name, "names must be text")
        if not name:
            raise InvalidInput(inner, name, "names must not be empty")
        if name == BYTES_NAME:
            raise InvalidInput(inner, name, "this name is reserved for bytes")
        check_text(inner, name)
        _walk(inner, item, depth + 1)


def encode_data(data: Mapping[str, Value], field: str = "data") -> bytes:
    """The one encoding of data. Plain mappings take one look at each value; the rest is walked."""
    is_plain = type(data) is dict and all(type(item) in _PLAIN for item in data.values())
    if not is_plain:
        _check_whole(field, data)
    try:
        encoded = encode_checked(data)
    except TypeError:
        check_value(field, data)
        data = plain(data)
        encoded = encode_checked(data)
    if is_plain and ("" in data or any(mark in encoded for mark in _SUSPECT)):
        _check_whole(field, data)
    _check_size(encoded, field)
    return encoded


def _check_size(encoded: bytes, field: str) -> None:
    if len(encoded) > MAX_DATA_BYTES:
        raise InvalidInput(
            field, f"{len(encoded)} bytes", f"must be at most {MAX_DATA_BYTES} bytes as JSON"
        )
    check_parts(encoded, field)


def check_parts(encoded: bytes, field: str) -> None:
    """Before anything is made of it. Brackets that stand in texts are no parts."""
    parts = encoded.count(b"[") + encoded.count(b"{")
    if parts > MAX_PARTS:
        outside = _TEXT.sub(b"", encoded)
        parts = outside.count(b"[") + outside.count(b"{")
        if parts > MAX_PARTS:
            raise InvalidInput(
                field, f"{parts} lists and mappings", f"must be at most {MAX_PARTS} of them"
            )


def encode_checked(value: Value) -> bytes:
    """The JSON of a value that was checked already."""
    return compact(orjson.dumps(value, default=_encode_bytes, option=_OPTIONS))


def compact(encoded: bytes) -> bytes:
    """What orjson has written, in as much memory as it needs. orjson writes into 4 KiB and gives that back as it is: of a million
    templates that are kept that would be 4 GB each for the metadata and for the data."""
    return b"%b" % encoded


def _check_whole(field: str, data: object) -> None:
    if not isinstance(data, Mapping):
        raise InvalidInput(field, data, "must be a mapping of names to values")
    check_value(field, data)


def _encode_bytes(value: object) -> object:
    if isinstance(value, bytes):
        return {BYTES_NAME: base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a data value")


def decode_data(encoded: bytes) -> dict[str, Value]:
    """The inverse of `encode_data`, for bytes that passed `normal_data` or `encode_data`."""
    data = orjson.loads(encoded)
    if b'"$bytes"' in encoded:
        data = _revive(data)
    return data  # type: ignore[no-any-return]


def decode_all(encoded: Sequence[bytes]) -> list[dict[str, Value]]:
    """`decode_data` of each, in one go: a call each costs as much again."""
    joined = b"[" + b",".join(encoded) + b"]"
    if b'"$bytes"' in joined:
        return [decode_data(one) for one in encoded]
    decoded: list[dict[str, Value]] = orjson.loads(joined)
    return decoded


def _revive(value: Value) -> Value:
    if isinstance(value, list):
        return [_revive(item) for item in value]
    if not isinstance(value, dict):
        return value
    if BYTES_NAME not in value:
        return {name: _revive(item) for name, item in value.items()}
    if len(value) != 1 or not isinstance(value[BYTES_NAME], str):
        raise InvalidInput("data", value, 'a "$bytes" mapping holds one base64 text')
    try:
        return base64.b64decode(value[BYTES_NAME], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("data", value, 'a "$bytes" mapping holds one base64 text') from None


def normal_data(encoded: bytes, field: str = "data") -> bytes:
    """Bytes from the wire, brought to the one encoding or refused."""
    _check_size(encoded, field)
    try:
        data = decode_data(encoded)
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise InvalidInput(field, error.value, error.rule) from None
        raise InvalidInput(field, encoded, f"must be JSON: {error}") from None
    return encode_data(data, field)


def number_key(value: int | float) -> int | float | Decimal:
    """What a number compares by: itself, or its written decimal where floats have gaps."""
    if isinstance(value, float) and abs(value) >= _EXACT_FLOAT:
        return Decimal(repr(value))
    return value


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(left: Value, right: Value) -> bool:
    """Equality of values: numbers as numbers, bools as bools, the rest by parts."""
    if is_number(left):
        return is_number(right) and number_key(left) == number_key(right)
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(item, right[name]) for name, item in left.items())
        )
    if isinstance(left, list | tuple):
        return (
            isinstance(right, list | tuple)
            and len(left) == len(right)
            and all(map(same, left, right))
        )
    return type(left) is type(right) and bool(left == right)


def value_key(value: Value) -> Hashable:
    """What a value is found by in a set: two are the same exactly if their keys are equal."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return number_key(value)
    if isinstance(value, list | tuple):
        return ("list", *map(value_key, value))
    if isinstance(value, dict):
        return ("mapping", frozenset((name, value_key(item)) for name, item in value.items()))
    return value  # type: ignore[no-any-return]


TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "text",
    bytes: "bytes",
    list: "list",
    dict: "mapping",
    type(None): "null",
}


def type_name(value: Value) -> str:
    return "list" if isinstance(value, tuple) else TYPE_NAMES[type(value)]


def plain_scalar(value: Any) -> Any:
    """The plain value of a NumPy scalar, and of a float or text of a class derived from these; else the value itself.

    Readings often come out of NumPy, and `np.float32(0.5)` is meant as 0.5. NumPy itself is never imported here: the bare
    install does not have it. What it calls a scalar is known by name; arrays, dates and complex numbers stay what they are,
    and are refused by whoever checks them."""
    kind = type(value)
    if kind in _PLAIN_TYPES or value is None:
        return value
    if _is_numpy_scalar(kind):
        meant = value.item() if value.dtype.kind in _KINDS else value
        return meant if type(meant) in _PLAIN_TYPES else value
    if isinstance(value, float):
        return float(value)
    return str.__str__(value) if isinstance(value, str) else value


def _is_numpy_scalar(kind: type) -> bool:
    return any((base.__module__, base.__name__) == ("numpy", "generic") for base in kind.__mro__)
