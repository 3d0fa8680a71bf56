"""The planner's values cannot be built wrong: policy and snapshot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.planning.planner import Plan, plan
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ClusterSnapshot, SectionLoad, ServerLoad
from tests.unit.cluster.test_figures import BEFORE
from tests.unit.load_monitor.clusters import cluster
from utuple.cluster.line import first_table
from utuple.errors import InvalidInput


@pytest.mark.parametrize(
    "wrong",
    [
        {"processing_start": 1.1},
        {"processing_stop": 0.9},
        {"processing_low": 0.7},
        {"memory_stop": 0.9},
        {"helper_memory_max": 0.75},
        {"helper_processing_max": 0.7},
        {"smoothing_s": 0.0},
        {"silent_s": float("inf")},
        {"settle_s": -1.0},
        {"stay_on_s": 4_000.0},
        {"moves_per_section": 0},
        {"moves_share": 1.5},
        {"worthwhile": -0.1},
        {"members_max": 1},
    ],
)
def test_a_policy_whose_parts_contradict_each_other_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        replace(Policy(), **wrong)  # type: ignore[arg-type]


def test_a_large_cluster_makes_more_moves_at_once() -> None:
    assert Policy().at_once(3) == 8
    assert Policy().at_once(10_000) == 500


def test_a_snapshot_names_every_member_once_and_its_lines_in_order() -> None:
    good = cluster(BEFORE)
    for wrong in (
        {"servers": good.servers[1:]},
        {"servers": (*good.servers, good.servers[0])},
        {"lines": good.lines[::-1]},
    ):
        with pytest.raises(InvalidInput):
            replace(good, **wrong)


def test_a_load_that_is_no_share_or_belongs_to_no_member_is_refused() -> None:
    with pytest.raises(InvalidInput):
        ServerLoad("A", processing=float("nan"))
    with pytest.raises(InvalidInput):
        ServerLoad("A", capacity_bytes=0)
    with pytest.raises(InvalidInput):
        SectionLoad(first_table(["A"])[0], ())


def test_an_empty_cluster_needs_nothing() -> None:
    assert plan(ClusterSnapshot(0.0, (), ()), Policy()) == Plan()
