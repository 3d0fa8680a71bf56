"""What happens in the demo, and what must come of it: the two applications of Table 2, scaled. Pure.

Application A: trucks sense their load; applications ask for areas and loads. Application B: air
conditioners report and are commanded. Every event and command carries a number `n`, by which deliveries
are compared with the brute force of `matches`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from utuple.model.area import Area, Box, Circle, Position
from utuple.model.condition import (
    AddressCondition,
    address_condition,
    at_least,
    below,
    between,
    data_template,
    one_of,
    prefix,
)
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple

TRUCK_LOAD = Family("truck", "load")
ROOM_CLIMATE = Family("aircon", "climate")
ROOM_POWER = Family("aircon", "power")

TRUCKS = 1_000
ROUNDS = 10
"""Events of each truck; the paper's 50 a day, shortened."""
ROOMS = 40

TOKYO = Circle(35.68, 139.76, 1_500)
_ID = bytes(16)

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """An application's watch, under a reader's name."""

    reader: str
    family: Family = TRUCK_LOAD
    where: Mapping[str, object] = field(default_factory=dict)
    area: Area | None = None
    address: AddressCondition | None = None
    late: bool = False
    """Comes while the emitters run, and finds the first events stored."""
    leaves: bool = False
    """Is away while a server is killed, and goes on after that."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Of `space.watch`."""
        asked: dict[str, Any] = {"where": self.where, "area": self.area, "address": self.address}
        return {"subject": self.family.subject, "type": self.family.type, "reader": self.reader} | {
            name: value for name, value in asked.items() if value is not None
        }

    @property
    def formal(self) -> UTuple:
        template = Template(address_condition(self.address), area=self.area)
        return UTuple(_ID, self.family, template, None, data_template(self.where), 60.0)

    def expects(self, events: Sequence[UTuple]) -> set[int]:
        """By brute force."""
        formal = self.formal
        return {event.data["n"] for event in events if event.data and matches(event, formal)}


WATCHES = (
    Asked("dispatch", where={"kg": at_least(8_000)}, area=Box(35.5, 139.5, 35.9, 140.0)),
    Asked("weighbridge", where={"kg": at_least(9_500)}),
    Asked("spare-room", where={"kg": below(500), "state": "driving"}, leaves=True),
    Asked("station", area=TOKYO),
    Asked("workshop", where={"state": one_of("broken", "towed")}, late=True),
    Asked("line-7", address=prefix("truck-7"), where={"kg": between(2_000, 4_000)}, late=True),
    Asked("audit", late=True),
    Asked("too-warm", ROOM_CLIMATE, where={"celsius": at_least(28)}, leaves=True),
)


def actuals(events: Sequence[Event]) -> list[UTuple]:
    """As `matches` sees them."""
    return [
        UTuple(
            _ID,
            Family(event["subject"], event["type"]),
            Exact(event["address"], 0, event["position"]),
            event["data"],
            None,
            60.0,
        )
        for event in events
    ]


def truck_events(dice: Random) -> list[Event]:
    """Round by round, every truck once."""
    return [
        {
            "subject": TRUCK_LOAD.subject,
            "type": TRUCK_LOAD.type,
            "address": f"truck-{truck}",
            "position": (dice.uniform(35.4, 36.0), dice.uniform(139.4, 140.1)),
            "data": {
                "n": round_ * TRUCKS + truck,
                "kg": dice.randrange(10_000),
                "state": dice.choice(("driving", "driving", "waiting", "broken", "towed")),
            },
        }
        for round_ in range(ROUNDS)
        for truck in range(TRUCKS)
    ]


@dataclass(frozen=True, slots=True)
class Room:
    address: str
    position: Position


def rooms(dice: Random) -> list[Room]:
    """Some inside the circle, some outside."""
    return [
        Room(f"room-{101 + n}", (dice.uniform(35.66, 35.70), dice.uniform(139.74, 139.78)))
        for n in range(ROOMS)
    ]


def climate_events(dice: Random, of: Sequence[Room], rounds: int = ROUNDS) -> list[Event]:
    return [
        {
            "subject": ROOM_CLIMATE.subject,
            "type": ROOM_CLIMATE.type,
            "address": room.address,
            "position": room.position,
            "data": {"n": round_ * len(of) + number, "celsius": round(dice.uniform(18, 34), 1)},
        }
        for round_ in range(rounds)
        for number, room in enumerate(of)
    ]


def inside(of: Sequence[Room], circle: Circle) -> list[Room]:
    """Whom a command to this circle must reach, by brute force."""
    command = UTuple(_ID, ROOM_POWER, Template(area=circle), {"on": False}, None, 0.0)
    return [
        room
        for room in of
        if matches(
            command,
            UTuple(_ID, ROOM_POWER, Exact(room.address, 0, room.position), None, {}, 60.0),
        )
    ]
