"""Machines that are just enough: sections 5.1, 5.2 and 6.2.4 of paper 003."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_monitor.elastic.outer import new_machines, places_on, size_for, what_fits
from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.seen import Machine


def test_four_waiting_servers_make_a_machine_of_2_vcpu_and_3840_mb_as_in_section_5_1() -> None:
    servers = ServerRules(cpu=0.44, memory_mb=910)
    rules = MachineRules(headroom_mb=200, system_mb=200)
    assert size_for(4, servers, rules) == (2, 3840)


@pytest.mark.parametrize(
    ("headroom_mb", "sizes"), [(220, [1024, 1340, 1900]), (500, [1060, 1620, 2180])]
)
def test_machines_of_section_6_2_4(headroom_mb: float, sizes: list[float]) -> None:
    servers = ServerRules(cpu=0.1, memory_mb=280)
    rules = MachineRules(headroom_mb=headroom_mb, system_mb=min(headroom_mb, 400))
    found = [size_for(waiting, servers, rules) for waiting in (2, 4, 6)]
    assert found == [(1, size) for size in sizes]


def test_a_machine_of_1_gb_has_room_for_five_servers_of_120_mb_and_two_of_280() -> None:
    """Sections 6.2.2 and 6.2.4, with the 400 MB that section 5.2 says a machine's system needs."""
    machine = Machine("machine-1", 1, 1024)
    assert places_on(machine, ElasticPolicy(ServerRules(cpu=0.1, memory_mb=120))) == 5
    assert places_on(machine, ElasticPolicy(ServerRules(cpu=0.1, memory_mb=280))) == 2


@given(
    waiting=st.integers(1, 50),
    cpu=st.floats(0.01, 4),
    memory_mb=st.floats(1, 4_000),
    headroom_mb=st.floats(0, 2_000),
)
def test_a_new_machine_has_room_for_those_it_is_made_for(
    waiting: int, cpu: float, memory_mb: float, headroom_mb: float
) -> None:
    policy = ElasticPolicy(
        ServerRules(cpu=cpu, memory_mb=memory_mb),
        MachineRules(headroom_mb=headroom_mb, system_mb=headroom_mb),
        Area(10_000, 1e9),
    )
    (machine,) = new_machines(waiting, 2, policy)
    assert machine.name == "machine-2"
    assert places_on(machine, policy) >= waiting
    assert (machine.cpu, machine.memory_mb) >= (1, 1024)


def test_of_a_fixed_size_as_many_machines_are_made_as_are_needed() -> None:
    policy = ElasticPolicy(
        ServerRules(cpu=0.1, memory_mb=280),
        MachineRules(headroom_mb=220, system_mb=220, fixed_cpu=1, fixed_memory_mb=1024),
    )
    made = [new_machines(waiting, 2, policy) for waiting in (2, 4, 6)]
    assert [len(machines) for machines in made] == [1, 2, 3]
    assert sum(machine.memory_mb for machines in made for machine in machines) == 6144


def test_what_the_rest_of_the_area_has_no_room_for_is_said() -> None:
    there, area = [Machine("machine-1", 1, 1024)], Area(2, 2048)
    assert what_fits([Machine("machine-2", 1, 1024)], there, area)[1] == ""
    fitting, missing = what_fits([Machine("machine-2", 1, 1025)], there, area)
    assert (fitting, "1,025 MB are needed" in missing) == ([], True)
    assert "2 vCPU" in what_fits([Machine("machine-2", 2, 10)], there, area)[1]
