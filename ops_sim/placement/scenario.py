"""What a study of placement is asked: how many servers, keys and devices, and how unevenly the load lies. Pure.

The load is application A of table 2 (ops_sim/cost/application.py). A device belongs to one key; so do EFs, in
proportion to the devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ops_sim.cost.application import A
from utuple.errors import InvalidInput
from utuple.model.settings import whole

EVEN, ZIPF, HOT = "even", "zipf", "hot"
SERVERS_MAX = 10_000
KEYS_MAX = 10_000_000
DEVICES_MAX = 10**10
DAYS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly devices lie over keys."""

    kind: str = EVEN
    value: float = 0.0
    """The exponent of Zipf's law, or the share of the one hot key."""

    def __post_init__(self) -> None:
        limits = {EVEN: (0.0, 0.0), ZIPF: (0.0, 5.0), HOT: (0.0, 1.0)}
        if self.kind not in limits:
            raise InvalidInput("skew", self.kind, "must be even, zipf:EXPONENT or hot:SHARE")
        low, high = limits[self.kind]
        if not low <= self.value <= high:
            raise InvalidInput("skew", str(self), f"must lie between {low:g} and {high:g}")

    def __str__(self) -> str:
        return self.kind if self.kind == EVEN else f"{self.kind}:{self.value:g}"


def skew_from(text: str) -> Skew:
    """`even`, `zipf:1.1` or `hot:0.2`."""
    kind, colon, number = text.strip().partition(":")
    if kind in (ZIPF, HOT) and colon:
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        return Skew(kind, value)
    if text.strip() == EVEN:
        return Skew()
    raise InvalidInput(
        "skew", text, "must be even, zipf:EXPONENT (zipf:1.1) or hot:SHARE (hot:0.2)"
    )


@dataclass(frozen=True, slots=True)
class Scenario:
    servers: int = 10
    """On the last day. Devices and servers grow together, a straight line from their first number."""
    servers_first: int = 10
    devices: float = 1_400_000.0
    devices_first: float = 1_400_000.0
    keys: int = 10_000
    days: int = 100
    skew: Skew = Skew()
    churn: float = 0.0
    """The share of the keys that vanish a day, while as many appear elsewhere."""
    night: float = 0.0
    """A key's load rises by this share of its mean by day and falls by it at night, in a time zone of its own."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("churn", "night"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(name, getattr(self, name), "must lie between 0 and 1")
        whole("servers", self.servers, 1, SERVERS_MAX)
        whole("servers_first", self.servers_first, 1, self.servers)
        whole("keys", self.keys, 1, KEYS_MAX)
        whole("days", self.days, 1, DAYS_MAX)
        if not 0 < self.devices <= DEVICES_MAX:
            raise InvalidInput("devices", self.devices, f"must lie above 0, up to {DEVICES_MAX:g}")
        if not 0 < self.devices_first <= self.devices:
            rule = "must lie above 0, up to devices: a plan is for growth"
            raise InvalidInput("devices_first", self.devices_first, rule)

    @property
    def name(self) -> str:
        parts = [str(self.skew)]
        parts += [f"churn:{self.churn:g}"] if self.churn else []
        parts += [f"night:{self.night:g}"] if self.night else []
        return f"{' '.join(parts)} · {self.servers} servers · seed {self.seed}"

    @property
    def looks(self) -> int:
        """Moments of a day at which load is looked at: day and night, where they differ."""
        return 2 if self.night else 1

    def devices_on(self, day: int) -> float:
        return self.devices_first + (self.devices - self.devices_first) * self._part(day)

    def eas_on(self, day: int) -> float:
        """EAs that come in on that day."""
        return self.devices_on(day) * A.ea_per_day

    def efs_on(self, day: int) -> float:
        """EFs registered, each counted once however many servers have a copy."""
        return self.devices_on(day) * A.efs

    def servers_on(self, day: int) -> int:
        grown = (self.servers - self.servers_first) * self._part(day)
        return self.servers_first + math.floor(grown + 1e-9)

    def _part(self, day: int) -> float:
        return day / (self.days - 1) if self.days > 1 else 1.0
