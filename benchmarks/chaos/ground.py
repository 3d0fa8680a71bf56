"""The ground chaos happens on: a cluster with a PostgreSQL for each server, a proxy before each program, and the
users' processes. Everything lies in one temporary folder and ends with it.

Programs announce their proxy's address, so that servers, managers and users all meet through proxies; only
`utuple chaos` itself knows where they really listen.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from benchmarks.chaos import record
from benchmarks.chaos.load.part import Part
from benchmarks.chaos.proxy import Proxy
from benchmarks.chaos.schedule import role_of
from utuple.local.database import Database
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.keeper import Keeper, Say
from utuple.local.layout import HOST, Layout, Role
from utuple.local.layout import Program as Place
from utuple.local.ports import BLOCK
from utuple.local.running import Cluster, Extras
from utuple.local.supervising.reuse import with_server
from utuple.runtime.postgresql.config import PostgresConfig
from utuple.runtime.tasks import Tasks

MANAGERS = 3
BLOCKS = 2
"""Of ports: programs listen in the first, their proxies in the second."""
USERS = ("sensors-1", "audience-1", "reader-1", "reader-2", "devices-1")
USERS_STOP_S = 40.0
"""A verb's limit with its retries, at a cluster that is well."""

SMALL = PostgresConfig(
    max_connections=60, shared_buffers_mb=64, max_wal_size_mb=1024, min_wal_size_mb=80
)
"""Several share a machine, and the load is modest."""

ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}
"""Else every start may compile everything anew, and that would be most of what a recovery takes."""


class Target(Protocol):
    """What faults are done to."""

    def kill(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...
    async def start(self) -> None: ...


class Ground:
    def __init__(
        self,
        path: Path,
        servers: int,
        port: int,
        seed: int,
        rate_per_s: float,
        say: Say,
        *,
        scas: int = 2,
        secure: bool = False,
    ) -> None:
        self.folder = DataFolder(path)
        self.records = self.folder.path / "history"
        self.proxies: dict[str, Proxy] = {}
        self.users: dict[str, Keeper] = {}
        known = Layout(servers, MANAGERS, port + BLOCK, scas=tuple(range(1, scas + 1)))
        extras = Extras(
            options={place.name: _behind_proxy(place) for place in known.programs},
            environment=ENVIRONMENT,
            own_postgres=True,
            postgres=SMALL,
        )
        self._cluster = Cluster(self.folder, ClusterFile(known, secure=secure), say, say, extras)
        self._user_environment = dict(ENVIRONMENT)
        if secure:
            operator = str(self.folder.trust.operator)
            self._user_environment["UTUPLE_CREDENTIALS"] = operator
        self._seed = seed
        self._rate_per_s = rate_per_s
        self._say = say
        self._tasks = Tasks()

    @property
    def known(self) -> Layout:
        """As everybody but us knows it."""
        return self._cluster.layout

    @property
    def real(self) -> Layout:
        return replace(self.known, port=self.known.port - BLOCK)

    @property
    def programs(self) -> dict[str, Keeper]:
        return self._cluster.programs

    @property
    def databases(self) -> dict[str, Database]:
        return self._cluster.databases

    # --- starting ------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.folder.make()
        self.records.mkdir()
        await asyncio.gather(*map(self._open_proxy, self.known.programs))
        await self._cluster.start()
        await self._cluster.grant_operator_everything()

    async def _open_proxy(self, known: Place) -> None:
        proxy = self.proxies[known.name] = Proxy(HOST, known.port, known.port - BLOCK)
        await proxy.open()

    async def add_server(self) -> str:
        """One more, with a PostgreSQL and a proxy of its own. It has no section before a move gives it one."""
        wanted = with_server(self._cluster.wanted, "", "")
        place = wanted.layout.of_role(Role.SERVER)[-1]
        await self._open_proxy(place)
        await self._cluster.add_server(wanted, _behind_proxy(place))
        return place.name

    async def remove_sca(self, name: str) -> None:
        """Its devices go to the others before it ends."""
        await self._cluster.remove_sca(name)

    async def add_sca(self, name: str) -> None:
        """One that was removed joins again, behind the proxy it had."""
        added = await self._cluster.add_sca()
        assert added.name == name, "one leaves at a time, so its number is the first that is free"

    # --- users ---------------------------------------------------------------------------------------

    async def let_users_in(self) -> None:
        for name in USERS:
            life = self._user(name)
            user = Keeper(name, [], self.folder, self._say, self._user_environment, next_life=life)
            self.users[name] = user
            await user.start()
            self._tasks.keep(user.keep, f"keeping {name}")

    def _user(self, name: str) -> Callable[[int], list[str]]:
        def command(life: int) -> list[str]:
            part = Part(
                name,
                life,
                self._seed,
                tuple(self.known.manager_addresses),
                self.real.servers,
                str(record.file_of(self.records, name, life)),
                self._rate_per_s,
            )
            return [sys.executable, "-P", "-m", "benchmarks.chaos.load", part.argument]

        return command

    def tell_users_calm(self) -> None:
        for user in self.users.values():
            user.signal(signal.SIGUSR1)

    async def dismiss_users(self, *roles: str) -> list[str]:
        """Asked to end, and waited for; what went wrong with whom."""
        leaving = [user for name, user in self.users.items() if role_of(name) in roles]
        for user in leaving:
            user.dismiss()
        have_ended = await asyncio.gather(*(user.ended(USERS_STOP_S) for user in leaving))
        return [
            f"{user.name}: exit code {user.exit_code}" if ended else f"{user.name} does not end"
            for user, ended in zip(leaving, have_ended, strict=True)
            if not ended or user.exit_code != 0
        ]

    # --- faults --------------------------------------------------------------------------------------

    def target(self, name: str) -> Target:
        return self.users.get(name) or self._cluster.target(name)

    @property
    def server_names(self) -> list[str]:
        return [name for name in self.programs if role_of(name) == "server"]

    def address_of(self, name: str) -> str:
        """Past the proxy."""
        return next(place.address for place in self.real.programs if place.name == name)

    @property
    def targets(self) -> list[str]:
        """Everything that faults may happen to. What is being added is left alone until it runs."""
        programs = [name for name, program in self.programs.items() if program.lives]
        servers = {name.rpartition("-")[2] for name in programs if role_of(name) == "server"}
        databases = [name for name in self.databases if name.rpartition("-")[2] in servers]
        frail = [name for name in self.users if role_of(name) in ("reader", "sensors")]
        return [*programs, *databases, *frail]

    def logs_with(self, text: bytes) -> list[Path]:
        logs = sorted(self.folder.log("x").parent.glob("*.log"))
        return [log for log in logs if text in log.read_bytes()]

    # --- stopping ------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Nothing is left, whatever state it is in."""
        await self._tasks.close()
        for user in self.users.values():
            user.kill()  # whoever is still there would wait for answers that do not come
        await self._cluster.stop()
        await asyncio.gather(*(proxy.close() for proxy in self.proxies.values()))


def _behind_proxy(known: Place) -> tuple[str, ...]:
    """It listens elsewhere than it says. The last --listen counts."""
    return ("--listen", f"{HOST}:{known.port - BLOCK}", "--advertise", known.address)
