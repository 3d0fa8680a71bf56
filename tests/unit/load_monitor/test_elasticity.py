"""The shell around the controller, on the twin of a provisioner: answers that come late or never, controllers that die, two at once."""

from __future__ import annotations

import asyncio
from datetime import date

import pytest

from load_monitor.elastic.forecast import Floor, floor_of
from load_monitor.elastic.policy import ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.seen import Machine
from load_monitor.elastic.settings import ElasticSettings, ProvisionerRules
from load_monitor.elasticity import Elasticity, View, read_floor
from load_monitor.planning.policy import LIVE
from load_monitor.planning.snapshot import ClusterSnapshot, ServerLoad
from load_monitor.provisioning.contract import ProvisioningFailed
from load_monitor.provisioning.memory import MemoryProvisioner
from utuple.errors import InvalidInput

SETTINGS = ElasticSettings(
    ElasticPolicy(
        ServerRules(max=6, cpu=0.5, memory_mb=300, cooldown_s=10, calm_s=20, leave_s=10),
        MachineRules(empty_s=30),
    ),
    ProvisionerRules(limit_s=0.05),
)
FIRST = Machine("machine-1", 1, 1100)


class World:
    """Servers serve as soon as they are made, and leave as soon as they are asked."""

    def __init__(self, load: float) -> None:
        self.load = load
        self.provisioner = MemoryProvisioner((FIRST,), ("server-1", "server-2"))
        self.leaving: set[str] = set()
        self.forgotten: list[str] = []

    def view(self, now_s: float) -> View:
        names = sorted(self.provisioner.servers)
        each = self.load / max(1, len(names) - len(self.leaving))
        loads = tuple(
            ServerLoad(name, each, processing_lately=each, draining=name in self.leaving)
            for name in names
        )
        return View(ClusterSnapshot(now_s, loads, ()), {name: f"at {name}" for name in names})

    async def leave(self, address: str) -> bool:
        self.leaving.add(address.removeprefix("at "))
        return True

    async def forget(self, name: str, address: str) -> None:
        self.forgotten.append(name)
        self.leaving.discard(name)

    def controller(self, name: str = "monitor-1", floor: Floor | None = None) -> Elasticity:
        return Elasticity(name, SETTINGS, self.provisioner, self, LIVE, floor)

    async def looks(self, elasticity: Elasticity, *moments_s: float) -> None:
        for now_s in moments_s:
            await elasticity.look(self.view(now_s))
            await asyncio.gather(*elasticity.tasks)


async def test_load_brings_a_machine_and_servers_and_its_end_takes_them_away() -> None:
    world = World(load=2.0)
    elasticity = world.controller()
    await world.looks(elasticity, *range(45))
    assert sorted(world.provisioner.machines) == ["machine-1", "machine-2"]
    assert len(world.provisioner.servers) == 4
    world.load = 0.1
    await world.looks(elasticity, *range(45, 220))
    assert sorted(world.provisioner.servers) == ["server-1"]
    assert sorted(world.provisioner.machines) == ["machine-1"]
    assert world.forgotten == ["server-4", "server-3", "server-2"]
    assert "ceil(2 x 100% / 60%)" in next(d.why for d in elasticity.state.done if "add" in d.what)


async def test_what_was_made_though_nobody_heard_of_it_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer to create is lost: it is asked for again, by its name."""
    world = World(load=2.0)
    create = world.provisioner.create_machine

    async def lost(machine: Machine) -> None:
        await create(machine)
        raise ProvisioningFailed("the answer was lost")

    monkeypatch.setattr(world.provisioner, "create_machine", lost)
    elasticity = world.controller()
    await world.looks(elasticity, *range(75))
    assert sorted(world.provisioner.machines) == ["machine-1", "machine-2"]
    assert "the answer was lost" in str([done.failed for done in elasticity.state.done])


async def test_a_provisioner_that_never_answers_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(load=2.0)

    async def never(machine: Machine) -> None:
        world.provisioner.calls.append(f"asked for {machine.name}")
        await asyncio.Event().wait()

    monkeypatch.setattr(world.provisioner, "create_machine", never)
    elasticity = world.controller()
    await world.looks(elasticity, *range(75))
    asked = [call for call in world.provisioner.calls if call.startswith("asked")]
    assert set(asked) == {"asked for machine-2"}
    assert 2 <= len(asked) <= 4
    assert "no answer within" in elasticity.state.done[0].failed


async def test_a_controller_that_is_killed_is_followed_by_one_that_makes_nothing_twice() -> None:
    for killed_at in range(60):
        world = World(load=2.0)
        await world.looks(world.controller(), *range(killed_at))
        world.provisioner.holder = ""
        await world.looks(world.controller("monitor-2"), *range(killed_at, killed_at + 70))
        assert sorted(world.provisioner.machines) == ["machine-1", "machine-2"], killed_at
        assert len(world.provisioner.servers) == 4


async def test_of_two_controllers_one_acts_and_the_other_takes_over_when_it_dies() -> None:
    world = World(load=2.0)
    first, second = world.controller("monitor-1"), world.controller("monitor-2")
    for now_s in range(45):
        await world.looks(first, now_s)
        await world.looks(second, now_s)
    assert (first.state.acts, second.state.acts) == (True, False)
    assert list(second.state.done) == []
    world.provisioner.holder, world.load = "", 3.5
    await world.looks(second, *range(45, 110))
    assert len(world.provisioner.servers) == 6


async def test_one_that_takes_over_waits_as_if_the_last_one_had_just_decided() -> None:
    world = World(load=2.0)
    elasticity = world.controller()
    await world.looks(elasticity, *range(10))
    assert not elasticity.state.waiting
    await world.looks(elasticity, 10)
    assert elasticity.state.waiting == ("server-3", "server-4")


async def test_nobody_acts_while_the_provisioner_cannot_say_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(load=2.0)

    async def broken() -> None:
        raise ProvisioningFailed("no route")

    monkeypatch.setattr(world.provisioner, "inventory", broken)
    await world.looks(world.controller(), *range(75))
    assert world.provisioner.calls == []


async def test_a_forecast_brings_servers_on_its_day() -> None:
    world = World(load=0.9)
    await world.looks(world.controller(floor=Floor(date(2000, 1, 1), 3)), *range(45))
    assert len(world.provisioner.servers) == 3
    world = World(load=0.9)
    await world.looks(world.controller(floor=Floor(date(9000, 1, 1), 3)), *range(45))
    assert len(world.provisioner.servers) == 2


def test_a_floor_is_read_from_what_plan_forecast_prints() -> None:
    said = '{"servers_now": 3, "order": {"likely": {"servers": 2, "installed": "2026-12-01"}}}'
    floor = floor_of(said)
    assert floor == Floor(date(2026, 12, 1), 5)
    assert [floor.on(date(2026, 11, 30)), floor.on(date(2026, 12, 1))] == [0, 5]
    assert floor_of('{"servers_now": 3, "order": null}') is None
    assert floor_of('{"servers_now": 3, "order": {"likely": null}}') is None
    with pytest.raises(InvalidInput, match="utuple plan forecast --json"):
        floor_of('{"order": 3}')


def test_a_forecast_that_cannot_be_read_is_named() -> None:
    assert read_floor("") is None
    with pytest.raises(
        InvalidInput, match=r"forecast\.file: '/nowhere\.json' is refused: cannot be"
    ):
        read_floor("/nowhere.json")
