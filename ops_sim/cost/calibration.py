"""From what was measured on a server to a cost model (section 4.1.1, figures 6 and 7). Pure.

Straight lines are fitted to the measurements by least squares, with how sure their two numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ops_sim.cost.model import CostModel
from utuple.errors import InvalidInput

TIMES = {
    "ea_s": "an EA against stored EFs",
    "ef_s": "an EF against stored EAs",
    "ca_s": "a CA against stored CFs",
    "cf_s": "a CF against stored CFs",
}
"""Seconds of one, by how many were there: figure 6."""
_LINES = ("ea_s", "ef_s", "ca_s")
SIZES = {"ea_bytes": "EAs", "ef_bytes": "EFs", "cf_bytes": "CFs"}
"""The store, by how many are in it: figure 7."""
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
        """The line rises beyond doubt: 0 lies below the slope's interval."""
        return self.slope > self.slope_95


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Fit:
    """The line of least squares."""
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


@dataclass(frozen=True, slots=True)
class Points:
    there: Sequence[float]
    one: Sequence[float]


@dataclass(frozen=True, slots=True)
class Calibration:
    model: CostModel
    fits: Mapping[str, Fit]
    measured: Mapping[str, Points]
    assumed: Sequence[str]
    """What the model says and nobody measured."""


def calibrate(
    measured: Mapping[str, Points], memory_bytes: float, quick: bool = False
) -> Calibration:
    """A line that does not rise beyond doubt is level: noise, times the uTuples of a full server, would be all one sees."""
    if missing := sorted((TIMES | SIZES).keys() - measured.keys()):
        raise InvalidInput("measured", missing[0], "is missing")
    fits = {name: fit_line(points.there, points.one) for name, points in measured.items()}
    model = CostModel(
        name="quick calibration" if quick else "calibrated",
        **{name: _each(fits[name], measured[name]) for name in SIZES},
        **{name: _at_0(fits[name], measured[name]) for name in _LINES},
        cf_s=fmean(measured["cf_s"].one),  # the model knows no line for it
        ea_s_per_ef=_slope(fits["ea_s"]),
        ef_s_per_ea=_slope(fits["ef_s"]),
        ca_s_per_cf=_slope(fits["ca_s"]),
        memory_bytes=memory_bytes,
        quick=quick,
        efs_max=max(measured["ea_s"].there),
        eas_max=max(measured["ef_s"].there),
        cfs_max=max(measured["ca_s"].there),
    )
    return Calibration(model, fits, measured, _assumed(fits, memory_bytes))


def _slope(fit: Fit) -> float:
    return fit.slope if fit.rises else 0.0


def _at_0(fit: Fit, points: Points) -> float:
    """The cost with nothing stored. Of a level line it is the mean. Nothing is registered in no time: where the line begins below
    0 that is noise, and the quickest
    seen is nearer."""
    if not fit.rises:
        return fmean(points.one)
    return fit.intercept if fit.intercept > 0 else min(points.one)


def _each(fit: Fit, points: Points) -> float:
    """The bytes of one. uTuples do take room: if the line does not show how much, what the most of them took together does."""
    if fit.rises:
        return fit.slope
    there, taken = max(zip(points.there, points.one, strict=True))
    return max(0.0, taken / there)


def _assumed(fits: Mapping[str, Fit], memory_bytes: float) -> list[str]:
    found = [
        f"a server holds {memory_bytes / 1e9:g} GB: given, not measured",
        "times are the caller's, one after the other, with the network of one machine; EAs go in the SDK's batches",
        "each registration matches one uTuple at most",
    ]
    for name in _LINES:
        if not fits[name].rises:
            said = "not seen beyond the noise to take longer the more there are; the mean is taken"
            found.append(f"{TIMES[name]}: {said}")
    for name, kind in SIZES.items():
        if not fits[name].rises:
            found.append(
                f"bytes of {kind}: within the noise; what the most took is divided by them"
            )
    return found
