"""From what a recording holds to the servers that such a load asks for. Pure.

An hour without a single row is taken as not recorded, not as an hour without load: recordings have holes of days and
months, and where devices do rest for hours this errs on the safe side. Devices are those of the day with the most of them:
all that were ever seen count those that left and came in the meantime, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ops_sim.cost.application import DAY_S, EA_LIFETIME_DAYS
from ops_sim.cost.model import CostModel
from ops_sim.operation.policy import Policy
from ops_sim.report.formatting import count, number

HOURS_MIN = 24
"""So many hours must have rows: load differs between day and night."""
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Found:
    rows: int
    bad_rows: int
    """Without a time, an address, a subject or a type: not counted as load."""
    keys: int
    devices_ever: int
    devices_day: int
    """Devices seen on the day with the most of them."""
    devices_hour: float
    """Devices seen in an average hour that has rows."""
    days: int
    """Days with at least one row."""
    hours: int
    """Hours with at least one row."""
    hours_span: int
    """Hours from the first to the last."""
    peak_per_s: float
    """EAs a second in the busiest hour."""
    first: str
    last: str


def answer(found: Found, cost: CostModel, devices: float | None, policy: Policy) -> dict[str, Any]:
    """What this load, or the same of so many devices a day, asks of servers."""
    scale = devices / found.devices_day if devices is not None else 1.0
    mean_per_s = found.rows / (found.hours * _HOUR_S)
    load = {
        "devices": devices if devices is not None else found.devices_day,
        "scaled_by": scale,
        "eas_per_s_mean": mean_per_s * scale,
        "eas_per_s_peak": found.peak_per_s * scale,
        "peak_over_mean": found.peak_per_s / mean_per_s,
    }
    reason = _no_grounds(found)
    needed = _NOT_KNOWN if reason else _servers(load, cost, policy)
    own = f"these {count(found.devices_day, 'device')}"
    like = own if devices is None else f"{devices:,.0f} devices a day like these"
    return {
        "answer": reason or f"{count(needed['servers_needed'], 'server')} for {like}.",
        "reason": reason,
        "recording": asdict(found),
        **load,
        **needed,
        "cost": cost.name,
        "cautions": cost.cautions(None if reason else _beyond(needed, cost)),
        "lifetime_days": EA_LIFETIME_DAYS,
        "size_below": policy.size_below,
    }


_NOT_KNOWN: dict[str, Any] = dict.fromkeys(
    ("eas_a_day", "processing_servers", "memory_servers", "servers_needed")
)


def _servers(load: dict[str, float], cost: CostModel, policy: Policy) -> dict[str, Any]:
    per_day = load["eas_per_s_mean"] * DAY_S
    processing = load["eas_per_s_peak"] * cost.ea_s
    memory = per_day * EA_LIFETIME_DAYS * cost.ea_bytes / cost.memory_bytes
    needed = max(1, math.ceil(max(processing, memory) / policy.size_below - 1e-9))
    return dict(zip(_NOT_KNOWN, (per_day, processing, memory, needed), strict=True))


def _beyond(needed: dict[str, Any], cost: CostModel) -> float | None:
    return cost.beyond(needed["eas_a_day"] * EA_LIFETIME_DAYS / needed["servers_needed"])


def _no_grounds(found: Found) -> str | None:
    if found.hours >= HOURS_MIN:
        return None
    return (
        f"Too short to say: there are rows in {count(found.hours, 'hour')} only, and load differs between day and night. "
        f"Record {HOURS_MIN} hours, better weeks."
    )


def scaling_said(answer: Mapping[str, Any]) -> str:
    """What the devices are, and which hours were counted."""
    found = answer["recording"]
    said = (
        f"{found['devices_day']:,} devices were seen on the day with the most of them, {found['devices_hour']:,.0f} in an "
        f"average hour, {found['devices_ever']:,} ever"
    )
    if answer["scaled_by"] != 1:
        said += f"; scaled by {number(answer['scaled_by'])}, from those of a day to {answer['devices']:,.0f}"
    rest = found["hours_span"] - found["hours"]
    if rest:
        said += f". {rest:,} of {found['hours_span']:,} hours have no row and count as not recorded"
    return said + "."
