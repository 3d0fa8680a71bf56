"""From lines to an answer: when servers run out, and what to order by which date. Pure.

What has no grounds is not said: it is None, and `reason` tells why there is no order. Page, tiles, picture, terminal and
JSON all show this one answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ops_sim.cost.application import DAY_S
from ops_sim.forecast.trend import DAYS_MIN, Course, Trend, order, reaches
from ops_sim.operation.policy import Policy
from ops_sim.report.formatting import count
from utuple.errors import InvalidInput

FULL = 1.0
RESOURCES = ("processing", "memory")
CLUSTER = ""
"""The name under which the trends of all servers together are found."""

Trends = Mapping[tuple[str, str], Trend]
"""Trends by server and resource."""


@dataclass(frozen=True, slots=True)
class Question:
    policy: Policy
    lead_days: int = 30
    """Days from the order to the installation."""

    def __post_init__(self) -> None:
        if self.lead_days < 0:
            raise InvalidInput("--lead-days", self.lead_days, "must be at least 0")
        if self.lead_days > self.policy.horizon_days:
            rule = f"must not be longer than the horizon, {self.policy.horizon_days} days: servers "
            rule += "would come after the day they were ordered for"
            raise InvalidInput("--lead-days", self.lead_days, rule)


def answer(trends: Trends, span_days: float, question: Question) -> dict[str, Any]:
    """For the whole cluster, and for each server that still reports. The span is that from the first sample to the
    last."""
    now = max(trend.last_day for trend in trends.values())
    names = sorted({name for name, _ in trends if name != CLUSTER})
    current = [name for name in names if now - trends[name, "processing"].last_day < 1]
    cluster = {resource: trends[CLUSTER, resource] for resource in RESOURCES}
    reason = _no_grounds(cluster, span_days)
    orders = None if reason else _orders(cluster, now, len(current), question)
    ahead = now + question.policy.horizon_days
    return {
        "answer": reason or _said(orders or {}),
        "order": orders,
        "reason": reason,
        "lead_days": question.lead_days,
        "horizon_days": question.policy.horizon_days,
        "demand": {resource: _demand(trend, now, ahead) for resource, trend in cluster.items()},
        "servers_now": len(current),
        "servers": [
            {"name": name} | {r: _server(trends[name, r], now) for r in RESOURCES}
            for name in current
        ],
    }


def _no_grounds(cluster: Mapping[str, Trend], span_days: float) -> str | None:
    """Why nothing can be said about what to order; None where it can."""
    if all(trend.can_tell for trend in cluster.values()):
        return None
    return (
        f"Too early to say: these samples are of {_span_said(span_days)}, and load differs between day and night. A line "
        f"needs {DAYS_MIN} days with samples. Ask again after that, better after weeks."
    )


def _span_said(days: float) -> str:
    if days * 24 < 1:
        return count(max(1, round(days * 24 * 60)), "minute")
    return f"{days * 24:.1f} hours" if days < DAYS_MIN else f"a few hours in {days:.0f} days"


def _orders(
    cluster: Mapping[str, Trend], now: float, servers: int, question: Question
) -> dict[str, Any]:
    """Likely, and at the upper and lower edge of the band."""

    def due(busy: Course, full: Course) -> dict[str, Any] | None:
        found = order((busy, full), now, servers, question.policy)
        if found is None:
            return None
        return {
            "servers": found.servers,
            "by": date_of(found.by_day),
            "installed": date_of(found.by_day + question.lead_days),
            "in_days": found.by_day - now,
        }

    busy, full = (cluster[resource] for resource in RESOURCES)
    return {
        "likely": due(busy.at, full.at),
        "early": due(busy.high, full.high),
        "late": due(busy.low, full.low),
    }


def _demand(trend: Trend, now: float, ahead: float) -> dict[str, Any]:
    sure = trend.can_tell
    return {
        "servers": trend.at(now),
        "points": trend.points,
        "can_tell": sure,
        "per_day": trend.per_day if sure else None,
        "ahead": trend.at(ahead) if sure else None,
        "ahead_low": trend.low(ahead) if sure else None,
        "ahead_high": trend.high(ahead) if sure else None,
    }


def _server(trend: Trend, now: float) -> dict[str, Any]:
    def full(course: Course) -> str | None:
        return date_of(reaches(course, now, FULL)) if trend.can_tell else None

    return {
        "load": trend.at(now),
        "can_tell": trend.can_tell,
        "per_day": trend.per_day if trend.can_tell else None,
        "full": full(trend.at),
        "full_early": full(trend.high),
        "full_late": full(trend.low),
    }


def _said(orders: Mapping[str, Any]) -> str:
    likely, early = orders["likely"], orders["early"]
    if likely is None and early is None:
        return "Nothing to order: demand stays below what the servers can bear for ten years."
    if likely is None:
        safe = f"{count(early['servers'], 'server')} by {early['by']}"
        return f"Nothing to order as it looks; to be safe {safe} (installed {early['installed']})."
    said = f"Order {count(likely['servers'], 'server')} by {likely['by']} (installed {likely['installed']})"
    if early is not None and early != likely:
        said += f"; to be safe {early['servers']} by {early['by']}"
    return said + "."


def date_of(day: float | None) -> str | None:
    if day is None:
        return None
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()
