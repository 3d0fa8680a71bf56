"""The plain twin of a provisioner: machines and servers are names in memory."""

from __future__ import annotations

from dataclasses import replace

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.seen import Inventory, Machine, Provisioned, next_number


class MemoryProvisioner:
    def __init__(self, machines: tuple[Machine, ...] = (), servers: tuple[str, ...] = ()) -> None:
        first = machines[0].name if machines else ""
        self.machines = {machine.name: machine for machine in machines}
        self.servers = dict.fromkeys(servers, first)
        self.holder = ""
        self.calls: list[str] = []
        self._highest = next_number(servers)

    @property
    def placing(self) -> Placing:
        return Placing()

    async def hold(self, holder: str) -> bool:
        self.holder = self.holder or holder
        return self.holder == holder

    async def inventory(self) -> Inventory:
        servers = tuple(Provisioned(name, machine) for name, machine in self.servers.items())
        return Inventory(tuple(self.machines.values()), servers, self._highest)

    async def create_machine(self, machine: Machine) -> None:
        self.calls.append(f"create {machine.name}")
        self.machines.setdefault(machine.name, replace(machine, ready=True))

    async def delete_machine(self, name: str) -> None:
        self.calls.append(f"delete {name}")
        if name not in self.servers.values():
            self.machines.pop(name, None)

    async def create_server(self, name: str, machine: str) -> None:
        self.calls.append(f"add {name}")
        self.servers.setdefault(name, machine)
        self._highest = max(self._highest, next_number([name]))

    async def delete_server(self, name: str) -> bool:
        self.calls.append(f"remove {name}")
        self.servers.pop(name, None)
        return True

    async def close(self) -> None:
        return
