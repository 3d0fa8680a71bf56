"""What a sweep says, in words and figures: what to buy, by when, and why. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from ops_sim.application import APPLICATIONS
from ops_sim.choice import Row, front, recommend
from ops_sim.demand import Demand
from ops_sim.report.words import count
from ops_sim.scenario import Plan, Scenario

_THREE = -math.log(0.05)
"""The rule of three: (1 - 3/n)^n is 5 %."""


def answer(
    scenario: Scenario, policies: Sequence[Row], days: Sequence[Row], worlds_done: int
) -> dict[str, Any]:
    """`policies` as `schema.POLICIES`; `days` as `schema.DAYS`, of the recommended policy as expected."""
    plan, study = scenario.plan, scenario.study
    chosen = recommend(policies, plan.risk)
    row = next(row for row in policies if row["policy"] == chosen.policy)
    bought = [purchases(plan, demand, days) for demand in study.demands]
    missed = (
        f"No policy keeps to the stated risk of {plan.risk:.1%}; by the nearest, {chosen.policy}: "
    )
    return {
        "name": plan.name,
        "answer": ("" if chosen.meets_risk else missed) + _said(plan, study.demands, bought),
        "cautions": [
            *few_worlds(study.demands, plan.risk, worlds_done * len(study.demands)),
            *scenario.cost.cautions(_beyond(scenario, days)),
        ],
        "recommended": chosen.policy,
        "meets_risk": chosen.meets_risk,
        "risk": plan.risk,
        "reason": chosen.reason,
        "cost_of_operation": row["server_days"] * plan.day_cost,
        "purchases": {d.name: list(b) for d, b in zip(study.demands, bought, strict=True)},
        "front": front(policies),
        "scenarios": worlds_done * len(study.demands) * len(study.policies),
        "worlds": worlds_done,
        "interrupted": worlds_done < study.worlds,
        "assumptions": {
            "plan": asdict(plan),
            "cost": scenario.cost.to_json(),
            "load": asdict(study.load),
            "demands": [asdict(demand) for demand in study.demands],
            "policies": [asdict(policy) for policy in study.policies],
        },
    }


def purchases(plan: Plan, demand: Demand, days: Sequence[Row]) -> list[dict[str, Any]]:
    """Of one demand, as expected; in the order of their days."""
    rows = sorted((row for row in days if row["demand"] == demand.name), key=lambda r: r["day"])
    return [
        {
            "day": row["day"],
            "servers": row["bought"],
            "installed": row["day"] + demand.lead_time_days,
            "by": when(plan, row["day"]),
        }
        for row in rows
        if row["bought"]
    ]


def when(plan: Plan, day: int) -> str:
    if not plan.start:
        return f"day {day}"
    return (date.fromisoformat(plan.start) + timedelta(days=day - 1)).isoformat()


def _beyond(scenario: Scenario, days: Sequence[Row]) -> float | None:
    """How many times the uTuples it was measured with a server holds at most, where everything goes as expected. EFs are
    copied to every server."""
    app = APPLICATIONS[scenario.plan.application]
    devices = ((row["devices"], row["devices"] / row["servers"]) for row in days)
    each = (
        scenario.cost.beyond(here * app.eas, total * app.efs, here * app.cfs)
        for total, here in devices
    )
    return max((beyond for beyond in each if beyond is not None), default=None)


def few_worlds(demands: Sequence[Demand], risk: float, scenarios: int) -> list[str]:
    """That a chance was not seen in n scenarios shows only that it is below 3/n, at 95 %."""
    needed = math.ceil(_THREE / risk) if risk else 0
    if scenarios >= needed or not any(demand.is_drawn for demand in demands):
        return []
    return [
        f"{count(scenarios, 'scenario')} a policy cannot show a risk of {risk:.1%}: that takes {needed:,} or more "
        "(`worlds` of the plan)."
    ]


def _said(plan: Plan, demands: Sequence[Demand], bought: Sequence[Sequence[Row]]) -> str:
    said = []
    for demand, purchases in zip(demands, bought, strict=True):
        words = _purchases_said(plan, purchases)
        if len(demands) > 1:
            words = f"If “{demand.name}” comes true, {words[0].lower()}{words[1:]}"
        said.append(words)
    return " ".join(said)


def _purchases_said(plan: Plan, purchases: Sequence[Row]) -> str:
    if not purchases:
        return f"Buy nothing within {count(plan.days, 'day')}."
    first, *later = purchases
    said = f"Buy {count(first['servers'], 'server')} by {first['by']}"
    if later:
        more = sum(purchase["servers"] for purchase in later)
        said += f"; {more:,} more in {count(len(later), 'later order')}"
    return f"{said}."
