"""How many devices there are on a day, in one possible world. Pure; the dice come as `Draws`.

A demand is a trend (linear or exponential, less those who leave), times a season, bursts and noise. Worlds of one
demand differ in how fast it grows, when bursts come, the noise, and how long deliveries of servers take. Devices are
counted by the load they cause: a burst is devices that are twice as busy, or twice the devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from utuple.errors import InvalidInput
from utuple.model.settings import number, whole

DAYS_PER_YEAR = 365.0
DAYS_MAX = 3_660
"""Ten years: nobody plans further, and the arrays stay small."""


class Growth(StrEnum):
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Demand:
    name: str = "paper"
    growth: Growth = Growth.LINEAR
    devices_start: float = 0.0
    devices_per_day: float = 10_000.0
    """For linear growth."""
    doubling_days: float = 365.0
    """For exponential growth."""
    growth_spread: float = 0.0
    """How unsure growth is: the standard deviation of its logarithm between worlds; 0.2 is about ±20 %."""
    churn_per_day: float = 0.0
    """The share of the devices that leaves every day."""
    season_share: float = 0.0
    """How far a season lifts and lowers the load; 0.3 is ±30 %."""
    season_days: float = DAYS_PER_YEAR
    bursts_per_year: float = 0.0
    burst_share: float = 0.0
    """What a burst adds; 1.0 doubles the load."""
    burst_days: int = 3
    noise: float = 0.0
    """The standard deviation of the logarithm from day to day."""
    lead_time_days: int = 30
    """Days from the decision to buy to the installation."""
    lead_time_spread: float = 0.0
    """The standard deviation of its logarithm between orders."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name not in ("name", "growth"):
                number(f"demand.{field.name}", getattr(self, field.name))
        number("demand.doubling_days", self.doubling_days, least=1)
        number("demand.season_days", self.season_days, least=2)
        for name in ("burst_days", "lead_time_days"):
            whole(f"demand.{name}", getattr(self, name), 1, DAYS_MAX)
        for name in ("churn_per_day", "season_share"):
            if getattr(self, name) >= 1:
                raise InvalidInput(f"demand.{name}", getattr(self, name), "must be below 1")
        if self.growth is Growth.EXPONENTIAL and not self.devices_start:
            rule = "exponential growth starts with some devices"
            raise InvalidInput("demand.devices_start", 0, rule)
        if self.growth is Growth.LINEAR and not (self.devices_start or self.devices_per_day):
            raise InvalidInput("demand.devices_per_day", 0, "no devices now and none to come")

    @property
    def is_drawn(self) -> bool:
        """Whether its worlds differ."""
        bursts = self.bursts_per_year and self.burst_share
        return bool(self.growth_spread or self.noise or self.lead_time_spread or bursts)

    @property
    def burst_chance(self) -> float:
        """The chance that a burst begins on a given day."""
        return min(1.0, self.bursts_per_year / DAYS_PER_YEAR)


@dataclass(frozen=True, slots=True)
class Draws:
    """The dice of one world: standard normal numbers, and uniform ones for bursts. One entry a day, of `lead_times` one
    an order: there is at most one a day."""

    growth: float
    noise: Sequence[float]
    bursts: Sequence[float]
    lead_times: Sequence[float]


def devices_of(demand: Demand, draws: Draws) -> list[float]:
    """Day by day, 1 to as many as there are draws; ops_sim/operation/kernel.py does the same for many worlds at once."""
    factor = math.exp(demand.growth_spread * draws.growth)
    found = []
    burst_ends = 0
    for day, (noise, burst) in enumerate(zip(draws.noise, draws.bursts, strict=True), 1):
        if burst < demand.burst_chance:
            burst_ends = day + demand.burst_days
        devices = _trend(demand, factor, day)
        devices *= 1 + demand.season_share * math.sin(2 * math.pi * day / demand.season_days)
        devices *= 1 + (demand.burst_share if day < burst_ends else 0.0)
        devices *= math.exp(demand.noise * noise - demand.noise**2 / 2)
        found.append(devices)
    return found


def _trend(demand: Demand, factor: float, day: int) -> float:
    stay = 1 - demand.churn_per_day
    if demand.growth is Growth.EXPONENTIAL:
        rate = math.log(2) / demand.doubling_days
        return demand.devices_start * math.exp(rate * factor * day) * stay**day
    # Who came k days ago is still there with probability stay^k.
    days = (1 - stay**day) / (1 - stay) if demand.churn_per_day else float(day)
    return demand.devices_start * stay**day + demand.devices_per_day * factor * days


def lead_times_of(demand: Demand, draws: Draws) -> Iterator[int]:
    """Order by order."""
    for draw in draws.lead_times:
        factor = math.exp(demand.lead_time_spread * draw)
        yield max(1, round(demand.lead_time_days * factor))
