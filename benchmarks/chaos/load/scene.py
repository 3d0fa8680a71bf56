"""What the users of the space do: families, events, templates, devices and commands, from dice. Pure.

Every event and command carries a number `n` that no other has, by which it is known in what was written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from utuple.client.arguments import instant_us
from utuple.cluster.line import first_table
from utuple.model.area import Area, Box, Circle, Position
from utuple.model.condition import (
    ANY,
    AddressCondition,
    DataCondition,
    address_condition,
    at_least,
    below,
    between,
    condition_from_list,
    condition_to_list,
    data_template,
    one_of,
    prefix,
)
from utuple.model.key import key_of
from utuple.model.utuple import Exact, Family, Template, UTuple, datetime_of

HOT_SHARE = 0.4
"""Of all events are of one family: the hot key."""
ADDRESSES = 24
SECOND_US = 1_000_000

LIFETIMES_S = (0.0, 4.0, 15.0, 60.0, 86_400.0)
LIFETIME_WEIGHTS = (1, 3, 3, 4, 9)
"""Some die while a server is away; those that do not must all be there at the end."""

COMMAND_LIFETIMES_S = (0.0, 0.0, 10.0, 40.0)

Event = dict[str, Any]
"""The arguments of `emit`."""
Said = dict[str, Any]
"""What is written down, as JSON."""


def families(servers: int, of_each: int, kind: str) -> list[Family]:
    """So that each section of the first table has some: no server is idle."""
    names = [f"server-{number + 1}" for number in range(servers)]
    found: list[Family] = []
    for line in first_table(names):
        inside = (
            family
            for number in range(10_000)
            if key_of(*(family := Family(f"{kind}-{number}", "load"))) in line.section
        )
        found += [family for family, _ in zip(inside, range(of_each), strict=False)]
    return found


def utuple_id(n: int) -> bytes:
    """How an event or command is known to the checker: by its number, whatever id the SDK gave it."""
    return n.to_bytes(16, "big")


@dataclass(frozen=True, slots=True)
class Asked:
    """A template, as the SDK takes it, as `matches` takes it and as it is written down."""

    family: Family
    address: AddressCondition = ANY
    area: Area | None = None
    since_us: int | None = None
    where: dict[str, DataCondition] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """Of `watch` and `read`."""
        asked: dict[str, Any] = {"subject": self.family.subject, "type": self.family.type}
        asked |= {"address": self.address, "area": self.area, "where": self.where}
        return asked | {"since": None if self.since_us is None else datetime_of(self.since_us)}

    @property
    def template(self) -> Template:
        return Template(self.address, since_us=self.since_us, area=self.area)

    def formal(self, id_: bytes, reader: str, lifetime_s: float) -> UTuple:
        return UTuple(id_, self.family, self.template, None, self.where, lifetime_s, reader)

    @property
    def said(self) -> Said:
        area = self.area
        shape = [getattr(area, name) for name in area.__slots__] if area is not None else []
        return {
            "family": list(self.family),
            "address": condition_to_list(self.address),
            "area": [type(area).__name__, *shape] if area is not None else None,
            "since_us": self.since_us,
            "where": {name: condition_to_list(wanted) for name, wanted in self.where.items()},
        }


def asked_from(said: Said) -> Asked:
    shape = said["area"]
    area: Area | None = None
    if shape is not None:
        area = Box(*shape[1:]) if shape[0] == "Box" else Circle(*shape[1:])
    wanted = {name: condition_from_list(name, form) for name, form in said["where"].items()}
    address = condition_from_list("address", said["address"])
    return Asked(
        Family(*said["family"]),
        address_condition(address),
        area,
        said["since_us"],
        data_template(wanted),
    )


# --- events ------------------------------------------------------------------------------------------


def random_event(dice: Random, n: int, of: Sequence[Family], now_us: int) -> Event:
    """The first family is the hot one."""
    family = of[0] if dice.random() < HOT_SHARE else dice.choice(of)
    data: dict[str, Any] = {"n": n, "kg": dice.randrange(1000)}
    if dice.random() < 0.5:
        data["state"] = dice.choice(("on", "off", True, 1, None))
    return {
        "subject": family.subject,
        "type": family.type,
        "address": f"{dice.choice('abc')}-{dice.randrange(ADDRESSES)}",
        "position": _position(dice) if dice.random() < 0.8 else None,
        "time": datetime_of(now_us),
        "data": data,
        "lifetime_s": dice.choices(LIFETIMES_S, LIFETIME_WEIGHTS)[0],
    }


def written(event: Event) -> Said:
    return {**event, "time": None, "time_us": instant_us("time", event["time"])}


def actual_of(said: Said) -> UTuple:
    """An event that was written down, as `matches` takes it."""
    position = said["position"]
    where: Position | None = (position[0], position[1]) if position is not None else None
    return UTuple(
        utuple_id(said["data"]["n"]),
        Family(said["subject"], said["type"]),
        Exact(said["address"], said["time_us"], where),
        said["data"],
        None,
        said["lifetime_s"],
    )


def _position(dice: Random) -> Position:
    return (round(dice.uniform(35.0, 36.0), 5), round(dice.uniform(139.0, 140.0), 5))


# --- templates ---------------------------------------------------------------------------------------


def random_asked(dice: Random, of: Sequence[Family], now_us: int, *, narrow: bool = True) -> Asked:
    """A narrow one asks for recent events or some of them; the others are for those who stay."""
    family = of[0] if dice.random() < HOT_SHARE else dice.choice(of)
    asked = dice.randrange(5) if narrow else dice.randrange(6)
    since_us = now_us - dice.randrange(30 * SECOND_US) if narrow else None
    match asked:
        case 0:
            return Asked(family, _address(dice), None, since_us)
        case 1:
            south, west = dice.uniform(35.0, 35.7), dice.uniform(139.0, 139.7)
            box = Box(south, west, south + 0.3, west + 0.3)
            return Asked(family, area=box, since_us=since_us)
        case 2:
            circle = Circle(dice.uniform(35.2, 35.8), dice.uniform(139.2, 139.8), 25_000)
            return Asked(family, area=circle, since_us=since_us)
        case 3 | 4:
            return Asked(family, where=_where(dice), since_us=since_us)
        case _:
            return Asked(family, since_us=since_us)


def _address(dice: Random) -> AddressCondition:
    names = [f"{dice.choice('abc')}-{dice.randrange(ADDRESSES)}" for _ in range(3)]
    asked = dice.choice((names[0], one_of(*names), prefix("b-1"), between("a-2", "b-3")))
    return address_condition(asked)


def _where(dice: Random) -> dict[str, DataCondition]:
    low = dice.randrange(700)
    choices: tuple[dict[str, object], ...] = (
        {"kg": at_least(low)},
        {"kg": below(low + 100)},
        {"kg": between(low, low + 300)},
        {"state": True},
        {"state": str},
        {"state": one_of("on", 1)},
    )
    return data_template(dice.choice(choices))


# --- devices and commands ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Machine:
    """An actuator: its CF."""

    family: Family
    address: str
    position: Position
    reader: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Of `serve`."""
        asked = {"subject": self.family.subject, "type": self.family.type, "address": self.address}
        return asked | {"position": self.position, "where": {"on": bool}, "reader": self.reader}

    @property
    def said(self) -> Said:
        return {
            "family": list(self.family),
            "address": self.address,
            "position": list(self.position),
            "reader": self.reader,
        }

    def formal(self, id_: bytes, reader: str, time_us: int, lifetime_s: float) -> UTuple:
        metadata = Exact(self.address, time_us, self.position)
        where = data_template({"on": bool})
        return UTuple(id_, self.family, metadata, None, where, lifetime_s, reader)


