"""The arrays say what the plain rule says, for whatever demand, policy and load hypothesis finds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_sim.cost.application import Load
from ops_sim.operation import kernel
from ops_sim.operation.daily_rule import operate
from ops_sim.operation.demand import Demand, Growth, devices_of, lead_times_of
from ops_sim.operation.draws import draws_of
from ops_sim.operation.policy import Policy
from tests import plans
from utuple.errors import InvalidInput

DAYS = 60
WORLDS = [0, 3, 17]


@given(plans.demands(), st.integers(0, 2**40))
def test_the_demand_of_many_worlds_is_that_of_each(demand: Demand, seed: int) -> None:
    devices = kernel.devices_in(demand, seed, WORLDS, DAYS)
    lead_times = kernel.lead_times_in(demand, seed, WORLDS, DAYS)
    for column, world in enumerate(WORLDS):
        draws = draws_of(seed, world, DAYS)
        np.testing.assert_allclose(devices[:, column], devices_of(demand, draws), rtol=1e-9)
        assert lead_times[:, column].tolist() == list(lead_times_of(demand, draws))


@given(plans.demands(), plans.policies(), plans.loads, st.integers(1, 50))
def test_the_operation_of_many_worlds_is_that_of_each(
    demand: Demand, policy: Policy, load: Load, servers: int
) -> None:
    devices = kernel.devices_in(demand, 1, WORLDS, DAYS)
    lead_times = partial(kernel.lead_times_in, demand, 1, WORLDS)
    found = kernel.operate_all(devices, lead_times, load, policy, servers)
    for column, world in enumerate(WORLDS):
        lead = lead_times_of(demand, draws_of(1, world, DAYS))
        days = operate(devices[:, column].tolist(), lead, load, policy, servers)
        assert found.bought[:, column].tolist() == [day.bought for day in days]
        assert found.servers[:, column].tolist() == [day.servers for day in days]
        predicted = [day.predicted for day in days]
        np.testing.assert_allclose(found.predicted[:, column], predicted, rtol=1e-12)


def test_a_world_is_the_same_whichever_worlds_are_beside_it() -> None:
    demand = Demand(noise=0.1, growth_spread=0.2, bursts_per_year=9, burst_share=1.0)
    together = kernel.devices_in(demand, 7, range(5), DAYS)
    alone = kernel.devices_in(demand, 7, [3], DAYS)
    np.testing.assert_array_equal(together[:, 3], alone[:, 0])
    assert not np.array_equal(together[:, 3], together[:, 4])
    assert not np.array_equal(alone, kernel.devices_in(demand, 8, [3], DAYS))


def test_bursts_come_as_often_and_last_as_long_as_said() -> None:
    demand = Demand(
        devices_start=1.0, devices_per_day=0.0, bursts_per_year=5, burst_share=1.0, burst_days=4
    )
    on = kernel.devices_in(demand, 1, range(500), 365) > 1.5
    assert on.sum() / 500 == pytest.approx(5 * 4, rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"devices_per_day": -1.0}, "demand.devices_per_day"),
        ({"doubling_days": -20.0}, "demand.doubling_days"),
        ({"growth": Growth.EXPONENTIAL}, "demand.devices_start"),
        ({"devices_per_day": 0.0}, "demand.devices_per_day"),
        ({"noise": float("inf")}, "demand.noise"),
        ({"churn_per_day": 1.0}, "demand.churn_per_day"),
        ({"lead_time_days": 0}, "demand.lead_time_days"),
        ({"lead_time_days": 1.5}, "demand.lead_time_days"),
        ({"season_days": 0.0}, "demand.season_days"),
    ],
)
def test_a_demand_that_makes_no_sense_is_refused(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Demand(**wrong)  # type: ignore[arg-type]
    assert refused.value.field == field
