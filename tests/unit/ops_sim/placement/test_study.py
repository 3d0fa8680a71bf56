"""Studies: the proposed method beside a traditional DHT."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.planning.policy import Policy
from ops_sim.cost.model import PAPER
from ops_sim.placement.scenario import Scenario, Skew
from ops_sim.placement.study import EXISTING, PROPOSED, Study

POLICY = Policy()
SMALL = Scenario(keys=500, days=9, skew=Skew("zipf", 1.1))


def rows_of(method: str, scenario: Scenario, policy: Policy = POLICY) -> list[dict[str, object]]:
    study = Study(method, scenario, PAPER, policy)
    return [dict(study.live(day)) for day in range(scenario.days)]


def test_section_4_best_condition_nothing_moves_and_nothing_is_copied() -> None:
    even = replace(SMALL, skew=Skew(), keys=20_000)
    last = rows_of(PROPOSED, even)[-1]
    assert last["moves"] == 0 and last["copied_efs"] == 0
    assert last["worst_share"] == pytest.approx(0.0)
    assert last["imbalance"] < 1.1  # type: ignore[operator]


def test_section_4_worst_condition_is_borne_by_help_and_not_by_a_traditional_dht() -> None:
    hot = replace(SMALL, skew=Skew("hot", 1.0))
    proposed, existing = rows_of(PROPOSED, hot)[-1], rows_of(EXISTING, hot)[-1]
    assert proposed["servers_over_100"] == 0
    assert proposed["worst_share"] > 0.5  # type: ignore[operator]
    assert existing["servers_over_100"] == 1
    assert existing["imbalance"] == pytest.approx(10.0), "one server bears it all"


def test_a_traditional_dht_moves_stored_eas_and_dynamic_help_does_not() -> None:
    growing = replace(SMALL, servers_first=5, skew=Skew("zipf", 0.8), keys=5_000)
    assert sum(row["migrated_eas"] for row in rows_of(PROPOSED, growing)) == 0  # type: ignore[misc]
    existing = rows_of(EXISTING, growing)
    assert sum(row["migrated_eas"] for row in existing) > 0  # type: ignore[misc]
    mean = [row["processing_mean"] for row in rows_of(PROPOSED, growing)]
    assert [row["processing_mean"] for row in existing] == pytest.approx(mean)


def test_a_longer_line_than_the_policy_allows_is_never_made() -> None:
    hot = replace(SMALL, skew=Skew("hot", 0.9))
    rows = rows_of(PROPOSED, hot, Policy(members_max=3))
    assert max(row["members_max"] for row in rows) == 3  # type: ignore[type-var]
    assert rows[-1]["servers_over_100"] > 0  # type: ignore[operator]
