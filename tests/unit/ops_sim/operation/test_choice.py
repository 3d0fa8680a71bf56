from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ops_sim.operation.choice import COST, RISK, beats, front, recommend


def row(policy: str, server_days: float, above_100: float, above_90: float) -> dict[str, Any]:
    return {
        "policy": policy,
        "server_days": server_days,
        "scenarios_above_100": above_100,
        "scenarios_above_90": above_90,
    }


CHEAP, FAIR, SAFE = (
    row("cheap", 100.0, 0.3, 0.9),
    row("fair", 150.0, 0.04, 0.5),
    row("safe", 300.0, 0.0, 0.0),
)
BEATEN = row("beaten", 160.0, 0.04, 0.6)
ALL = [SAFE, BEATEN, CHEAP, FAIR]


def test_the_front_is_what_nothing_beats_cheapest_first() -> None:
    assert front(ALL) == ["cheap", "fair", "safe"]


def test_the_cheapest_within_the_risk_is_recommended_with_what_more_and_less_would_cost() -> None:
    found = recommend(ALL, 0.05)
    assert (found.policy, found.meets_risk) == ("fair", True)
    assert "The next cheaper one, cheap, saves 33.3% but exceeds in 30.0%." in found.reason
    assert "safe would lower that to 0.0% for 100.0% more." in found.reason


def test_without_one_within_the_risk_the_least_risky_is_named_and_said_to_miss_it() -> None:
    found = recommend([CHEAP, FAIR], 0.01)
    assert (found.policy, found.meets_risk) == ("fair", False)
    assert "No policy keeps to the stated risk of 1.0%" in found.reason


shares = st.sampled_from([0.0, 0.1, 0.2, 0.5])
rows = st.lists(
    st.builds(row, st.uuids().map(str), st.floats(1, 1e6), shares, shares), min_size=1, max_size=12
)


@given(rows, shares)
def test_who_is_off_the_front_is_beaten_and_who_is_recommended_is_within_the_risk_if_any_is(
    tried: list[dict[str, Any]], risk: float
) -> None:
    on = [one for one in tried if one["policy"] in front(tried)]
    for one in tried:
        assert (one in on) == (not any(beats(other, one) for other in tried))
    found = recommend(tried, risk)
    chosen = next(one for one in tried if one["policy"] == found.policy)
    within = [one for one in tried if one[RISK] <= risk]
    assert found.meets_risk == bool(within)
    if within:
        assert chosen[COST] == min(one[COST] for one in within)
