"""What a reader is told about drops, and how fast its program works: the reader's part of a drop policy. It knows no clock."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from utuple.errors import InvalidInput
from utuple.model.utuple import Template, UTuple, datetime_of
from utuple.wire import utuple_pb2 as pb

REMEMBERED = 1_000
"""Drops that `events.dropped` has: the last ones."""
_FADES_EVERY = 1_000
"""Deliveries, after which the earlier ones count half."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Matches that were dropped while their reader was away, by its own policy: at one server, of one absence."""

    count: int
    policy: str
    since: datetime
    """The reader was away from then …"""
    until: datetime
    """… to then."""
    read: Mapping[str, Any] = field(repr=False)
    """`space.read(**drop.read)` gives them back while they live, with what was delivered of the same time."""
    server: str = ""
    """Where they were registered."""
    zeta: float | None = None
    """Of `respond_within`: the share that was not dropped."""

    @property
    def call(self) -> str:
        """The read as it is written."""
        return f"space.read({', '.join(f'{name}={value!r}' for name, value in self.read.items())})"

    def __str__(self) -> str:
        away = f"{self.since.isoformat()} to {self.until.isoformat()}"
        return f"{self.count} dropped by {self.policy}, away {away}: {self.call}"


OnDropped = Callable[[Drop], object]


class Drops:
    """Those that one watch was told of, each once: a server says it again until it knows that it was heard."""

    def __init__(self, formal: UTuple, on_dropped: OnDropped | None) -> None:
        self._formal = formal
        if on_dropped is not None:
            _check_handler(on_dropped)
        self._on_dropped = on_dropped
        self._seen: set[tuple[str, int]] = set()
        self.last: deque[Drop] = deque(maxlen=REMEMBERED)

    def tell(self, message: pb.Dropped) -> None:
        key = (message.origin, message.after)
        if key in self._seen:
            return
        self._seen.add(key)
        drop = Drop(
            message.count,
            message.policy,
            datetime_of(message.began_us),
            datetime_of(message.ended_us),
            _read_of(self._formal, message.first_us, message.last_us),
            message.origin,
            message.zeta if message.HasField("zeta") else None,
        )
        self.last.append(drop)
        if self._on_dropped is not None:
            self._on_dropped(drop)


def _check_handler(given: object) -> None:
    if not callable(given) or inspect.iscoroutinefunction(given):
        rule = "must be a plain function of one Drop: it is called between two deliveries, and not awaited"
        raise InvalidInput("on_dropped", given, rule)


def _read_of(formal: UTuple, first_us: int, last_us: int) -> dict[str, Any]:
    """The arguments of a read with the formal's conditions, of the events with these times."""
    place = formal.metadata
    assert isinstance(place, Template)
    asked = {
        "subject": formal.family.subject,
        "type": formal.family.type,
        "since": datetime_of(first_us),
        "until": datetime_of(last_us + 1),
    }
    if place.address != Template().address:
        asked["address"] = place.address
    if place.area is not None:
        asked["area"] = place.area
    if formal.where:
        asked["where"] = dict(formal.where)
    return asked


class Pace:
    """Deliveries that the program works off per second while it has some, over all members: only the reader knows."""

    def __init__(self) -> None:
        self._count = 0.0
        self._busy_s = 0.0
        self._handed = 0
        self._since_s = 0.0

    def hand_out(self, count: int, now_s: float) -> None:
        """The program asks for more, so it is done with what it was handed; now it is handed so many."""
        if self._handed:
            self._count += self._handed
            self._busy_s += max(0.0, now_s - self._since_s)
            self._handed = 0
            if self._count > 2 * _FADES_EVERY:
                self._count, self._busy_s = self._count / 2, self._busy_s / 2

        self._handed, self._since_s = count, now_s

    @property
    def per_s(self) -> float:
        """0: not known yet."""
        return self._count / self._busy_s if self._busy_s > 0 else 0.0
