"""What a sweep says, in words and figures: what to buy, by when, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from ops_sim.choice import Row, front, recommend
from ops_sim.demand import Demand
from ops_sim.scenario import Plan, Scenario


def answer(
    scenario: Scenario, policies: Sequence[Row], days: Sequence[Row], worlds_done: int
) -> dict[str, Any]:
    """`policies` as `schema.POLICIES`; `days` as `schema.DAYS`, of the recommended policy as expected."""
    plan, study = scenario.plan, scenario.study
    chosen = recommend(policies, plan.risk)
    row = next(row for row in policies if row["policy"] == chosen.policy)
    bought = [purchases(plan, demand, days) for demand in study.demands]
    return {
        "name": plan.name,
        "answer": _said(plan, study.demands, bought),
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


def _said(plan: Plan, demands: Sequence[Demand], bought: Sequence[Sequence[Row]]) -> str:
    said = []
    for demand, purchases in zip(demands, bought, strict=True):
        about = f" if demand is {demand.name}" if len(demands) > 1 else ""
        if not purchases:
            said.append(f"Buy nothing within {plan.days} days{about}.")
            continue
        first, *later = purchases
        rest = f"; {sum(p['servers'] for p in later)} more in {len(later)} later orders"
        said.append(
            f"Buy {first['servers']} servers by {first['by']}{about}{rest if later else ''}."
        )
    return " ".join(said)
