from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ops_sim.cost import model as cost
from ops_sim.cost.catalogue import cost_named, last_calibration
from ops_sim.operation.answer import answer, purchases
from ops_sim.operation.demand import Demand, lead_times_of
from ops_sim.operation.draws import draws_of
from ops_sim.operation.policy import Policy, Predictor
from ops_sim.operation.scenario import Plan, read_scenario, scenario_of, template
from utuple.errors import InvalidInput

TEMPLATE = template(date(2027, 5, 6))


def test_the_scenario_that_plan_new_writes_is_valid_and_names_every_key() -> None:
    scenario = scenario_of(tomllib.loads(TEMPLATE))
    assert len(scenario.study.policies) == 25
    assert scenario.plan.start == "2027-05-06"
    for kind in (Plan, Demand, Policy):
        missing = [field.name for field in fields(kind) if f"{field.name} =" not in TEMPLATE]
        assert not missing


def test_what_the_template_comments_out_is_the_default() -> None:
    # but start, which is an example
    for line in TEMPLATE.splitlines():
        if not line.startswith("# ") or " = " not in line:
            continue
        told = tomllib.loads(line[2:])
        ((key, value),) = told.items()
        defaults = [
            field.default
            for kind in (Plan, Demand, Policy)
            for field in fields(kind)
            if field.name == key
        ]
        assert value in defaults, line


