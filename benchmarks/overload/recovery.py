"""When answers were back to normal, from probes: (began, ended, outcome) each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

Probe = tuple[float, float, str]

NORMAL_FACTOR = 3.0
NORMAL_MARGIN_S = 0.05
"""What counts as normal: three times the median before, or this above it."""


def normal_s(probes: Sequence[Probe], before_s: float) -> float:
    """The longest that still counts as normal, going by the probes that ended before then."""
    took = [ended_s - began_s for began_s, ended_s, _ in probes if ended_s < before_s]
    usual_s = median(took) if took else 0.0
    return max(usual_s * NORMAL_FACTOR, usual_s + NORMAL_MARGIN_S)


def recovery_s(
    probes: Sequence[Probe], ended_s: float, limit_s: float, ok: str, calm_s: float
) -> float | None:
    """From the end of the overload to the first probe from which on, for `calm_s`, all are as usual."""
    since: float | None = None
    for probe_began_s, probe_ended_s, outcome in probes:
        if probe_ended_s < ended_s:
            continue
        if outcome != ok or probe_ended_s - probe_began_s > limit_s:
            since = None
        elif since is None:
            since = max(probe_began_s, ended_s)
        if since is not None and probe_ended_s - since >= calm_s:
            return since - ended_s
    return None
