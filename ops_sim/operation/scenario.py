"""What a person asks of a sweep, as a TOML file says it: a plan, demands, and policies to compare."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

from ops_sim.cost.application import APPLICATIONS, Load
from ops_sim.cost.catalogue import cost_named
from ops_sim.cost.model import CostModel
from ops_sim.operation.demand import Demand
from ops_sim.operation.policy import Policy
from ops_sim.operation.study import Study
from utuple.errors import InvalidInput
from utuple.model.settings import build, check_keys, number, share

POLICIES_MAX = 1_000
_TEMPLATE_START = "2026-04-01"
_TABLES = ("plan", "demand", "policy", "grid")
_SHORT = {
    "horizon_days": "ahead {}d",
    "window_days": "window {}d",
    "buy_above": "buy>{}",
    "size_below": "size<{}",
    "predictor": "{}",
    "size_for_installation": "installed={}",
    "orders_count": "orders={}",
}
"""How a policy of a grid is named by what it varies."""


@dataclass(frozen=True, slots=True)
class Plan:
    name: str = "plan"
    days: int = 1_000
    worlds: int = 200
    """Possible worlds of each demand."""
    seed: int = 1
    servers_start: int = 10
    start: str = ""
    """The date of day 1, such as 2026-04-01; empty: dates are told as days."""
    application: str = "A"
    """An application of table 2: A or B."""
    cost: str = "paper"
    """paper, calibrated (the last `utuple plan calibrate`), or a file."""
    risk: float = 0.05
    """The share of the scenarios in which load may once exceed what there is."""
    day_cost: float = 1.0
    """What a server costs a day, in any currency."""

    def __post_init__(self) -> None:
        if self.application not in APPLICATIONS:
            rule = f"must be one of {', '.join(APPLICATIONS)}"
            raise InvalidInput("plan.application", self.application, rule)
        number("plan.day_cost", self.day_cost)
        if self.risk:
            share("plan.risk", self.risk)
        if self.start:
            try:
                date.fromisoformat(self.start)
            except ValueError:
                rule = "must be a date, such as 2026-04-01"
                raise InvalidInput("plan.start", self.start, rule) from None


@dataclass(frozen=True, slots=True)
class Scenario:
    plan: Plan
    cost: CostModel
    study: Study


def template(start: date) -> str:
    """What `utuple plan new` writes: a scenario with every key and its meaning, ready to run."""
    text = files("ops_sim.operation").joinpath("template.toml").read_text(encoding="utf-8")
    return text.replace(_TEMPLATE_START, start.isoformat())


def read_scenario(path: Path) -> Scenario:
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        rule = "there is no such file; `utuple plan new FILE` writes one"
        raise InvalidInput("scenario", str(path), rule) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("scenario", str(path), f"cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("scenario", str(path), f"is no TOML: {error}") from None
    return scenario_of(told)


def scenario_of(told: Mapping[str, Any]) -> Scenario:
    check_keys("scenario", told, _TABLES)
    plan = build(Plan, "plan", _as_text(told.get("plan", {}), "start"))
    demands = [build(Demand, "demand", item) for item in _list("demand", told)] or [Demand()]
    policies = [build(Policy, "policy", item) for item in _list("policy", told)]
    policies += grid(told.get("grid", {}))
    if len(policies) > POLICIES_MAX:
        raise InvalidInput("grid", f"{len(policies)} policies", f"at most {POLICIES_MAX}")
    cost = cost_named(plan.cost)
    study = Study(
        demands=tuple(demands),
        policies=tuple(policies or [Policy()]),
        load=Load.of(APPLICATIONS[plan.application], cost),
        days=plan.days,
        worlds=plan.worlds,
        seed=plan.seed,
        servers_start=plan.servers_start,
    )
    return Scenario(plan, cost, study)


def _as_text(told: object, key: str) -> object:
    """TOML has dates of its own."""
    if isinstance(told, Mapping) and isinstance(told.get(key), date):
        return {**told, key: told[key].isoformat()}
    return told


def _list(where: str, told: Mapping[str, Any]) -> Sequence[object]:
    found = told.get(where, [])
    if not isinstance(found, list):
        raise InvalidInput(where, found, f"must be a list of tables: [[{where}]]")
    return found


def grid(told: object) -> list[Policy]:
    """Every combination of the values given."""
    if not isinstance(told, Mapping):
        raise InvalidInput("grid", told, "must be a table: [grid]")
    known = [field.name for field in fields(Policy) if field.name != "name"]
    check_keys("grid", told, known)
    for key, values in told.items():
        if not isinstance(values, list) or not values:
            raise InvalidInput(f"grid.{key}", values, "must be a list of values")
    if not told:
        return []
    found = []
    for values in itertools.product(*told.values()):
        knobs = dict(zip(told, values, strict=True))
        varied = [key for key in told if len(told[key]) > 1] or list(told)
        name = ", ".join(_SHORT[key].format(knobs[key]) for key in varied)
        found.append(build(Policy, "grid", {"name": name, **knobs}))
    return found
