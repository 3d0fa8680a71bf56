"""What a sweep says, in words and figures: what to buy, by when, and why. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from ops_sim.cost.application import APPLICATIONS
from ops_sim.operation.choice import Row, front, recommend
from ops_sim.operation.demand import Demand
from ops_sim.operation.kernel import lead_times_in
from ops_sim.operation.scenario import Plan, Scenario
from ops_sim.report.formatting import count, date_of

_THREE = -math.log(0.05)
"""The rule of three: (1 - 3/n)^n is 5 %."""


def answer(
    scenario: Scenario, policies: Sequence[Row], days: Sequence[Row], worlds_done: int
) -> dict[str, Any]:
    """`policies` as `schema.POLICIES`; `days` as `schema.DAYS`, of the recommended policy in the middle world of each demand."""
    plan, study = scenario.plan, scenario.study
    chosen = recommend(policies, plan.risk)
    row = next(row for row in policies if row["policy"] == chosen.policy)
    bought = [purchases(plan, demand, days, study.seed) for demand in study.demands]
    missed = (
        f"No policy keeps to the stated risk of {plan.risk:.1%}; by the nearest, {chosen.policy}: "
    )
    return {
        "name": plan.name,
        "answer": ("" if chosen.meets_risk else missed)
        + _said(plan, study.demands, bought, worlds_done),
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


def purchases(plan: Plan, demand: Demand, days: Sequence[Row], seed: int) -> list[dict[str, Any]]:
    """The orders of one demand, in the order of their days; `days` say which world they are of."""
    mine = (row for row in days if row["demand"] == demand.name and row["bought"])
    rows = sorted(mine, key=lambda r: r["day"])
    worlds = [rows[0]["world"]] if rows else []
    lead_times = lead_times_in(demand, seed, worlds, len(rows)).ravel().tolist()
    return [
        {
            "day": row["day"],
            "servers": row["bought"],
            "installed": row["day"] + lead_time,
            "by": when(plan, row["day"]),
        }
        for row, lead_time in zip(rows, lead_times, strict=True)
    ]


def when(plan: Plan, day: int) -> str:
    return date_of(day, date.fromisoformat(plan.start)) if plan.start else f"day {day}"


def _beyond(scenario: Scenario, days: Sequence[Row]) -> float | None:
    """How many times the uTuples it was measured with a server holds at most, in the middle worlds. EFs are copied
    to every server."""
    app = APPLICATIONS[scenario.plan.application]
    devices = ((row["devices"], row["devices"] / row["servers"]) for row in days)
    each = (
        scenario.cost.beyond(here * app.eas, total * app.efs, here * app.cfs)
        for total, here in devices
    )
    return max((beyond for beyond in each if beyond is not None), default=None)


def few_worlds(demands: Sequence[Demand], risk: float, scenarios: int) -> list[str]:
    """A warning where there are too few worlds: what was not seen in n scenarios is only known, at 95 %, to be rarer than 3/n."""
    needed = math.ceil(_THREE / risk) if risk else 0
    if scenarios >= needed or not any(demand.is_drawn for demand in demands):
        return []
    return [
        f"{count(scenarios, 'scenario')} a policy cannot show a risk of {risk:.1%}: that takes {needed:,} or more "
        "(`worlds` of the plan)."
    ]


def _said(
    plan: Plan, demands: Sequence[Demand], bought: Sequence[Sequence[Row]], worlds: int
) -> str:
    said = []
    for demand, purchases in zip(demands, bought, strict=True):
        words = _purchases_said(plan, purchases)
        if len(demands) > 1:
            words = f"If “{demand.name}” comes true, {words[0].lower()}{words[1:]}"
        said.append(words)
    if any(demand.is_drawn for demand in demands):
        said.append(_worlds_said(worlds))
    return " ".join(said)


def _worlds_said(worlds: int) -> str:
    if worlds == 1:
        return "This is of one possible world only."
    return f"This is in the middle of {worlds:,} possible worlds: half of them need as many servers or more."


def _purchases_said(plan: Plan, purchases: Sequence[Row]) -> str:
    if not purchases:
        return f"Buy nothing within {count(plan.days, 'day')}."
    first, *later = purchases
    said = f"Buy {count(first['servers'], 'server')} by {first['by']}"
    if later:
        more = sum(purchase["servers"] for purchase in later)
        said += f"; {more:,} more in {count(len(later), 'later order')}"
    return f"{said}."
