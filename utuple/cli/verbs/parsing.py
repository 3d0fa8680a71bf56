"""What people write on the command line, as values of the SDK. Pure: now is an argument.

--area   'south,west,north,east'  'lat,lon,radius_m'  'circle:35.68,139.76,2km'  'box:…'
--since  2026-01-31T08:00:00Z, or how long ago: 90s, 15m, 1h, 2d, 1w, now
--where  'kg>=1000'  'kg>=1 kg<5'  'state=idle'  'state in idle,busy'  'on is bool'
         'kg exists'  'kg absent'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import orjson

from utuple.errors import InvalidInput
from utuple.model.area import Area, Box, Circle, Position, check_position
from utuple.model.condition import (
    ABSENT,
    ANY,
    AddressCondition,
    DataCondition,
    Equal,
    OneOf,
    Prefix,
    Range,
    TypeIs,
)
from utuple.model.terms import DropPolicy
from utuple.model.value import Value

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

_NAME = r"[^\s=<>!,]+"
_WORDS = re.compile(
    rf"(?P<name>{_NAME})\s+(?:(?P<word>exists|absent)|is\s+(?P<type>\S+)|in\s+(?P<values>.+))"
)
_COMPARISON = re.compile(rf"(?P<name>{_NAME})\s*(?P<sign>[=<>!]+)\s*(?P<value>.*)", re.DOTALL)
_NEXT_COMPARISON = re.compile(rf"\s+(?:and\s+)?(?={_NAME}\s*(?:==|=|>=|<))")

_TYPE_WORDS = {
    "bool": "bool",
    "int": "number",
    "float": "number",
    "number": "number",
    "str": "text",
    "text": "text",
    "bytes": "bytes",
    "list": "list",
    "dict": "mapping",
    "mapping": "mapping",
    "null": "null",
}


# --- places and times ----------------------------------------------------------------------------


def parse_area(text: str) -> Area:
    shape, colon, rest = text.partition(":")
    parts = [part.strip() for part in (rest if colon else text).split(",")]
    wanted = {"box": 4, "circle": 3}.get(shape.strip().lower()) if colon else len(parts)
    if wanted is None or len(parts) != wanted or wanted not in (3, 4):
        raise InvalidInput(
            "--area",
            text,
            "must be 'south,west,north,east' (a box) or 'lat,lon,radius_m' (a circle)",
        )
    if wanted == 4:
        south, west, north, east = (_number("--area", part) for part in parts)
        return Box(south, west, north, east)
    return Circle(_number("--area", parts[0]), _number("--area", parts[1]), _metres(parts[2]))


def parse_position(text: str) -> Position:
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidInput("--position", text, "must be 'latitude,longitude'")
    position = check_position("--position", [_number("--position", part) for part in parts])
    assert position is not None
    return position


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(field, text, "must be a number") from None


def _metres(text: str) -> float:
    """500, 500m or 2km"""
    if text.endswith("km"):
        return _number("--area", text.removesuffix("km")) * 1000
    return _number("--area", text.removesuffix("m"))


def parse_time(field: str, text: str, now: datetime) -> datetime:
    """An instant with its zone, or how long before `now`."""
    text = text.strip()
    if text == "now":
        return now
    duration = _DURATION.fullmatch(text)
    try:
        if duration and duration[2]:
            return now - timedelta(seconds=_seconds(field, text, duration))
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except InvalidInput:
        raise
    except OverflowError:
        raise InvalidInput(field, text, "must lie in the years 1 to 9999") from None
    except ValueError:
        instant = None
    if instant is None:
        raise InvalidInput(
            field,
            text,
            "must be ISO 8601, such as 2026-01-31T08:00:00Z, or how long ago: 15m, 1h, 2d",
        )
    raise InvalidInput(field, text, "must say its zone: end it with Z for UTC, or +09:00")


def parse_duration_s(field: str, text: str) -> float:
    """Seconds: plain, or with a unit (30, 30s, 15m, 1h, 7d, 2w)."""
    duration = _DURATION.fullmatch(text.strip())
    if duration is None:
        raise InvalidInput(field, text, "must be seconds, or a number with s, m, h, d or w")
    return _seconds(field, text, duration)


def _seconds(field: str, text: str, duration: re.Match[str]) -> float:
    seconds = float(duration[1]) * _SECONDS[duration[2] or "s"]
    if seconds > timedelta.max.total_seconds() / 1000:
        raise InvalidInput(field, text, "is too long")
    return seconds


# --- conditions ----------------------------------------------------------------------------------


def parse_value(text: str) -> Value:
    """JSON where it is JSON (numbers, true, null, "text", lists), else the text itself."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def parse_address(addresses: Sequence[str], prefix: str | None) -> AddressCondition:
    if addresses and prefix is not None:
        raise InvalidInput("--prefix", prefix, "give --address or --prefix, not both")
    if prefix is not None:
        return Prefix(prefix)
    if not addresses:
        return ANY
    return Equal(addresses[0]) if len(addresses) == 1 else OneOf(tuple(addresses))


