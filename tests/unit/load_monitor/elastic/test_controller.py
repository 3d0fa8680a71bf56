"""Both levels, step by step: waits, one machine at a time, answers that are lost, controllers that begin anew."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from load_monitor.elastic.actions import (
    AddServer,
    CreateMachine,
    Decision,
    DeleteMachine,
    DrainServer,
    RemoveServer,
)
from load_monitor.elastic.controller import AGAIN_S, OUT_S, Controller, Placing
from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.seen import Machine, Seen, SeenServer

POLICY = ElasticPolicy(
    ServerRules(max=8, cpu=0.5, memory_mb=300, cooldown_s=30, calm_s=60, leave_s=30),
    MachineRules(empty_s=100),
    Area(6, 8192),
)
FIRST = Machine("machine-1", 1, 1100)
"""Room for two servers."""


def servers(count: int, load: float, machine: str = "machine-1") -> tuple[SeenServer, ...]:
    return tuple(
        SeenServer(f"server-{at + 1}", machine, processing=load, processing_lately=load)
        for at in range(count)
    )


def seen(
    now_s: float, there: tuple[SeenServer, ...], *machines: Machine, settling: str = ""
) -> Seen:
    numbered = Seen(now_s, there, machines or (FIRST,), settling)
    return replace(numbered, next_server=len(there) + 1)


def overloaded(now_s: float, *machines: Machine) -> Seen:
    return seen(now_s, servers(2, 1.0), *machines)


def made(decision: Decision) -> list[Machine]:
    return [action.machine for action in decision.actions if isinstance(action, CreateMachine)]


def test_pending_for_19_9_s_makes_nothing_and_for_20_s_one_machine() -> None:
    controller = Controller(POLICY)
    assert controller.step(overloaded(0.0)).actions == ()
    assert sorted(controller.waiting) == ["server-3", "server-4"]
    assert made(controller.step(overloaded(19.9))) == []
    (machine,) = made(controller.step(overloaded(20.0)))
    assert machine == Machine("machine-2", 1, 1100, ready=False)
    assert made(controller.step(overloaded(21.0))) == []


def test_a_machine_that_is_not_ready_is_waited_for() -> None:
    controller = Controller(POLICY)
    booting = replace(FIRST, name="machine-2", ready=False)
    controller.step(overloaded(0.0))
    assert made(controller.step(overloaded(25.0, FIRST, booting))) == []
    placed = controller.step(overloaded(30.0, FIRST, replace(booting, ready=True)))
    assert [str(action) for action in placed.actions] == [
        "add server-3 on machine-2",
        "add server-4 on machine-2",
    ]


def test_a_server_goes_where_there_is_room_and_needs_no_machine() -> None:
    decision = Controller(POLICY).step(seen(0.0, servers(1, 0.9)))
    assert [str(action) for action in decision.actions] == ["add server-2 on machine-1"]
    assert "ceil(1 x 90% / 60%) = 2" in decision.actions[0].why


def test_a_create_that_is_not_answered_is_asked_for_again_by_the_same_name_and_size() -> None:
    controller = Controller(POLICY)
    controller.step(overloaded(0.0))
    (first,) = made(controller.step(overloaded(20.0)))
    assert made(controller.step(overloaded(20.0 + AGAIN_S / 2))) == []
    assert made(controller.step(overloaded(20.0 + AGAIN_S))) == [first]


def test_a_controller_that_begins_anew_uses_what_the_last_one_made() -> None:
    """Killed after create: machine-2 shows up, and nothing else is made."""
    machine = replace(FIRST, name="machine-2")
    controller = Controller(POLICY)
    found = [controller.step(overloaded(now_s, FIRST, machine)) for now_s in (0.0, 25.0)]
    assert [len(made(decision)) for decision in found] == [0, 0]
    assert {a.machine for a in found[0].actions if isinstance(a, AddServer)} == {"machine-2"}


def test_a_machine_that_came_too_late_for_anybody_is_given_back() -> None:
    controller = Controller(POLICY)
    late = replace(FIRST, name="machine-2")
    calm = servers(2, 0.5)
    assert controller.step(seen(0.0, calm, FIRST, late)).actions == ()
    assert controller.step(seen(99.9, calm, FIRST, late)).actions == ()
    (action,) = controller.step(seen(100.0, calm, FIRST, late)).actions
    assert str(action) == "delete machine-2"


def test_too_little_area_is_one_warning_and_no_machine() -> None:
    policy = replace(POLICY, area=Area(1, 8192))
    controller = Controller(policy)
    controller.step(overloaded(0.0))
    decisions = [controller.step(overloaded(now_s)) for now_s in (20.0, 21.0, 60.0)]
    assert [bool(decision.warning) for decision in decisions] == [True, False, False]
    assert [decision.actions for decision in decisions] == [(), (), ()]
    assert "0 vCPU" in decisions[0].warning


def test_a_server_that_waits_is_given_up_when_the_load_is_gone() -> None:
    controller = Controller(POLICY)
    controller.step(overloaded(0.0))
    controller.step(seen(40.0, servers(2, 0.5)))
    assert controller.waiting == {}
    assert controller.step(seen(80.0, servers(2, 0.5))).actions == ()


def test_a_server_that_waits_is_not_given_up_for_a_dip() -> None:
    controller = Controller(POLICY)
    controller.step(overloaded(0.0))
    dip = tuple(replace(server, processing=0.4) for server in servers(2, 0.7))
    controller.step(seen(40.0, dip))
    assert sorted(controller.waiting) == ["server-3", "server-4"]


def test_servers_leave_by_drain_one_at_a_time_the_last_that_came_first() -> None:
    controller = Controller(POLICY)
    idle = servers(3, 0.05)
    assert controller.step(seen(0.0, idle)).actions == ()
    (action,) = controller.step(seen(60.0, idle)).actions
    assert isinstance(action, DrainServer)
    assert action.name == "server-3"
    leaving = (*idle[:2], replace(idle[2], leaving=True))
    waits = controller.step(seen(95.0, leaving))
    assert (waits.actions, waits.waits) == ((), "server-3 is leaving")
    out = (*idle[:2], replace(idle[2], leaving=True, is_out=True))
    assert controller.step(seen(96.0, out)).actions == ()
    (removed,) = controller.step(seen(96.0 + OUT_S, out)).actions
    assert isinstance(removed, RemoveServer)


def test_a_server_is_never_removed_before_it_is_out_of_every_line() -> None:
    controller = Controller(POLICY)
    leaving = (*servers(1, 0.05), SeenServer("server-2", "machine-1", leaving=True))
    for now_s in range(0, 2_000, 10):
        assert not any(
            isinstance(a, RemoveServer) for a in controller.step(seen(now_s, leaving)).actions
        )


def test_servers_that_nobody_here_made_stay() -> None:
    controller = Controller(POLICY)
    foreign = tuple(replace(server, is_ours=False) for server in servers(3, 0.05))
    for now_s in (0.0, 60.0, 120.0):
        assert controller.step(seen(now_s, foreign)).actions == ()


def test_where_names_go_up_for_ever_the_first_leaves_first() -> None:
    controller = Controller(POLICY, Placing(places_itself=True, first_leaves=True))
    controller.step(seen(0.0, servers(3, 0.05)))
    (action,) = controller.step(seen(60.0, servers(3, 0.05))).actions
    assert action.name == "server-1"


def test_a_scheduler_is_asked_at_once_and_its_pending_servers_are_counted() -> None:
    controller = Controller(POLICY, Placing(places_itself=True))
    asked = controller.step(overloaded(0.0)).actions
    assert [str(action) for action in asked] == ["add server-3", "add server-4"]
    waiting = tuple(SeenServer(f"server-{n}", waits=True, serves=False) for n in (3, 4))
    pending = seen(5.0, (*servers(2, 1.0), *waiting))
    assert controller.step(pending).actions == ()
    (machine,) = made(controller.step(replace(pending, now_s=20.0)))
    assert machine.memory_mb == 1100


def test_moves_settle_before_the_next_decision_but_growth_does_not_wait_for_ever() -> None:
    controller = Controller(POLICY)
    busy = servers(1, 1.0)
    assert controller.step(seen(0.0, busy, settling="1 move")).waits == "1 move"
    assert controller.step(seen(299.0, busy, settling="1 move")).actions == ()
    assert controller.step(seen(300.0, busy, settling="1 move")).actions != ()


def test_servers_do_not_leave_while_load_moves_however_long_that_takes() -> None:
    controller = Controller(POLICY)
    for now_s in range(0, 3_000, 50):
        assert controller.step(seen(now_s, servers(3, 0.05), settling="1 move")).actions == ()


@pytest.mark.parametrize("period_s", [20.0, 60.0, 200.0, 600.0])
def test_a_square_wave_changes_the_number_of_servers_at_most_once_in_a_cool_down(
    period_s: float,
) -> None:
    controller, count, decided = Controller(POLICY), 2, set()
    for now_s in range(3_000):
        load = 1.8 if now_s % period_s < period_s / 2 else 0.1
        big = Machine("machine-1", 6, 8192)
        decision = controller.step(seen(float(now_s), servers(count, load / count), big))
        count += sum(isinstance(action, AddServer) for action in decision.actions)
        count -= sum(isinstance(action, DrainServer) for action in decision.actions)
        if controller.decided_s is not None:
            decided.add(controller.decided_s)
    moments = sorted(decided)
    assert all(b - a >= POLICY.servers.cooldown_s for a, b in itertools.pairwise(moments))
    assert moments


def test_machines_that_are_empty_stay_while_servers_wait() -> None:
    controller = Controller(POLICY)
    empty = replace(FIRST, name="machine-2", cpu=1, memory_mb=1024)
    for now_s in range(0, 400, 10):
        decision = controller.step(overloaded(float(now_s), FIRST, empty))
        assert not any(isinstance(action, DeleteMachine) for action in decision.actions)
