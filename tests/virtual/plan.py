"""What a seed plans: the cluster's shape, what its clients do and when. Drawn before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.virtual.programs.cluster import Shape
from tests.virtual.world.loop import START_US
from utuple.cluster.line import Line, Member, first_table
from utuple.model.area import Area, Box, Circle
from utuple.model.condition import at_least, below, between, one_of, prefix
from utuple.model.key import key_of
from utuple.model.terms import (
    KEEP,
    DropPolicy,
    expire,
    latest_per_address,
    newest,
    oldest,
    respond_within,
)
from utuple.model.utuple import Family, datetime_of

STORM_S = 50.0
"""As long as faults are injected."""

BEGIN_S = 3.0
"""The first seconds are calm: the table is adopted, managers meet."""

POLICIES = (newest(2), oldest(2), latest_per_address(), expire(5.0), respond_within(1.0))
ADDRESSES = ("north-1", "north-2", "south-1", "south-2")
SPOTS = ((35.0, 139.0), (35.5, 139.5), (-33.0, 151.0), None)
FAR_AWAY = tuple(f"{number:0>1000}" for number in range(400))
"""Addresses nobody has: an EF that names them weighs some hundred kilobytes."""
LARGE = 0.1
"""The share of seeds in which all EFs do."""
INSISTING = 0.1
"""The share of seeds in which many commands are sent to one family: searched one after another, by a slow database,
they take about as long as their senders wait."""
FOR_EVER = 1e9
LARGE_BYTES = 1_000
"""Of some events: they are counted by bytes in readers' windows, not only by rows."""
DIVIDED = 0.35
"""The share of first sections that are there in two parts with the same members."""
MONITORS = (0, 0, 0, 0, 0, 1, 2)
"""With none, an operator throws dice."""


@dataclass(frozen=True)
class Emission:
    at_s: float
    events: tuple[Mapping[str, Any], ...]
    """Arguments of `emit`, without `data`'s number."""
    many: bool


@dataclass(frozen=True)
class Watching:
    label: str
    family: Family
    place: Mapping[str, Any]
    where: Mapping[str, Any]
    named: bool
    acks: float
    """The share of deliveries that is acknowledged."""
    spans: tuple[tuple[float, float], ...]
    """Open from, until."""
    absent: DropPolicy = KEEP


@dataclass(frozen=True)
class Serving:
    label: str
    family: Family
    address: str
    position: tuple[float, float] | None
    where: Mapping[str, Any]
    named: bool
    spans: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Commanding:
    at_s: float
    family: Family
    place: Mapping[str, Any]
    data: Mapping[str, Any]
    lifetime_s: float


@dataclass(frozen=True)
class Reading:
    at_s: float
    family: Family
    newest_first: bool = False


@dataclass
class ClientPlan:
    name: str
    emissions: list[Emission] = field(default_factory=list)
    watches: list[Watching] = field(default_factory=list)
    devices: list[Serving] = field(default_factory=list)
    commands: list[Commanding] = field(default_factory=list)
    reads: list[Reading] = field(default_factory=list)
    set_back_s: list[float] = field(default_factory=list)
    """When its lines are set back to older ones."""


@dataclass
class Plan:
    shape: Shape
    families: tuple[Family, ...]
    clients: list[ClientPlan]
    monitors: int


MANAGERS = (1, 2, 3, 7)
"""With more than three a line is not held by all of them, and a server does not tell all of them; with seven those who hold a line
may all be others than those who are told of it."""


