"""What a subscription of MQTT 5 asks for beside its filter, by user properties in the words of the command line. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from utuple.cli.verbs.parsing import parse_area, parse_time, parse_where

ASKED = ("area", "where", "since")
"""User properties of a SUBSCRIBE that ask for more than its filter does."""

Pairs = tuple[tuple[str, str], ...]


def conditions_of(user: Pairs, now: datetime) -> dict[str, Any]:
    """`area`, `where` and `since` of the SDK. Raises `InvalidInput`."""
    found: dict[str, Any] = {}
    for name, value in user:
        if name == "area":
            found["area"] = parse_area(value)
        elif name == "since":
            found["since"] = parse_time("since", value, now)
    if where := [value for name, value in user if name == "where"]:
        found["where"] = parse_where(where)
    return found
