"""A straight line through what was measured, with the band in which the next measurement lies; when it meets a
limit; and what that means for an order. Pure.

The band takes the points for independent, which loads of neighbouring days are not quite: with few of them it is too
narrow, and the further ahead the less it says. It is a band all the same, and not a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ops_sim.operation.policy import Policy

Z_90 = 1.6449
"""Nine of ten measurements lie within the band, one of twenty above it."""
DAYS_MIN = 3
"""A line has two numbers: fewer days say nothing about how sure they are. Days and not hours, because load differs
between day and night."""
DAYS_AHEAD_MAX = 3_650
"""Ten years: what is later than that is never."""


@dataclass(frozen=True, slots=True)
class Trend:
    points: int
    """Whole days of samples."""
    mean_day: float
    mean_load: float
    last_day: float
    sxx: float
    sxy: float
    syy: float

    @property
    def can_tell(self) -> bool:
        """Whether there are grounds to say anything about another day. Nobody is told of growth without."""
        return self.points >= DAYS_MIN and self.sxx > 0

    @property
    def per_day(self) -> float:
        return self.sxy / self.sxx if self.can_tell else 0.0

    def at(self, day: float) -> float:
        return max(0.0, self.mean_load + self.per_day * (day - self.mean_day))

    def half_band(self, day: float) -> float:
        if not self.can_tell:
            return 0.0
        free = self.points - 2
        spread = math.sqrt(max(0.0, self.syy - self.sxy * self.sxy / self.sxx) / free)
        reach = 1 + 1 / self.points + (day - self.mean_day) ** 2 / self.sxx
        return _student(free) * spread * math.sqrt(reach)

    def high(self, day: float) -> float:
        return self.at(day) + self.half_band(day)

    def low(self, day: float) -> float:
        return max(0.0, self.at(day) - self.half_band(day))


def _student(free: int) -> float:
    """The 95 % quantile of Student's t, by its expansion about the normal one; exact for 1 and 2."""
    if free == 1:
        return 6.314
    if free == 2:
        return 2.920
    z = Z_90
    first = (z**3 + z) / (4 * free)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return z + first + second


Course = Callable[[float], float]


def reaches(course: Course, from_day: float, limit: float) -> float | None:
    """The first day from now on, to the day, at which it is above the limit; None within ten years."""
    days = range(DAYS_AHEAD_MAX + 1)
    return next((from_day + ahead for ahead in days if course(from_day + ahead) > limit), None)


@dataclass(frozen=True, slots=True)
class Order:
    servers: int
    by_day: float


def order(
    courses: tuple[Course, Course], from_day: float, servers: int, policy: Policy
) -> Order | None:
    """The rule of section 4.2 ahead of time: the first day on which a resource, `horizon_days` later, is above
    `buy_above` of all servers; then as many that it is below `size_below`. Loads are in servers."""

    def ahead(day: float) -> float:
        return max(course(day + policy.horizon_days) for course in courses)

    day = reaches(ahead, from_day, policy.buy_above * servers)
    if day is None:
        return None
    return Order(max(1, math.ceil(ahead(day) / policy.size_below - servers - 1e-9)), day)
