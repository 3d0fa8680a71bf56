"""Where load lies: keys, places, the live planner over them, and the traditional DHT beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from load_monitor.planning.policy import Policy
from load_monitor.window import Sample, Window
from ops_sim import schema
from ops_sim.cost.application import EA_LIFETIME_DAYS
from ops_sim.cost.model import PAPER
from ops_sim.placement.cluster import Cluster
from ops_sim.placement.dynamic_help import DynamicHelp, raised
from ops_sim.placement.keys import Keys, between, running, weights
from ops_sim.placement.on_spark import Placement, figures, run_waves
from ops_sim.placement.scenario import Scenario, Skew, skew_from
from ops_sim.placement.splitmix import unit, words
from ops_sim.placement.study import EXISTING, PROPOSED, Study
from utuple.cluster.move import Move, MoveKind
from utuple.errors import InvalidInput

POLICY = Policy()
SMALL = Scenario(keys=500, days=9, skew=Skew("zipf", 1.1))


def rows_of(method: str, scenario: Scenario, policy: Policy = POLICY) -> list[dict[str, object]]:
    study = Study(method, scenario, PAPER, policy)
    return [dict(study.live(day)) for day in range(scenario.days)]


# ------------------------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize("text", ["even", "zipf:1.1", "hot:0.25"])
def test_a_skew_is_read_as_it_is_written(text: str) -> None:
    assert str(skew_from(text)) == text


@pytest.mark.parametrize("text", ["", "zipf", "zipf:much", "hot:1.1", "zipf:-1", "even:2", "flat"])
def test_a_skew_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="skew"):
        skew_from(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("servers", 0),
        ("servers", 10_001),
        ("servers_first", 11),
        ("keys", 0),
        ("days", 0),
        ("devices", -1.0),
        ("devices_first", 2e6),
        ("churn", 1.5),
        ("night", math.nan),
    ],
)
def test_a_scenario_that_cannot_be_is_refused_by_its_field(field: str, value: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(SMALL, **{field: value})  # type: ignore[arg-type]
    assert refused.value.field in (field, "servers_first")


def test_servers_and_devices_grow_together_in_a_straight_line() -> None:
    grown = Scenario(servers=20, servers_first=10, devices=2e6, devices_first=1e6, days=11)
    assert [grown.servers_on(day) for day in range(11)] == list(range(10, 21))
    assert grown.devices_on(5) == 1.5e6


# --------------------------------------------------------------------------------------------------- keys


@given(st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_draws_follow_from_seed_and_stream_and_not_from_how_many_are_drawn(
    seed: int, stream: int
) -> None:
    assert (words(seed, stream, 9)[:4] == words(seed, stream, 4)).all()
    assert (words(seed, stream, 9) != words(seed, stream + 1, 9)).any()
    drawn = unit(seed, stream, 50)
    assert ((drawn >= 0) & (drawn < 1)).all()


@given(st.sampled_from(["even", "zipf:0.8", "zipf:1.2", "hot:0.4", "hot:1"]), st.integers(1, 300))
def test_shares_of_all_keys_sum_to_one_with_the_heaviest_first(skew: str, count: int) -> None:
    shares = weights(skew_from(skew), count)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.diff(shares) <= 1e-15).all()


@given(st.lists(st.floats(0, 1), max_size=40), st.lists(st.integers(0, 40), max_size=10))
def test_what_a_section_bears_is_the_sum_of_its_keys(parts: list[float], cuts: list[int]) -> None:
    edges = sorted({0, len(parts), *(min(cut, len(parts)) for cut in cuts)})
    found = between(running(np.array(parts)), np.array(edges))
    naive = [sum(parts[low:high]) for low, high in pairwise(edges)]
    assert found == pytest.approx(naive)


def test_keys_vanish_and_appear_and_the_load_stays_the_same() -> None:
    keys = Keys(replace(SMALL, churn=0.2))
    before = keys.weights.copy()
    keys.live(1)
    changed = before != keys.weights
    assert 0.1 < changed.mean() < 0.25
    assert sorted(before) == sorted(keys.weights)


def test_day_and_night_cancel_out_over_the_day() -> None:
    keys = Keys(replace(SMALL, night=0.5))
    keys.look(0)
    noon = keys.now
    keys.look(1)
    assert (noon != keys.now).any()
    assert (noon + keys.now) / 2 == pytest.approx(keys.mean)


# ------------------------------------------------------------------------------------------------- places


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


@given(st.lists(st.floats(0.0, 1.5), min_size=1, max_size=8), st.floats(0.0, 1.5))
def test_the_alarms_are_those_of_the_monitors_window_once_a_load_is_steady(
    loads: list[float], memory: float
) -> None:
    window, now_s = Window(POLICY), 0.0
    busy = full = np.zeros(1, np.bool_)
    for load in loads:
        for _ in range(200):  # steady, long enough for the average and for hold_s
            now_s += 1.0
            window.heard(Sample("a", min(1.0, load), load, int(memory * 1e6), 10**6), now_s)
        (seen,) = window.loads(now_s)
        load_now = np.array([seen.processing])
        busy = raised(busy, load_now, POLICY.processing_start, POLICY.processing_stop)
        full = raised(full, np.array([seen.memory]), POLICY.memory_start, POLICY.memory_stop)
        assert (bool(busy[0]), bool(full[0])) == (seen.processing_high, seen.memory_high)


# ------------------------------------------------------------------------------------------------- studies


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


@pytest.mark.xdist_group("spark")
def test_three_days_of_each_method_are_its_rows_wherever_and_in_however_many_waves_they_run(
    spark: SparkSession,
) -> None:
    three = replace(SMALL, days=3, churn=0.1)
    placement = Placement((three, replace(three, skew=Skew())), PAPER, POLICY)
    rows = [row for method, one in placement.tasks for row in rows_of(method, one)]
    told: list[int] = []
    found = run_waves(spark, placement, told.append, wave_days=2)
    assert told == [2, 3]
    assert found.column_names == schema.PLACEMENT_DAYS.names
    order = [(name, "ascending") for name in ("method", "scenario", "day")]
    expected = sorted(rows, key=lambda row: [row[name] for name, _ in order])
    assert found.sort_by(order).to_pylist() == expected


def test_the_figures_of_a_study_are_those_of_the_second_half_of_its_days() -> None:
    rows = rows_of(PROPOSED, SMALL)
    (said,) = figures(rows)
    assert (said["method"], said["days"], said["servers"]) == (PROPOSED, 9, 10)
    half = [row["imbalance"] for row in rows[4:]]
    assert said["imbalance_mean"] == pytest.approx(sum(half) / 5)  # type: ignore[arg-type]
    assert said["moves_first_day"] == rows[0]["moves"]
