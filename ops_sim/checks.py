"""Checks of what a person wrote into a plan: each says the field, the value and the rule. Pure."""

from __future__ import annotations

import math

from utuple.errors import InvalidInput


def whole(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, value, f"must be a whole number, {least} to {most}")


def number(field: str, value: object, least: float = 0.0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, value, "must be a number")
    if not math.isfinite(value) or value < least:
        raise InvalidInput(field, value, f"must be {least:g} or more")


def share(field: str, value: object) -> None:
    number(field, value)
    if not 0 < float(value) <= 1:  # type: ignore[arg-type]  # it is a number
        raise InvalidInput(field, value, "must be a share above 0, up to 1")
