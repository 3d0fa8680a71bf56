"""A straight line through measurements, with how sure its two numbers are. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from utuple.errors import InvalidInput

_T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""Student's t, two-sided 95 %, for 1 degree of freedom and more; beyond, the normal distribution is near."""
_T_MANY = 2.05


@dataclass(frozen=True, slots=True)
class Fit:
    """y = intercept + slope·x; `_95` is half the width of a 95 % confidence interval."""

    intercept: float
    intercept_95: float
    slope: float
    slope_95: float
    points: int

    @property
    def rises(self) -> bool:
        """Beyond doubt: 0 and what is below it lie outside of the slope's interval."""
        return self.slope > self.slope_95


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Fit:
    """By least squares."""
    count = len(xs)
    if count < 3 or len(ys) != count:
        raise InvalidInput("points", count, "a line with its certainty needs three or more")
    x_mean, y_mean = math.fsum(xs) / count, math.fsum(ys) / count
    squares = math.fsum((x - x_mean) ** 2 for x in xs)
    if not squares:
        raise InvalidInput("points", xs[0], "must not all be at one place")
    slope = math.fsum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / squares
    intercept = y_mean - slope * x_mean
    rest = math.fsum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    free = count - 2
    t = _T_95[free - 1] if free <= len(_T_95) else _T_MANY
    error = math.sqrt(rest / free)
    return Fit(
        intercept=intercept,
        intercept_95=t * error * math.sqrt(1 / count + x_mean**2 / squares),
        slope=slope,
        slope_95=t * error / math.sqrt(squares),
        points=count,
    )
