"""The runs of paper 003, section 6.2: counts and sizes exact, minutes within two."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.settings import settings_of
from ops_sim.elastic.cost import JUST_ENOUGH, compared
from ops_sim.elastic.paper_runs import paper_texts
from ops_sim.elastic.scenario import Durations, Scenario, scenario_of
from ops_sim.elastic.simulation import Moment, Run, simulate
from utuple.errors import InvalidInput

WITHIN_MINUTES = 2.0


def case(section: str) -> tuple[ElasticPolicy, Scenario]:
    read = settings_of(paper_texts()[f"paper/{section}.toml"])
    return read.policy, scenario_of(read.simulation)


def run_of(section: str) -> Run:
    return simulate(*case(section))


def at(run: Run, minute: float) -> Moment:
    return next(moment for moment in run.moments if moment.minute >= minute)


def near(minute: float, expected: float) -> bool:
    return abs(minute - expected) <= WITHIN_MINUTES


def test_section_6_2_2_goes_from_1_server_over_5_at_91_percent_to_7_at_64_and_back_to_1() -> None:
    run = run_of("6.2.2")
    assert (at(run, 2).servers, round(at(run, 2).present, 2)) == (1, 0.13)
    scaled = at(run, 6)
    assert (scaled.servers, scaled.waiting, round(scaled.present, 2)) == (5, 2, 0.91)
    assert near(run.added[0].ready_s / 60, 10)
    assert [(m.cpu, m.memory_mb) for m in run.added] == [(1, 1024)]
    balanced = [moment for moment in run.moments if 18 <= moment.minute < 25]
    assert {(m.servers, round(m.present, 2)) for m in balanced} == {(7, 0.64)}
    first = next(h.minute for h in run.happenings if h.what.startswith("drain"))
    alone = next(
        m.minute for m in run.moments if m.minute > 25 and (m.servers, m.machines) == (1, 1)
    )
    assert near(first, 30)
    assert near(alone, 35)


def test_section_6_2_3_needs_9_servers() -> None:
    run = run_of("6.2.3")
    assert max(moment.servers for moment in run.moments) == 9
    assert (run.moments[-1].servers, run.moments[-1].machines) == (1, 1)


def test_section_6_2_4_makes_machines_of_1024_1340_and_1900_mb_for_2_4_and_6_servers() -> None:
    run = run_of("6.2.4")
    assert [(m.waiting, m.cpu, m.memory_mb) for m in run.added] == [
        (2, 1, 1024),
        (4, 1, 1340),
        (6, 1, 1900),
    ]
    for machine, minute in zip(run.added, (8, 12, 18), strict=True):
        assert near(machine.ready_s / 60, minute)
    assert at(run, 6).present == pytest.approx(0.84)
    five = next(m for m in run.moments if m.minute > 20 and m.servers == 5)
    assert near(five.minute, 26)
    assert five.present == pytest.approx(0.10)
    alone = next(m for m in run.moments if m.minute > 20 and (m.servers, m.machines) == (1, 1))
    assert near(alone.minute, 37)


@pytest.mark.parametrize(("headroom_mb", "total_mb"), [(220, 4264), (500, 4860)])
def test_just_enough_takes_less_memory_than_machines_of_1024_mb(
    headroom_mb: float, total_mb: float
) -> None:
    policy, scenario = case("6.2.4")
    rules = replace(policy.machines, headroom_mb=headroom_mb, system_mb=min(headroom_mb, 400))
    bills = [bill for _, bill in compared(replace(policy, machines=rules), scenario)]
    assert [(bill.machines, bill.memory_mb) for bill in bills] == [
        (JUST_ENOUGH, total_mb),
        ("1 GB", 6144),
    ]
    assert bills[0].cost < bills[1].cost
    assert bills[0].made == 3
    assert bills[1].made == 6


LOADS = st.lists(st.tuples(st.integers(0, 50), st.floats(0, 12)), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(load=LOADS, boot_s=st.floats(0, 300), drain_s=st.floats(0, 300))
def test_whatever_the_load_bounds_area_and_cool_down_hold(
    load: list[tuple[int, float]], boot_s: float, drain_s: float
) -> None:
    policy = ElasticPolicy(
        ServerRules(min=1, max=9, memory_mb=300, cpu=0.5, calm_s=60, leave_s=60),
        MachineRules(empty_s=60),
        Area(4, 5000),
    )
    course = tuple(sorted({float(minute): load for minute, load in load}.items()))
    run = simulate(policy, Scenario(Durations(boot_s=boot_s, drain_s=drain_s, step_s=10), course))
    assert all(1 <= moment.servers <= 9 for moment in run.moments)
    assert all(moment.memory_mb <= 5000 for moment in run.moments)
    gaps = [b - a for a, b in zip(run.decided_s, run.decided_s[1:], strict=False)]
    assert all(gap >= policy.servers.cooldown_s for gap in gaps)
    assert len({machine.name for machine in run.machines if machine.deleted_s is None}) == len(
        [machine for machine in run.machines if machine.deleted_s is None]
    )


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "simulation"),
        ({"load": []}, "simulation.load"),
        ({"load": [[0, 1], [0, 2]]}, "simulation.load"),
        ({"load": [[0, float("nan")]]}, "simulation.load"),
        ({"load": [[0, 1]], "minuts": 3}, "simulation"),
        ({"load": [[0, 1]], "minutes": 0}, "simulation.minutes"),
        ({"load": [[0, 1]], "machine": {"cpu": 0}}, "simulation.machine.cpu"),
        ({"load": [[0, 1]], "price": {"cpu_hour": -1}}, "simulation.price.cpu_hour"),
    ],
)
def test_a_scenario_that_is_wrong_is_refused(told: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenario_of(told)
    assert refused.value.field == field
