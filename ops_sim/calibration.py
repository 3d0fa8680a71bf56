"""From what was measured on a server to a cost model (section 4.1.1, figures 6 and 7). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ops_sim.cost import CostModel
from ops_sim.fitting import Fit, fit_line
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


def calibrate(measured: Mapping[str, Points], memory_bytes: float) -> Calibration:
    """A line that falls is noise around a level one."""
    if missing := sorted((TIMES | SIZES).keys() - measured.keys()):
        raise InvalidInput("measured", missing[0], "is missing")
    fits = {name: fit_line(points.there, points.one) for name, points in measured.items()}
    model = CostModel(
        name="calibrated",
        **{name: max(0.0, fits[name].slope) for name in SIZES},
        **{name: _at_0(fits[name], measured[name]) for name in _LINES},
        cf_s=fmean(measured["cf_s"].one),  # the model knows no line for it
        ea_s_per_ef=max(0.0, fits["ea_s"].slope),
        ef_s_per_ea=max(0.0, fits["ef_s"].slope),
        ca_s_per_cf=max(0.0, fits["ca_s"].slope),
        memory_bytes=memory_bytes,
    )
    return Calibration(model, fits, measured, _assumed(fits, memory_bytes))


def _at_0(fit: Fit, points: Points) -> float:
    """Of a line that falls, its mean. Nothing is registered in no time: a line that begins below it is noise, and the
    quickest seen is nearer."""
    if fit.slope <= 0:
        return fmean(points.one)
    return fit.intercept if fit.intercept > 0 else min(points.one)


def _assumed(fits: Mapping[str, Fit], memory_bytes: float) -> list[str]:
    found = [
        f"a server holds {memory_bytes / 1e9:g} GB: given, not measured",
        "times are the caller's, one after the other, with the network of one machine; EAs go in the SDK's batches",
        "each registration matches one uTuple at most",
    ]
    for name in _LINES:
        if fits[name].slope <= 0:
            found.append(
                f"{TIMES[name]}: seen to take no longer the more there are; the mean is taken"
            )
        elif fits[name].slope <= fits[name].slope_95:
            found.append(
                f"{TIMES[name]}: whether it takes longer the more there are is within the noise"
            )
    return found
