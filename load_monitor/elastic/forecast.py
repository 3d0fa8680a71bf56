"""Servers ahead of the load: what `utuple plan forecast --json` wants to be installed, from its day on. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date

from utuple.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Floor:
    """From this day on at least so many servers."""

    day: date
    servers: int

    def on(self, today: date) -> int:
        return self.servers if today >= self.day else 0


def floor_of(text: str) -> Floor | None:
    """None: it wants nothing, or had no grounds to."""
    try:
        told = json.loads(text)
        order = (told["order"] or {}).get("likely")
        if order is None:
            return None
        servers = int(told["servers_now"]) + int(order["servers"])
        return Floor(date.fromisoformat(order["installed"]), servers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        rule = (
            f"must be what `utuple plan forecast --json` prints ({type(error).__name__}: {error})"
        )
        raise InvalidInput("forecast.file", text[:40], rule) from None