class Planner:
    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self.families = tuple(Family(f"s{n}", "t") for n in dice.sample(range(100), 4))
        self._are_large = dice.random() < LARGE

    def plan(self) -> Plan:
        dice = self._dice
        shape = self._shape()
        clients = [ClientPlan(f"client-{number}") for number in range(1, dice.randint(2, 3) + 1)]
        for number in range(dice.randint(3, 7)):
            dice.choice(clients).watches.append(self._watch(f"w{number}"))
        for number in range(dice.randint(1, 3)):
            dice.choice(clients).devices.append(self._device(f"d{number}"))
        for _ in range(dice.randint(12, 24)):
            dice.choice(clients).emissions.append(self._emission(self._some_time_s()))
        for client in list(clients):
            for watching in client.watches:
                for _ in range(dice.choice((0, 1, 2, 3))):
                    dice.choice(clients).emissions.append(self._race(watching))
        for _ in range(dice.randint(2, 6)):
            dice.choice(clients).commands.append(self._command())
        for _ in range(dice.randint(0, 3)):
            families, newest_first = self.families, dice.random() < 0.5
            read = Reading(self._some_time_s(), dice.choice(families), newest_first)
            dice.choice(clients).reads.append(read)
        for _ in range(dice.randint(0, 3)):
            dice.choice(clients).set_back_s.append(self._some_time_s())
        monitors = dice.choice(MONITORS)
        if dice.random() < INSISTING:
            family = dice.choice(self.families)
            at_s = dice.uniform(BEGIN_S, BEGIN_S + STORM_S)
            for _ in range(dice.randint(20, 40)):
                place = {"address": prefix("room")}
                command = Commanding(at_s, family, place, {"on": True}, dice.choice((0.0, 3600.0)))
                dice.choice(clients).commands.append(command)
        return Plan(shape, self.families, clients, monitors)

    def _some_time_s(self) -> float:
        return self._dice.uniform(BEGIN_S, BEGIN_S + STORM_S)

    # --- the cluster ---------------------------------------------------------------------------------

    def _shape(self) -> Shape:
        dice = self._dice
        servers = [f"server-{number}" for number in range(1, dice.choice((3, 3, 4, 4, 5)) + 1)]
        sections = dice.randint(1, len(servers))
        lines = []
        for line in first_table(servers[:sections]):
            members = [*line.members]
            for name in dice.sample(servers, dice.choice((0, 0, 1, 1, 2, len(servers)))):
                if all(member.name != name for member in members):
                    members.append(Member(name, accumulatable=dice.random() < 0.7))
            lines += self._parts(Line(line.section, line.epoch, tuple(members)))
        return Shape(
            tuple(servers),
            tuple(lines),
            managers=dice.choice(MANAGERS),
            scas=dice.choice((1, 2, 3)),
        )

    def _parts(self, line: Line) -> list[Line]:
        """A section may come in two parts with the same members, as splits and drains leave them: they can be merged."""
        dice = self._dice
        if dice.random() >= DIVIDED:
            return [line]
        section = line.section
        keys = [key for family in self.families if section.start < (key := key_of(*family))]
        inside = [key for key in keys if key < section.end]
        first, second = section.split_at(
            dice.choice(inside or [(section.start + section.end) // 2])
        )
        return [line.within(first), Line(second, line.epoch + dice.randrange(3), line.members)]

    # --- events --------------------------------------------------------------------------------------

    def _emission(self, at_s: float) -> Emission:
        dice = self._dice
        many = dice.random() < 0.4
        count = dice.randint(2, 6) if many else 1
        events = (self._event(at_s, dice.choice(self.families)) for _ in range(count))
        return Emission(at_s, tuple(events), many)

    def _race(self, watching: Watching) -> Emission:
        """At the very time a watch opens."""
        at_s = max(BEGIN_S, watching.spans[0][0] + self._dice.uniform(-0.005, 0.03))
        event = self._event(at_s, watching.family)
        return Emission(at_s, ({**event, "lifetime_s": 3600},), many=False)

    def _event(self, at_s: float, family: Family) -> dict[str, Any]:
        dice = self._dice
        return {
            "subject": family.subject,
            "type": family.type,
            "address": dice.choice(ADDRESSES),
            "position": dice.choice(SPOTS),
            "data": {
                "kg": dice.randrange(10),
                **dice.choice(({}, {}, {"text": "x" * LARGE_BYTES})),
            },
            "time": self._instant(at_s),
            "lifetime_s": dice.choice((0, 0.05, 0.2, 0.5, 4, 30, 3600, 3600, 86400, 86400 * 7)),
        }

    def _instant(self, at_s: float) -> datetime:
        return datetime_of(START_US) + timedelta(seconds=round(at_s, 3))

    def _place(self) -> dict[str, Any]:
        dice = self._dice
        place: dict[str, Any] = {}
        if dice.random() < 0.3:
            place["address"] = dice.choice(
                (prefix("north"), "south-1", one_of(*ADDRESSES[1:3]), between("n", "o"))
            )
        if dice.random() < 0.2:
            area: Area = dice.choice((Box(30.0, 130.0, 40.0, 140.0), Circle(35.0, 139.0, 10_000)))
            place["area"] = area
        return place

    def _watch(self, label: str) -> Watching:
        dice = self._dice
        place = self._place()
        if self._are_large:
            place["address"] = one_of(*ADDRESSES[:3], *FAR_AWAY)
        if dice.random() < 0.2:
            place["since"] = self._instant(self._some_time_s())
        kg = dice.choice((None, at_least(3), below(6), between(2, 8)))
        named = dice.random() < 0.6
        return Watching(
            label,
            dice.choice(self.families),
            place,
            {} if kg is None else {"kg": kg},
            named,
            dice.choice((0.0, 0.5, 1.0, 1.0)) if named else 0.0,
            self._spans(comes_again=named),
            dice.choice((KEEP, *POLICIES)) if named else KEEP,
        )

    def _spans(self, *, comes_again: bool) -> tuple[tuple[float, float], ...]:
        dice = self._dice
        begin_s = dice.choice((BEGIN_S, self._some_time_s()))
        if not comes_again or dice.random() < 0.5:
            closes = dice.random() < 0.2
            return ((begin_s, self._some_time_s() + 10.0 if closes else FOR_EVER),)
        first, second = sorted((self._some_time_s(), self._some_time_s()))
        return ((BEGIN_S, first), (second, FOR_EVER))

    # --- commands ------------------------------------------------------------------------------------

    def _device(self, label: str) -> Serving:
        dice = self._dice
        return Serving(
            label,
            dice.choice(self.families),
            f"room-{label}",
            dice.choice(SPOTS),
            dice.choice(({}, {"on": bool}, {"on": True})),
            dice.random() < 0.6,
            ((dice.choice((BEGIN_S, self._some_time_s())), FOR_EVER),),
        )

    def _command(self) -> Commanding:
        dice = self._dice
        simple = dice.random() < 0.4
        place = {"address": f"room-d{dice.randrange(3)}"} if simple else self._place()
        if not simple and dice.random() < 0.7:
            place = {"address": prefix("room")}
        return Commanding(
            self._some_time_s(),
            dice.choice(self.families),
            place,
            {"on": dice.random() < 0.7},
            0.0 if simple else dice.choice((0.0, 3600.0, 3600.0)),
        )