def machine_from(said: Said) -> Machine:
    lat, lon = said["position"]
    return Machine(Family(*said["family"]), said["address"], (lat, lon), said["reader"])


def machines(dice: Random, of: Sequence[Family], count: int) -> list[Machine]:
    """Half of them have a reader's name, and come back."""
    return [
        Machine(
            dice.choice(of),
            f"d-{number}",
            _position(dice),
            f"device-{number}" if number % 2 else None,
        )
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Order:
    """A command: to one device, or to all that match."""

    family: Family
    n: int
    address: AddressCondition = ANY
    area: Area | None = None
    lifetime_s: float = 0.0

    @property
    def data(self) -> dict[str, Any]:
        return {"n": self.n, "on": self.n % 2 == 0}

    @property
    def arguments(self) -> dict[str, Any]:
        """Of `command`."""
        asked: dict[str, Any] = {"subject": self.family.subject, "type": self.family.type}
        asked |= {"address": self.address, "area": self.area, "data": self.data}
        return asked | {"lifetime_s": self.lifetime_s}

    @property
    def said(self) -> Said:
        shown = Asked(self.family, self.address, self.area).said
        return {"n": self.n, "lifetime_s": self.lifetime_s, **shown}

    @property
    def actual(self) -> UTuple:
        metadata = Template(self.address, area=self.area)
        return UTuple(utuple_id(self.n), self.family, metadata, self.data, None, self.lifetime_s)


def order_from(said: Said) -> Order:
    asked = asked_from(said)
    return Order(asked.family, said["n"], asked.address, asked.area, said["lifetime_s"])


def random_order(dice: Random, n: int, to: Sequence[Machine]) -> Order:
    machine = dice.choice(to)
    if dice.random() < 0.5:
        return Order(machine.family, n, address_condition(machine.address))  # a simple one
    lifetime_s = dice.choice(COMMAND_LIFETIMES_S)
    if dice.random() < 0.5:
        return Order(machine.family, n, prefix("d-"), lifetime_s=lifetime_s)
    lat, lon = machine.position
    return Order(machine.family, n, area=Circle(lat, lon, 30_000), lifetime_s=lifetime_s)
