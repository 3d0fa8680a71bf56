"""The table [simulation] of elastic.toml: a load over time, how long things take, and prices. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from utuple.errors import InvalidInput
from utuple.model.settings import above, build, check_keys, number, whole

MINUTES_MAX = 60 * 24 * 366
_TABLES = ("load", "machine", "price")


@dataclass(frozen=True, slots=True)
class Durations:
    """How long what the controller orders takes, in the keys of [simulation] itself."""

    name: str = "elasticity"
    minutes: int = 60
    step_s: float = 5.0
    """Between two looks of the controller."""
    boot_s: float = 60.0
    """From the order of a machine until it is ready."""
    start_s: float = 5.0
    """From the order of a server until it serves."""
    settle_s: float = 10.0
    """Until load has moved to a new server."""
    drain_s: float = 10.0
    """Until a server that leaves is in no line."""
    servers: int = 1
    """At the beginning, on machine-1."""

    def __post_init__(self) -> None:
        whole("simulation.minutes", self.minutes, 1, MINUTES_MAX)
        whole("simulation.servers", self.servers, 1, 1_000)
        above("simulation.step_s", self.step_s)
        for name in ("boot_s", "start_s", "settle_s", "drain_s"):
            number("simulation." + name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class FirstMachine:
    """The machine there is at the beginning, [simulation.machine]."""

    cpu: int = 1
    memory_mb: float = 1024.0

    def __post_init__(self) -> None:
        whole("simulation.machine.cpu", self.cpu, 1, 10_000)
        above("simulation.machine.memory_mb", self.memory_mb)


@dataclass(frozen=True, slots=True)
class MachineType:
    """A machine of fixed size that may be bought instead, [[simulation.price.type]]."""

    name: str
    cpu: int
    memory_mb: float
    hour: float
    """What it costs an hour, in any currency."""

    def __post_init__(self) -> None:
        whole("simulation.price.type.cpu", self.cpu, 1, 10_000)
        above("simulation.price.type.memory_mb", self.memory_mb)
        number("simulation.price.type.hour", self.hour)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a machine of any size costs an hour, and the fixed sizes to compare with."""

    cpu_hour: float = 0.03
    gb_hour: float = 0.004
    types: tuple[MachineType, ...] = ()

    def __post_init__(self) -> None:
        number("simulation.price.cpu_hour", self.cpu_hour)
        number("simulation.price.gb_hour", self.gb_hour)

    def hour(self, cpu: int, memory_mb: float) -> float:
        for kind in self.types:
            if (kind.cpu, kind.memory_mb) == (cpu, memory_mb):
                return kind.hour
        return cpu * self.cpu_hour + memory_mb / 1024 * self.gb_hour


@dataclass(frozen=True, slots=True)
class Scenario:
    durations: Durations
    load: tuple[tuple[float, float], ...]
    """From which minute on, how much: in servers that are always busy."""
    machine: FirstMachine = FirstMachine()
    prices: Prices = Prices()

    def load_at(self, minute: float) -> float:
        at = bisect_right(self.load, (minute, float("inf")))
        return self.load[at - 1][1] if at else 0.0


def scenario_of(told: Mapping[str, Any]) -> Scenario:
    if not told:
        rule = "is what a simulation needs: a load over time; see docs/elasticity.md"
        raise InvalidInput("simulation", "", rule)
    check_keys("simulation", told, (*(one.name for one in fields(Durations)), *_TABLES))
    own = {key: value for key, value in told.items() if key not in _TABLES}
    return Scenario(
        build(Durations, "simulation", own),
        _load_of(told.get("load")),
        build(FirstMachine, "simulation.machine", told.get("machine", {})),
        _prices_of(told.get("price", {})),
    )


def _load_of(told: object) -> tuple[tuple[float, float], ...]:
    rule = "must be a list of [minute, load] pairs, load in servers that are always busy"
    if not isinstance(told, list) or not told:
        raise InvalidInput("simulation.load", told, rule)
    for pair in told:
        if not isinstance(pair, list) or len(pair) != 2:
            raise InvalidInput("simulation.load", pair, rule)
        for value in pair:
            number("simulation.load", value)
    if [pair[0] for pair in told] != sorted({pair[0] for pair in told}):
        raise InvalidInput("simulation.load", told, "minutes must rise")
    return tuple((float(minute), float(load)) for minute, load in told)


def _prices_of(told: object) -> Prices:
    if not isinstance(told, Mapping):
        raise InvalidInput("simulation.price", told, "must be a table: [simulation.price]")
    check_keys("simulation.price", told, ("cpu_hour", "gb_hour", "type"))
    types = told.get("type", [])
    if not isinstance(types, list):
        raise InvalidInput(
            "simulation.price.type", types, "must be a list: [[simulation.price.type]]"
        )
    kinds = tuple(build(MachineType, "simulation.price.type", kind) for kind in types)
    return Prices(told.get("cpu_hour", 0.03), told.get("gb_hour", 0.004), kinds)
