"""The simulated cluster: where EAs go, and what a split does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.planning.policy import Policy
from ops_sim.cost.application import EA_LIFETIME_DAYS
from ops_sim.cost.model import PAPER
from ops_sim.placement.cluster import Cluster
from ops_sim.placement.dynamic_help import DynamicHelp
from ops_sim.placement.scenario import Scenario, Skew, skew_from
from utuple.cluster.move import Move, MoveKind

POLICY = Policy()
SMALL = Scenario(keys=500, days=9, skew=Skew("zipf", 1.1))


def cluster_after(scenario: Scenario, days: int) -> Cluster:
    method = DynamicHelp(scenario, PAPER, POLICY)
    for day in range(days):
        method.begin(day)
        for look in range(scenario.looks):
            method.look(look)
            method.run(day * 86_400.0, 4)
        method.end()
    return method.cluster


@pytest.mark.parametrize("skew", ["even", "zipf:1.1", "hot:0.6"])
def test_every_ea_goes_to_one_member_that_is_on_and_lives_seven_days(skew: str) -> None:
    scenario = replace(SMALL, skew=skew_from(skew))
    cluster = cluster_after(scenario, 9)
    arriving = cluster.arriving()
    assert arriving.sum() == pytest.approx(1.0)
    assert (arriving[cluster.slots.on == 0] == 0).all()
    stored = cluster.slots.stock.sum()
    assert stored == pytest.approx(scenario.devices * 50 * EA_LIFETIME_DAYS)


def test_a_split_shares_what_is_stored_and_loses_nothing() -> None:
    cluster = cluster_after(SMALL, 3)
    line, before = cluster.table.lines[4], cluster.slots.stock.sum()
    cluster.names.append("new")
    cluster._server_index["new"] = len(cluster.names) - 1
    cluster.make(Move(MoveKind.SPLIT, line.section, line.epoch, line.home, "new"))
    first, second = cluster.table.lines[4:6]
    assert (first.section.start, second.section.end) == (line.section.start, line.section.end)
    assert [(m.name, m.accumulatable) for m in second.members] == [
        (line.home, False),
        ("new", True),
    ]
    assert cluster.slots.stock.sum() == pytest.approx(before)
    cluster.settle()
    assert cluster.arriving().sum() == pytest.approx(1.0)
