"""The ground chaos happens on: a cluster with a PostgreSQL for each server, a proxy before each program, and the
users' processes. Everything lies in one temporary folder and ends with it.

Programs announce their proxy's address, so that servers, managers and users all meet through proxies; only
`utuple chaos` itself knows where they really listen.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.chaos import record
from benchmarks.chaos.load.part import Part
from benchmarks.chaos.programs import Command, Database, Program, Target
from benchmarks.chaos.proxy import Proxy
from benchmarks.chaos.schedule import role_of
from utuple.admin.founding import ASK_AGAIN_S
from utuple.local import readiness
from utuple.local.folder import DataFolder
from utuple.local.keeper import Say
from utuple.local.layout import CREATE, HOST, Layout, Role, command_of, database_of
from utuple.local.layout import Program as Place
from utuple.local.ports import free_base_port
from utuple.local.processes import end, strays
from utuple.local.supervisor import StartFailed

MANAGERS = 3
PROXIES = 30
"""A proxy's port lies so far above its program's."""
FIRST_PORT, LAST_PORT, STEP = 10_000, 32_000, 60
"""Below the ports that systems give away by themselves."""
READY_LIMIT_S = 120.0
USERS = ("sensors-1", "audience-1", "reader-1", "reader-2", "devices-1")
USERS_STOP_S = 40.0
"""A verb's limit with its retries, at a cluster that is well."""


class Ground:
    def __init__(
        self, path: Path, servers: int, bases: Iterable[int], seed: int, rate_per_s: float, say: Say
    ) -> None:
        self.folder = DataFolder(path)
        self.records = self.folder.path / "history"
        self.programs: dict[str, Program] = {}
        self.databases: dict[str, Database] = {}
        self.proxies: dict[str, Proxy] = {}
        self.users: dict[str, Program] = {}
        port = free_base_port(range(STEP), bases)
        self.real = Layout(servers, MANAGERS, port)
        self.known = Layout(servers, MANAGERS, port + PROXIES)
        """As everybody but us knows it."""
        self._seed = seed
        self._rate_per_s = rate_per_s
        self._say = say
        self._keeping: list[asyncio.Task[None]] = []

    # --- starting ------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.folder.make()
        self.records.mkdir()
        places = list(zip(self.real.programs, self.known.programs, strict=True))
        for real, known in places:
            self.proxies[real.name] = Proxy(HOST, known.port, real.port)
        await asyncio.gather(*(proxy.open() for proxy in self.proxies.values()))
        servers = self.real.of_role(Role.SERVER)
        await asyncio.gather(*(self._start_database(server) for server in servers))
        for real, known in places:
            self._add_program(real, known)
        kept: list[Program | Database] = [*self.databases.values(), *self.programs.values()]
        for one in kept:
            await self._start_and_keep(one)
        try:
            async with asyncio.timeout(READY_LIMIT_S):
                await readiness.give_first_table(self.known)
                await self._until_ready()
        except TimeoutError:
            waits = "; ".join(await readiness.not_ready(self.known))
            raise StartFailed(f"not ready after {READY_LIMIT_S:g} s: {waits}") from None

    async def _start_and_keep(self, one: Program | Database) -> None:
        await one.start()
        self._keeping.append(asyncio.create_task(one.keep()))

    async def add_server(self) -> str:
        """One more, with a PostgreSQL and a proxy of its own. It has no section before a move gives it one."""
        real, known = self.real.with_server(), self.known.with_server()
        place, shown = real.of_role(Role.SERVER)[-1], known.of_role(Role.SERVER)[-1]
        database = await self._start_database(place)
        self.proxies[place.name] = Proxy(HOST, shown.port, place.port)
        await self.proxies[place.name].open()
        self.real, self.known = real, known
        self._add_program(place, shown)
        await self._start_and_keep(database)
        await self._start_and_keep(self.programs[place.name])
        return place.name

    async def _until_ready(self) -> None:
        waits = await readiness.not_ready(self.known)
        while waits:
            await asyncio.sleep(ASK_AGAIN_S)
            waits = await readiness.not_ready(self.known)

    async def _start_database(self, server: Place) -> Database:
        name = f"postgres-{server.name.rpartition('-')[2]}"
        database = Database(name, self.folder.path / name, self._say)
        self.databases[name] = database
        await database.start()
        await asyncio.to_thread(database.create, database_of(server.name))
        return database

    def _add_program(self, real: Place, known: Place) -> None:
        address = ""
        if real.role is Role.SERVER:
            database = self.databases[f"postgres-{real.name.rpartition('-')[2]}"]
            address = database.address(database_of(real.name))
        command = command_of(known, self.known, python=sys.executable, database=address)
        command += [CREATE] if real.role is Role.SERVER else []
        # The last --listen counts.
        command += ["--listen", real.address, "--advertise", known.address]
        self.programs[real.name] = self._program(real.name, command)

    def _program(self, name: str, command: list[str]) -> Program:
        return Program(name, lambda _: command, self.folder, self._say)

    # --- users ---------------------------------------------------------------------------------------

    async def let_users_in(self) -> None:
        for name in USERS:
            user = Program(name, self._user(name), self.folder, self._say)
            self.users[name] = user
            await user.start()
            self._keeping.append(asyncio.create_task(user.keep()))

    def _user(self, name: str) -> Command:
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
            user.tell(signal.SIGUSR1)

    async def dismiss_users(self, *roles: str) -> list[str]:
        """Asked to end, and waited for; what went wrong with whom."""
        leaving = [user for name, user in self.users.items() if role_of(name) in roles]
        for user in leaving:
            user.dismiss()
        codes = await asyncio.gather(*(user.ended(USERS_STOP_S) for user in leaving))
        return [
            f"{user.name} does not end" if code is None else f"{user.name}: exit code {code}"
            for user, code in zip(leaving, codes, strict=True)
            if code != 0
        ]

    # --- faults --------------------------------------------------------------------------------------

    def target(self, name: str) -> Target:
        return self.databases.get(name) or self.programs.get(name) or self.users[name]

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
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        for user in self.users.values():
            user.kill()  # whoever is still there would wait for answers that do not come
        for program in self.programs.values():
            program.thaw()
        for database in self.databases.values():
            database.thaw()
        own = [program.process for program in self.programs.values()]
        await asyncio.to_thread(end, [process for process in own if process is not None])
        await asyncio.gather(*(proxy.close() for proxy in self.proxies.values()))
        await asyncio.to_thread(end, strays(self.folder.path))
        databases = self.databases.values()
        await asyncio.gather(*(asyncio.to_thread(database.stop) for database in databases))
