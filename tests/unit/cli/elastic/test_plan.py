"""`utuple elastic plan`: what would be done with a cluster as it is, when, and why, in words."""

from __future__ import annotations

from dataclasses import replace

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.seen import Machine, Seen, SeenServer
from utuple.cli.elastic.plan import steps

POLICY = ElasticPolicy(
    ServerRules(cpu=0.5, memory_mb=300), MachineRules(pending_s=20), Area(4, 8192)
)
FULL = Machine("machine-1", 1, 1100)
"""Two servers have it for themselves."""


def seen(count: int, load: float, machine: Machine = FULL, floor: int = 0) -> Seen:
    servers = tuple(
        SeenServer(f"server-{n + 1}", machine.name, processing=load, processing_lately=load)
        for n in range(count)
    )
    return Seen(0.0, servers, (machine,), next_server=count + 1, floor=floor)


def told(policy: ElasticPolicy, placing: Placing, now: Seen) -> list[tuple[float, str, str]]:
    return [(a["after_s"], a["what"], a["why"]) for a in steps(policy, placing, now)["actions"]]


def test_servers_without_a_place_bring_a_machine_after_their_wait_and_it_is_said_why() -> None:
    said = steps(POLICY, Placing(), seen(2, 0.9))
    assert (said["servers"], said["wanted"]) == (2, 3)
    assert said["why"] == "2 servers are 90% busy: ceil(2 x 90% / 60%) = 3"
    assert [(a["after_s"], a["what"]) for a in said["actions"]] == [
        (20.0, "create machine-2 (1 vCPU, 1,024 MB)")
    ]
    assert said["actions"][0]["why"] == "1 server has waited 20 s for a place"


def test_a_scheduler_that_finds_places_itself_is_asked_at_once_by_its_own_names() -> None:
    """Kubernetes: the pods of a StatefulSet, of which the first leaves first."""
    pods = Placing(places_itself=True, first_leaves=True, makes_machines=False, prefix="pod")
    busy = told(POLICY, pods, seen(2, 0.9))
    assert [(after_s, what) for after_s, what, _ in busy] == [(0.0, "add pod-3")]
    idle = told(POLICY, pods, seen(3, 0.05))
    assert [what for _, what, _ in idle] == ["drain server-1"]
    assert [what for _, what, _ in told(POLICY, Placing(), seen(3, 0.05))] == ["drain server-3"]


def test_the_forecast_is_counted() -> None:
    said = steps(POLICY, Placing(), seen(1, 0.5, floor=2))
    assert (said["wanted"], said["why"]) == (
        2,
        "1 server serves, and at least 2 are wanted by the forecast",
    )
    assert [a["what"] for a in said["actions"]] == ["add server-2 on machine-1"]


def test_between_the_thresholds_nothing_is_to_be_done() -> None:
    said = steps(POLICY, Placing(), seen(2, 0.5))
    assert (said["actions"], said["warnings"]) == ([], [])
    assert said["why"] == "2 servers are 50% busy, between 30% and 80%"


def test_too_little_area_is_one_warning_with_what_is_missing() -> None:
    said = steps(replace(POLICY, area=Area(1, 8192)), Placing(), seen(2, 0.9))
    assert said["actions"] == []
    assert len(said["warnings"]) == 1
    assert "1 vCPU and 1,024 MB are needed, and 0 vCPU" in said["warnings"][0]