@pytest.mark.parametrize(
    ("told", "field", "said"),
    [
        ({"plans": {}}, "scenario", "plan"),
        ({"plan": {"world": 3}}, "plan", "worlds"),
        ({"demand": [{"device_per_day": 3}]}, "demand", "devices_per_day"),
        ({"policy": [{"horizon": 3}]}, "policy", "horizon_days"),
        ({"grid": {"buy_abov": [0.9]}}, "grid", "buy_above"),
        ({"grid": {"predictor": ["linaer"]}}, "grid.predictor", "linear"),
        ({"demand": [{"growth": "expo"}]}, "demand.growth", "exponential"),
    ],
)
def test_a_wrong_key_or_word_is_named_with_the_nearest_valid_one(
    told: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenario_of(told)
    assert refused.value.field == field
    assert f"the nearest is {said}" in refused.value.rule


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"plan": 3}, "plan"),
        ({"demand": {}}, "demand"),
        ({"grid": {"buy_above": 0.9}}, "grid.buy_above"),
        ({"grid": {"horizon_days": list(range(40)), "window_days": list(range(2, 30))}}, "grid"),
        ({"plan": {"days": "many"}}, "days"),
        ({"plan": {"risk": 2.0}}, "plan.risk"),
        ({"plan": {"start": "soon"}}, "plan.start"),
        ({"plan": {"application": "C"}}, "plan.application"),
        ({"plan": {"cost": "/nowhere/cost.json"}}, "cost"),
        ({"demand": [{"devices_per_day": -10}]}, "demand.devices_per_day"),
        ({"demand": [{"lead_time_days": 61}]}, "demand.lead_time_days"),
        ({"policy": [{"orders_count": "yes"}]}, "policy.orders_count"),
        ({"policy": [{"name": ""}]}, "policy.name"),
    ],
)
def test_bad_input_is_refused_before_the_job_starts(told: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenario_of(told)
    assert refused.value.field == field


def test_a_grid_is_every_combination_named_by_what_it_varies() -> None:
    told = {
        "grid": {"horizon_days": [45, 60], "buy_above": [0.8], "predictor": ["linear", "level"]}
    }
    policies = scenario_of(told).study.policies
    assert [policy.name for policy in policies] == [
        "ahead 45d, linear",
        "ahead 45d, level",
        "ahead 60d, linear",
        "ahead 60d, level",
    ]
    assert policies[3].predictor is Predictor.LEVEL
    assert all(policy.buy_above == 0.8 for policy in policies)


def test_a_file_that_is_missing_or_no_toml_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="utuple plan new"):
        read_scenario(tmp_path / "none.toml")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[plan\n")
    with pytest.raises(InvalidInput, match="is no TOML"):
        read_scenario(wrong)


def test_cost_models_are_found_by_name_and_read_back_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert cost_named("paper") is cost.PAPER
    with pytest.raises(InvalidInput, match="utuple plan calibrate"):
        cost_named("calibrated")
    last_calibration().parent.mkdir()
    measured = cost.CostModel("calibrated", ea_bytes=700, ea_s=1e-5, ef_bytes=2_000)
    last_calibration().write_text(json.dumps({"model": measured.to_json(), "fits": []}))
    assert cost_named("calibrated") == measured
    last_calibration().write_text('{"model": {"ea_bites": 3}}')
    with pytest.raises(InvalidInput, match="ea_bites"):
        cost_named("calibrated")
    last_calibration().write_text("{")
    with pytest.raises(InvalidInput, match="cannot be read"):
        cost_named("calibrated")


def test_the_answer_says_what_to_buy_by_which_date() -> None:
    scenario = scenario_of({"plan": {"start": "2026-04-01", "worlds": 5, "day_cost": 2.0}})
    policies = [
        {
            "policy": "paper",
            "server_days": 100.0,
            "scenarios_above_100": 0.0,
            "scenarios_above_90": 0.0,
        }
    ]
    days = [
        {"demand": "paper", "world": 2, "day": day, "bought": bought, "devices": 9.0, "servers": 3}
        for day, bought in ((3, 4), (1, 0), (9, 2))
    ]
    found = answer(scenario, policies, days, worlds_done=4)
    assert found["answer"] == "Buy 4 servers by 2026-04-03; 2 more in 1 later order."
    assert found["purchases"]["paper"][0]["installed"] == 33
    assert (found["interrupted"], found["scenarios"]) == (True, 4)
    assert found["cost_of_operation"] == 200.0
    assert found["cautions"] == []  # nothing is drawn: one world is as good as many


def a_sweep(risk: float, above_100: float, worlds: int) -> dict[str, Any]:
    """Of two demands with names that are half a sentence."""
    demands = [{"name": name, "noise": 0.1} for name in ("steady", "it takes off")]
    scenario = scenario_of({"plan": {"risk": risk, "worlds": worlds}, "demand": demands})
    shares = {"scenarios_above_100": above_100, "scenarios_above_90": 0.5}
    day = {"demand": "it takes off", "world": 0, "day": 2, "bought": 1}
    days = [{**day, "devices": 9.0, "servers": 3}]
    return answer(scenario, [{"policy": "paper", "server_days": 1.0, **shares}], days, worlds)


def test_a_demand_is_named_and_not_made_part_of_a_sentence() -> None:
    assert a_sweep(0.05, 0.0, 200)["answer"] == (
        "If “steady” comes true, buy nothing within 1,000 days. "
        "If “it takes off” comes true, buy 1 server by day 2. "
        "This is in the middle of 200 possible worlds: half of them need as many servers or more."
    )


def test_an_answer_from_one_possible_world_says_so() -> None:
    assert a_sweep(0.05, 0.0, 1)["answer"].endswith("This is of one possible world only.")


def test_an_order_is_installed_after_the_lead_time_of_its_world() -> None:
    demand = Demand(name="late", lead_time_days=30, lead_time_spread=0.5)
    days = [{"demand": "late", "world": 7, "day": day, "bought": 1} for day in (10, 20)]
    found = purchases(Plan(), demand, days, seed=3)
    taken = lead_times_of(demand, draws_of(3, 7, days=2))
    assert [order["installed"] for order in found] == [10 + next(taken), 20 + next(taken)]


def test_an_order_by_a_policy_that_misses_the_risk_says_so_first() -> None:
    found = a_sweep(0.05, 0.1, 200)
    missed = "No policy keeps to the stated risk of 5.0%; by the nearest, paper: If “steady”"
    assert found["answer"].startswith(missed)
    assert found["meets_risk"] is False


@pytest.mark.parametrize(("worlds", "enough"), [(29, False), (30, True)])
def test_a_risk_that_so_few_scenarios_cannot_show_is_said_to_be_so(
    worlds: int, enough: bool
) -> None:
    cautions = a_sweep(0.05, 0.0, worlds)["cautions"]
    assert (cautions == []) is enough
    assert enough or "58 scenarios a policy cannot show a risk of 5.0%" in cautions[0]
