"""What a request asks for, as arguments of the SDK: a template in query parameters, in the command line's words, or in a
JSON object. Whatever is not known is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import QueryParams

from utuple.cli.verbs import parsing
from utuple.doors.http.problems import invalid

PLACE = ("address", "prefix", "area", "since", "until")
TEMPLATE = ("subject", "type", *PLACE, "where")
_MANY = frozenset({"address", "where"})
_TRUE, _FALSE = ("true", "1"), ("false", "0")
_LONGEST_S = 86_400.0


def template_of(query: QueryParams, *others: str) -> dict[str, Any]:
    """`subject`, `type`, `address`, `area`, `since`, `until` and `where` of `watch` and `read`."""
    check_known(query, (*TEMPLATE, *others))
    asked: dict[str, Any] = {name: required(query, name) for name in ("subject", "type")}
    asked |= place_of(query.getlist("address"), query)
    asked["where"] = parsing.parse_where(query.getlist("where"))
    return asked


def place_of(addresses: list[str], said: Mapping[str, Any]) -> dict[str, Any]:
    now = datetime.now(UTC)
    asked: dict[str, Any] = {}
    if addresses or said.get("prefix") is not None:
        asked["address"] = parsing.parse_address(addresses, said.get("prefix"))
    if said.get("area") is not None:
        asked["area"] = parsing.parse_area(said["area"])
    for name in ("since", "until"):
        if said.get(name) is not None:
            asked[name] = parsing.parse_time(name, said[name], now)
    return asked


def check_known(query: QueryParams, known: Collection[str]) -> None:
    for name in query:
        if name not in known:
            raise invalid(name, query[name], f"is not one of {', '.join(known)}")
        if name not in _MANY and len(query.getlist(name)) > 1:
            raise invalid(name, query.getlist(name), "is given once")


def required(query: QueryParams, name: str) -> str:
    value = query.get(name)
    if value is None:
        raise invalid(name, None, "is missing")
    return value


def whole(query: QueryParams, name: str, most: int = 1_000_000_000) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= most:
        raise invalid(name, text, f"must be a whole number between 1 and {most}")
    return int(text)


def flag(query: QueryParams, name: str) -> bool:
    text = query.get(name, "false").lower()
    if text not in (*_TRUE, *_FALSE):
        raise invalid(name, text, "must be true or false")
    return text in _TRUE


def seconds(query: QueryParams, name: str) -> float | None:
    """Seconds, or with a unit."""
    text = query.get(name)
    if text is None:
        return None
    found = parsing.parse_duration_s(name, text)
    if found > _LONGEST_S:
        raise invalid(name, text, f"must be at most {_LONGEST_S:g} s")
    return found


def command_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `command`: a JSON object with `data`, and whom it is for."""
    known = ("subject", "type", "data", *PLACE, "lifetime_s", "everywhere", "notify")
    check_fields(said, known)
    for name in ("subject", "type", "data"):
        if name not in said:
            raise invalid(name, None, "is missing")
    for name in ("prefix", "area", "since", "until"):
        if said.get(name) is not None and not isinstance(said[name], str):
            raise invalid(name, said[name], "must be text, as on the command line")
    addresses = said.get("address")
    listed = [addresses] if isinstance(addresses, str) else addresses or []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise invalid("address", addresses, "must be text, or a list of texts")
    if not isinstance(said["data"], dict):
        raise invalid("data", said["data"], "must be a JSON object")
    asked = {"subject": said["subject"], "type": said["type"], "data": said["data"]}
    asked |= place_of(listed, said)
    for name, default in (("lifetime_s", 0), ("everywhere", False), ("notify", None)):
        value = said.get(name)
        asked[name] = default if value is None else value
    return asked


def check_fields(said: Mapping[str, Any], known: Collection[str]) -> None:
    for name in said:
        if name not in known:
            raise invalid(name, said[name], f"is not one of {', '.join(known)}")
