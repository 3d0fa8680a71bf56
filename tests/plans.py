"""Strategies for plans: demands, policies and loads that hypothesis tries the planner with."""

from __future__ import annotations

from hypothesis import strategies as st

from ops_sim.cost.application import Load
from ops_sim.operation.demand import Demand, Growth
from ops_sim.operation.policy import Policy, Predictor

shares = st.floats(0.05, 1.0)


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    return Demand(
        growth=draw(st.sampled_from(Growth)),
        devices_start=draw(st.floats(1.0, 1e6)),
        devices_per_day=draw(st.floats(0.0, 1e5)),
        doubling_days=draw(st.floats(20.0, 1_000.0)),
        growth_spread=draw(st.sampled_from([0.0, 0.3])),
        churn_per_day=draw(st.sampled_from([0.0, 0.001, 0.05])),
        season_share=draw(st.sampled_from([0.0, 0.4])),
        season_days=draw(st.floats(2.0, 400.0)),
        bursts_per_year=draw(st.sampled_from([0.0, 20.0])),
        burst_share=draw(st.floats(0.0, 2.0)),
        burst_days=draw(st.integers(1, 9)),
        noise=draw(st.sampled_from([0.0, 0.1])),
        lead_time_days=draw(st.integers(1, 40)),
        lead_time_spread=draw(st.sampled_from([0.0, 0.5])),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    buy_above = draw(shares)
    return Policy(
        name="tried",
        horizon_days=draw(st.integers(0, 90)),
        window_days=draw(st.integers(2, 20)),
        buy_above=buy_above,
        size_below=draw(st.floats(0.05, buy_above)),
        predictor=draw(st.sampled_from(Predictor)),
        size_for_installation=draw(st.booleans()),
        orders_count=draw(st.booleans()),
    )


loads = st.builds(
    Load,
    memory_per_device=st.floats(1e-7, 1e-5),
    memory_copied=st.sampled_from([0.0, 1e-9]),
    busy_per_device=st.floats(1e-7, 1e-5),
    busy_per_device2=st.sampled_from([0.0, 1e-13]),
    busy_copied=st.sampled_from([0.0, 0.01]),
)