def parse_where(texts: Iterable[str]) -> dict[str, DataCondition]:
    """All `--where` options together: one condition a field; >= and < of one field are a range."""
    where: dict[str, DataCondition] = {}
    for text in texts:
        for name, wanted in _conditions(text.strip()):
            where[name] = _combined(text, where[name], wanted) if name in where else wanted
    return where


def _conditions(text: str) -> Iterable[tuple[str, DataCondition]]:
    words = _WORDS.fullmatch(text)
    if words:
        return [(words["name"], _worded(text, words))]
    return [_comparison(text, part) for part in _NEXT_COMPARISON.split(text)]


def _worded(text: str, words: re.Match[str]) -> DataCondition:
    if words["word"]:
        return ANY if words["word"] == "exists" else ABSENT
    if words["type"]:
        name = _TYPE_WORDS.get(words["type"])
        if name is None:
            raise InvalidInput("--where", text, f"a type is one of {', '.join(_TYPE_WORDS)}")
        return TypeIs(name)
    values = parse_value(words["values"])
    if not isinstance(values, list):
        values = [parse_value(part.strip()) for part in words["values"].split(",")]
    return OneOf(tuple(values))


_POLICIES: Mapping[str, tuple[type[int] | type[float], ...]] = {
    "keep": (),
    "latest_per_address": (),
    "newest": (int,),
    "oldest": (int,),
    "expire": (float,),
    "respond_within": (float, float),
}


def parse_absent(text: str) -> DropPolicy:
    """`newest:5`, `respond_within:7:0.95`: a drop policy and its numbers."""
    kind, *said = text.split(":")
    kinds = _POLICIES.get(kind)
    if kinds is None or len(said) > len(kinds) or (kinds and not said):
        rule = "must be keep, newest:N, oldest:N, latest_per_address, expire:SECONDS or respond_within:SECONDS[:SHARE]"
        raise InvalidInput("--absent", text, rule)
    try:
        return DropPolicy(kind, *(of(one) for of, one in zip(kinds, said, strict=False)))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("--absent", text, "its numbers must be numbers") from None


def _comparison(text: str, part: str) -> tuple[str, DataCondition]:
    found = _COMPARISON.fullmatch(part)
    if found is None:
        raise InvalidInput(
            "--where",
            text,
            "must be like 'kg>=1000', 'state in idle,busy', 'on is bool', 'kg exists'",
        )
    value = parse_value(found["value"].strip())
    match found["sign"]:
        case "=" | "==":
            return found["name"], Equal(value)
        case ">=":
            return found["name"], Range(value, None)
        case "<":
            return found["name"], Range(None, value)
        case sign:
            raise InvalidInput(
                "--where", text, f"knows =, >=, < (ranges are half-open), not {sign!r}"
            )


def _combined(text: str, one: DataCondition, other: DataCondition) -> DataCondition:
    if isinstance(one, Range) and isinstance(other, Range):
        if one.low is None and other.high is None:
            return Range(other.low, one.high)
        if one.high is None and other.low is None:
            return Range(one.low, other.high)
    raise InvalidInput("--where", text, "a field has one condition, or one >= and one <")
