"""What a person wrote into a settings file, read and checked: each refusal says the field, the value and the rule. Pure.

A table of TOML or an object of JSON becomes a frozen value. The value's own fields are the schema, so that it cannot say
something else than the code; a wrong key is told with the nearest valid one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints

from utuple.errors import InvalidInput

Value = TypeVar("Value")


def whole(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, value, f"must be a whole number, {least} to {most}")


def number(field: str, value: object, least: float = 0.0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, value, "must be a number")
    if not math.isfinite(value) or value < least:
        raise InvalidInput(field, value, f"must be {least:g} or more")


def above(field: str, value: object, limit: float = 0.0) -> None:
    number(field, value, limit)
    if value == limit:
        raise InvalidInput(field, value, f"must be above {limit:g}")


def share(field: str, value: object) -> None:
    number(field, value)
    if not 0 < float(value) <= 1:  # type: ignore[arg-type]  # it is a number
        raise InvalidInput(field, value, "must be a share above 0, up to 1")


def no_duplicates(field: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(field, twice[0], "must not be there twice")


def check_keys(where: str, told: Iterable[str], known: Iterable[str]) -> None:
    known = sorted(known)
    for key in told:
        if key in known:
            continue
        near = get_close_matches(key, known, n=1, cutoff=0.0)
        raise InvalidInput(
            where, key, f"is no key of it; the nearest is {near[0]} (there are {', '.join(known)})"
        )


def build(kind: type[Value], where: str, told: object) -> Value:
    """`kind` is a frozen dataclass that checks its own values."""
    if not isinstance(told, Mapping):
        raise InvalidInput(where, told, f"must be a table: [{where}]")
    hints = get_type_hints(kind)
    known = fields(kind)  # type: ignore[arg-type]  # it is a dataclass
    check_keys(where, told, (field.name for field in known))
    for field in known:
        if field.default is MISSING and field.name not in told:
            raise InvalidInput(where, field.name, "is missing")
    return kind(**{key: _typed(f"{where}.{key}", hints[key], told[key]) for key in told})


def _typed(field: str, hint: Any, value: object) -> object:
    """Numbers are checked by the value itself, with their range."""
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        names = [member.value for member in hint]
        if value not in names:
            near = get_close_matches(str(value), names, n=1, cutoff=0.0)[0]
            rule = f"must be one of {', '.join(names)}; the nearest is {near}"
            raise InvalidInput(field, value, rule)
        return hint(value)
    if hint is bool and not isinstance(value, bool):
        raise InvalidInput(field, value, "must be true or false")
    if hint is str and not (isinstance(value, str) and value):
        raise InvalidInput(field, value, "must be a text")
    return value
