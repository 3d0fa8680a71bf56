"""The daily rule of section 4.2, on numbers one can follow."""

from __future__ import annotations

from itertools import repeat

import pytest

from ops_sim.cost import model as cost
from ops_sim.cost.application import A, Load
from ops_sim.operation import policy
from ops_sim.operation.daily_rule import Day, operate, predict
from ops_sim.operation.paper import AS_WRITTEN, VARIANT, Reading
from ops_sim.operation.policy import Policy, Predictor
from utuple.errors import InvalidInput

MEMORY_ONLY = Load(0.01, 0.0, 0.0, 0.0, 0.0)
"""A hundred devices fill a server."""


def days_of(reading: Reading) -> list[Day]:
    devices = [10_000.0 * day for day in range(1, 1_001)]
    return operate(devices, repeat(30), reading.study.load, reading.policy)


def means(days: list[Day]) -> tuple[float, float]:
    late = days[499:]
    return (
        round(100 * sum(day.memory for day in late) / len(late), 1),
        round(100 * sum(day.processing for day in late) / len(late), 1),
    )


def test_section_4_2_as_written_gives_49_servers_75_1_and_66_6_per_cent() -> None:
    days = days_of(AS_WRITTEN)
    bought = [(day.day, day.bought) for day in days if day.bought]
    assert days[-1].servers == 49
    assert bought == [(184, 3), (257, 4), (354, 5), (476, 7), (646, 9), (865, 11)]
    assert means(days) == (75.1, 66.6)


def test_section_4_2_sized_for_the_installation_gives_50_servers_72_9_and_66_6_per_cent() -> None:
    days = days_of(VARIANT)
    assert days[-1].servers == 50
    assert means(days) == (72.9, 66.6)


@pytest.mark.parametrize("ea_bytes", [1_000, 1_329, 1_480, 1_600, 1_712, 2_200])
def test_no_size_of_an_ea_gives_what_the_paper_prints_under_the_rule_as_written(
    ea_bytes: int,
) -> None:
    model = cost.CostModel("tried", ea_bytes=ea_bytes, ea_s=1e-3)
    days = days_of(Reading(policy.PAPER_RULE, model))
    assert not (days[-1].servers == 50 and means(days)[0] < 73.5)
    assert means(days)[0] > 74


def test_figure_9_usage_stays_below_90_per_cent_all_the_time() -> None:
    assert all(max(day.memory, day.processing) < 0.9 for day in days_of(AS_WRITTEN))


def test_servers_arrive_when_the_lead_time_is_over_and_are_not_bought_twice() -> None:
    rule = Policy(horizon_days=2, window_days=2, buy_above=0.9, size_below=0.5)
    # 90 devices in two days are 90 % of one server and not above; 100 are.
    days = operate([70.0, 80.0, 80.0, 80.0, 80.0], repeat(2), MEMORY_ONLY, rule, servers=1)
    assert [day.bought for day in days] == [0, 2, 0, 0, 0]
    assert [day.servers for day in days] == [1, 1, 1, 3, 3]
    assert [day.on_order for day in days] == [0, 2, 2, 0, 0]


def test_a_straight_line_is_predicted_exactly_and_never_below_nothing() -> None:
    rising = [10.0, 20.0, 30.0]
    assert predict(rising, Policy(window_days=3), 4) == pytest.approx(70.0)
    assert predict([30.0, 20.0, 10.0], Policy(window_days=3), 4) == 0.0
    assert predict(rising, Policy(window_days=3, predictor=Predictor.LEVEL), 4) == pytest.approx(
        20.0
    )
    doubling = Policy(window_days=3, predictor=Predictor.GROWTH)
    assert predict([10.0, 20.0, 40.0], doubling, 2) == pytest.approx(160.0)


def test_a_load_that_no_number_of_servers_carries_is_bought_for_up_to_the_limit() -> None:
    copied = Load(0.01, 0.0, 0.0, 0.0, busy_copied=0.95)
    days = operate([10.0], repeat(30), copied, Policy(), servers=1)
    assert days[0].bought == policy.SERVERS_MAX - 1


def test_the_load_of_application_a_grows_with_its_efs_once_they_cost_something() -> None:
    cheap = Load.of(A, cost.PAPER)
    model = cost.CostModel(
        "with EFs", 1_480, 5.668e-3, ea_s_per_ef=1e-6, ef_bytes=500, ef_s=1e-3, ef_s_per_ea=1e-9
    )
    dear = Load.of(A, model)
    assert dear.memory(1e7, 50) > cheap.memory(1e7, 50)
    assert dear.processing(1e7, 50) > cheap.processing(1e7, 50)
    at = dear.servers_at(1e7, 0.8)
    assert max(dear.memory(1e7, at), dear.processing(1e7, at)) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"horizon_days": -1}, "policy.horizon_days"),
        ({"window_days": 0}, "policy.window_days"),
        ({"window_days": 1}, "policy.window_days"),
        ({"buy_above": 1.2}, "policy.buy_above"),
        ({"size_below": 0}, "policy.size_below"),
        ({"size_below": 0.95}, "policy.size_below"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Policy(**wrong)  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"ea_bytes": -1.0, "ea_s": 1.0}, "cost.ea_bytes"),
        ({"ea_bytes": 1.0, "ea_s": float("nan")}, "cost.ea_s"),
        ({"ea_bytes": 1.0, "ea_s": 0.0}, "cost"),
        ({"ea_bytes": 1.0, "ea_s": 1.0, "memory_bytes": 0.0}, "cost.memory_bytes"),
    ],
)
def test_a_cost_model_that_makes_no_sense_is_refused(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        cost.CostModel("tried", **wrong)  # type: ignore[arg-type]  # on purpose
    assert refused.value.field == field
