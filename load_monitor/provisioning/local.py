"""Processes of this machine, for `utuple up --elastic`; machines are accounted shares of it.

Servers are the supervisor's: it is asked through its folder, as `utuple server add` asks. What it does not know, which machines there are and
who is on which, is kept in the folder's elastic.json, written before anything is done about it: a controller that is killed in between
is followed by one that finds the place taken and asks again.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.outer import size_for
from load_monitor.elastic.policy import ElasticPolicy
from load_monitor.elastic.seen import Inventory, Machine, Provisioned, next_number
from load_monitor.provisioning.contract import ProvisioningFailed
from utuple.local.folder import ClusterFile, DataFolder, FolderError, read_json, write_json
from utuple.local.supervising.requests import Request, ask
from utuple.runtime.clock import now_us

_MICROSECONDS = 1e6
FIRST = "machine-1"


@dataclass(frozen=True, slots=True)
class _Share:
    """A machine: so much of this one, since when."""

    name: str
    cpu: int
    memory_mb: float
    made_us: int


@dataclass(frozen=True, slots=True)
class _Noted:
    machines: tuple[_Share, ...] = ()
    servers: dict[str, str] = field(default_factory=dict)
    """The machine of each."""

    def machine(self, name: str) -> _Share | None:
        return next((machine for machine in self.machines if machine.name == name), None)


class LocalProvisioner:
    def __init__(self, folder: Path, policy: ElasticPolicy, ready_s: float, limit_s: float) -> None:
        """`ready_s`: a new machine is ready only after this, as one of a cloud would be."""
        self._folder = DataFolder(folder)
        self._policy = policy
        self._ready_us = int(ready_s * _MICROSECONDS)
        self._limit_s = limit_s
        self._lock: IO[str] | None = None

    @property
    def placing(self) -> Placing:
        return Placing()

    async def hold(self, holder: str) -> bool:
        """By a lock on a file: whoever holds it lives."""
        if self._lock is not None:
            return True
        file = (self._folder.path / "elastic.lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock = file
        return True

    async def inventory(self) -> Inventory:
        cluster, noted = self._cluster(), self._noted()
        names, at_us = cluster.layout.server_names, now_us()
        machines = noted.machines or (self._first(len(names), at_us),)
        return Inventory(
            tuple(
                Machine(m.name, m.cpu, m.memory_mb, at_us - m.made_us >= self._ready_us)
                for m in machines
            ),
            tuple(Provisioned(name, self._machine_of(name, noted)) for name in names),
            next_number((*names, *cluster.layout.drained, *noted.servers)),
        )

    async def create_machine(self, machine: Machine) -> None:
        def made(noted: _Noted) -> _Noted:
            if noted.machine(machine.name) is not None:
                return noted
            share = _Share(machine.name, machine.cpu, machine.memory_mb, now_us())
            return replace(noted, machines=(*noted.machines, share))

        self._change(made)

    async def delete_machine(self, name: str) -> None:
        def gone(noted: _Noted) -> _Noted:
            if name in self._occupied(noted):
                raise ProvisioningFailed(f"{name} still has servers")
            return replace(noted, machines=tuple(m for m in noted.machines if m.name != name))

        self._change(gone)

    async def create_server(self, name: str, machine: str) -> None:
        def placed(noted: _Noted) -> _Noted:
            return replace(noted, servers={**noted.servers, name: machine})

        layout = self._cluster().layout
        if name in layout.server_names or name in layout.drained:
            return
        self._change(placed)
        await self._ask(Request("add", name))

    async def delete_server(self, name: str) -> bool:
        """The supervisor stops it, once it has seen for itself that it is in no line."""
        cluster = self._cluster()
        if name in cluster.layout.server_names and name not in cluster.leaving:
            await self._ask(Request("drain", name))
        return False

    async def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ---------------------------------------------------------------------------------------- what is noted

    def _cluster(self) -> ClusterFile:
        cluster = self._folder.read_cluster()
        if cluster is None:
            raise ProvisioningFailed(f"{self._folder.path} holds no cluster")
        return cluster

    def _noted(self) -> _Noted:
        told: dict[str, Any] = read_json(self._path) or {}
        machines = tuple(_Share(**machine) for machine in told.get("machines", ()))
        return _Noted(machines, dict(told.get("servers", {})))

    @property
    def _path(self) -> Path:
        return self._folder.path / "elastic.json"

    def _change(self, change: Callable[[_Noted], _Noted]) -> None:
        """The first change writes down the machine that was there from the beginning."""
        noted, names = self._noted(), self._cluster().layout.server_names
        if not noted.machines:
            first = self._first(len(names), now_us())
            noted = _Noted((first,), dict.fromkeys(names, FIRST))
        kept = {name: machine for name, machine in noted.servers.items() if self._is_kept(name)}
        write_json(self._path, asdict(change(replace(noted, servers=kept))))

    def _is_kept(self, name: str) -> bool:
        return name not in self._cluster().layout.drained

    def _machine_of(self, name: str, noted: _Noted) -> str:
        return noted.servers.get(name, "" if noted.machines else FIRST)

    def _occupied(self, noted: _Noted) -> set[str]:
        return {noted.servers.get(name, "") for name in self._cluster().layout.server_names}

    def _first(self, servers: int, at_us: int) -> _Share:
        """What the servers that were there from the beginning ask for; it is ready."""
        size = size_for(servers, self._policy.servers, self._policy.machines)
        return _Share(FIRST, *size, made_us=at_us - self._ready_us)

    async def _ask(self, request: Request) -> None:
        try:
            await asyncio.to_thread(ask, self._folder, request, self._limit_s)
        except FolderError as error:
            raise ProvisioningFailed(str(error)) from None
