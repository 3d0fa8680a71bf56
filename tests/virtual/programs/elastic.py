"""Elasticity on the virtual network: the live controller of each monitor, on a cloud that answers late, twice or never.

The cloud is the checker's, too: a name is given to one server for ever, machines stay within the area, and whoever is removed is gone with
its disk. So a server that is removed while anything still depends on it is a lost match.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.seen import Inventory, Machine, Provisioned, next_number
from load_monitor.elastic.settings import ElasticSettings, ProvisionerRules
from load_monitor.provisioning.contract import ProvisioningFailed
from tests.virtual.coverage import ELASTIC
from tests.virtual.programs.cluster import Cluster
from tests.virtual.programs.servers import address_of
from tests.virtual.scenes.directories import newest
from tests.virtual.world.disk import Disk
from tests.virtual.world.loop import Life
from utuple.cluster.line import ServerInfo
from utuple.cluster.move import Move, MoveKind
from utuple.errors import UTupleError
from utuple.runtime.clock import now_us
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import move_to_wire, server_to_wire

ADDED, REMOVED, MACHINE_MADE, MACHINE_GIVEN_BACK = ELASTIC

_AREA = Area(6, 8192)
_MORE = 2
"""At most so many servers more than at the beginning, and at least so many fewer."""
_LATEST_S = 4.0
_LOST = 0.15
_WANTED = 0.5
"""How often somebody orders a move to the server that is being removed."""
_BOOTS_S = 3.0


def settings_for(servers: int) -> ElasticSettings:
    """Bold and fast, as the monitors are here."""
    rules = ServerRules(
        min=max(1, servers - 1),
        max=servers + _MORE,
        target=0.4,
        upper=0.5,
        lower=0.35,
        cpu=0.5,
        memory_mb=300,
        cooldown_s=4.0,
        leave_s=4.0,
        calm_s=2.0,
        settle_limit_s=10.0,
    )
    machines = MachineRules(pending_s=2.0, empty_s=6.0)
    return ElasticSettings(ElasticPolicy(rules, machines, _AREA), ProvisionerRules(limit_s=3.0))


class Cloud:
    """What is there, whoever asks."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.dice: Random = cluster.world.dice("cloud")
        self.settings = settings_for(len(cluster.servers))
        self.machines = {"machine-1": Machine("machine-1", 2, 400.0 + 300 * len(cluster.servers))}
        self.servers = dict.fromkeys(cluster.servers, "machine-1")
        self.next_server = next_number(cluster.servers)
        self.holder: Life | None = None

    def hold(self, life: Life) -> bool:
        """A lock that ends with its holder."""
        if self.holder is None or not self.holder.is_alive:
            self.holder = life
        return self.holder is life

    def create_machine(self, machine: Machine) -> None:
        if machine.name in self.machines:
            return
        self.machines[machine.name] = machine
        self.cluster.world.count(MACHINE_MADE)
        cpu = sum(machine.cpu for machine in self.machines.values())
        memory_mb = sum(machine.memory_mb for machine in self.machines.values())
        if cpu > _AREA.cpu or memory_mb > _AREA.memory_mb:
            self.cluster.world.bug(f"{machine.name} is beyond the area")
        self.cluster.world.loop.later(_BOOTS_S, self._ready, machine.name)

    def _ready(self, name: str) -> None:
        if name in self.machines:
            self.machines[name] = replace(self.machines[name], ready=True)

    def delete_machine(self, name: str) -> None:
        if name in self.servers.values():
            raise ProvisioningFailed(f"{name} has servers")
        if self.machines.pop(name, None) is not None:
            self.cluster.world.count(MACHINE_GIVEN_BACK)

    def create_server(self, name: str, machine: str) -> None:
        cluster = self.cluster
        if name in self.servers:
            return
        if name in cluster.processes:
            # Readers' positions are kept by the name of the server they were in.
            cluster.world.bug(f"the name {name} is used again")
        if machine not in self.machines:
            raise ProvisioningFailed(f"there is no {machine}")
        self.servers[name] = machine
        self.next_server = max(self.next_server, next_number([name]))
        cluster.add(name, cluster._server).disk = Disk(cluster.world, name)
        cluster.servers.append(name)
        cluster.world.count(ADDED)
        cluster.start(name)

    async def want(self, name: str) -> None:
        """An operator who does not know that it is about to go makes it a helper."""
        cluster = self.cluster
        line = self.dice.choice(list(newest(cluster)))
        if not line.accumulatable or line.member(name) is not None:
            return
        member = self.dice.choice(line.accumulatable)
        move = Move(MoveKind.HELP_MEMORY, line.section, line.epoch, member, name)
        cluster.world.trace("order", move)
        try:
            await cluster.network.call(address_of(line.home), "move", move_to_wire(move), 3.0)
        except UTupleError as error:
            cluster.world.trace("order lost", error)

    def delete_server(self, name: str) -> None:
        """It is gone, and its disk with it."""
        if self.servers.pop(name, None) is None:
            return
        cluster = self.cluster
        for line in newest(cluster):
            if line.member(name) is not None:
                cluster.world.bug(f"{name} is removed, and is in {line}")
        cluster.processes[name].wanted = False
        cluster.servers.remove(name)
        cluster.world.count(REMOVED)
        cluster.crash(name)


class VirtualProvisioner:
    """The cloud as one monitor's life has it: late, or without an answer though it was done."""

    def __init__(self, cloud: Cloud, life: Life) -> None:
        self._cloud = cloud
        self._life = life

    @property
    def placing(self) -> Placing:
        return Placing()

    async def hold(self, holder: str) -> bool:
        return self._cloud.hold(self._life)

    async def inventory(self) -> Inventory:
        cloud = self._cloud
        servers = tuple(Provisioned(*placed) for placed in cloud.servers.items())
        return Inventory(tuple(cloud.machines.values()), servers, cloud.next_server)

    async def create_machine(self, machine: Machine) -> None:
        await self._late()
        self._cloud.create_machine(machine)
        self._maybe_lost()

    async def delete_machine(self, name: str) -> None:
        await self._late()
        self._cloud.delete_machine(name)
        self._maybe_lost()

    async def create_server(self, name: str, machine: str) -> None:
        await self._late()
        self._cloud.create_server(name, machine)
        self._maybe_lost()

    async def delete_server(self, name: str) -> bool:
        if self._cloud.dice.random() < _WANTED:
            await self._cloud.want(name)
        await self._late()
        self._cloud.delete_server(name)
        self._maybe_lost()
        return True

    async def close(self) -> None:
        return

    async def _late(self) -> None:
        await asyncio.sleep(self._cloud.dice.uniform(0.0, _LATEST_S))

    def _maybe_lost(self) -> None:
        if self._cloud.dice.random() < _LOST:
            raise ProvisioningFailed("the answer was lost")


class ElasticCalls:
    """What elasticity asks of servers and managers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def leave(self, address: str) -> bool:
        answer = await self._cluster.network.call(address, "leave", pb.LeaveRequest(), 3.0)
        self._cluster.world.trace(address, "is to leave", answer.leaving)
        return bool(answer.leaving)

    async def forget(self, name: str, address: str) -> None:
        gone = ServerInfo(name, address_of(name), "gone", now_us())
        message = pb.Announcement(server=server_to_wire(gone))
        for manager in self._cluster.manager_addresses:
            try:
                await self._cluster.network.call(manager, "announce", message, 2.0)
            except UTupleError as error:
                self._cluster.world.trace("does not hear", error)
