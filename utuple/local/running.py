"""A cluster that runs: its programs and their PostgreSQL as processes of this machine, kept alive until it is stopped.

`utuple up`, the demo, chaos, the benchmarks and tests all run this one. Programs outlive whoever started them when that is
killed; the next one takes them over, if it is given the same folder (`Keeper.take_over`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from utuple.admin.founding import ASK_AGAIN_S
from utuple.admin.trusting import publish
from utuple.errors import UTupleError
from utuple.local import readiness
from utuple.local.capacity import capacity_of
from utuple.local.database import Database
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.keeper import LOOK_S, Keeper, Say
from utuple.local.layout import CREATE, Layout, Program, Role, command_of, database_of
from utuple.local.processes import end, strays, this_process
from utuple.runtime.clock import now_us
from utuple.runtime.postgresql.config import PostgresConfig
from utuple.runtime.postgresql.unavailable import last_lines
from utuple.runtime.tasks import Tasks
from utuple.security.folder import OPERATOR
from utuple.security.grants import ANY_NAME, Action, FamilyPattern, Grant
from utuple.security.identity import Role as SecurityRole
from utuple.security.own import OWN, OwnCredentials

READY_LIMIT_S = 120.0
"""From the start of the programs. A server reads its templates back first; a cold machine is slow."""

RENEW_LOOK_S = 20.0
"""Between two looks at when credentials end."""

DEATHS_BEFORE_READY = 4
"""A program that dies so often before it ever served has something to say to a person."""

SHARED = "postgres"
"""The one PostgreSQL of all servers: its name, and its folder."""

Prepare = Callable[[Mapping[str, str]], Awaitable[None]]


class StartFailed(UTupleError):
    """The cluster did not become ready; the message has the last words of who is to blame."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a harness adds to a cluster; `utuple up` needs none of it."""

    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """More of a program's command line, by its name; the last word counts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    own_postgres: bool = False
    """A PostgreSQL for each server, as in production; else one with a database for each."""
    postgres: PostgresConfig | None = None
    prepare: Prepare | None = None
    """Done with the addresses of the servers' databases, by server, before any program starts."""


class Cluster:
    def __init__(
        self,
        folder: DataFolder,
        wanted: ClusterFile,
        say: Say,
        progress: Say,
        extras: Extras | None = None,
    ) -> None:
        """`say` hears what happens to programs, `progress` what is waited for while it starts."""
        self.folder = folder
        self.wanted = wanted
        self.programs: dict[str, Keeper] = {}
        self.databases: dict[str, Database] = {}
        self._say = say
        self._progress = progress
        self._extras = extras or Extras()
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._tasks = Tasks(self._failed)

    # --- what it is

    @property
    def layout(self) -> Layout:
        return self.wanted.layout

    @property
    def managers(self) -> list[str]:
        """Their addresses: what a program is given to connect to this cluster."""
        return self.layout.manager_addresses

    @property
    def servers(self) -> list[str]:
        return self.layout.server_names

    def address_of(self, name: str) -> str:
        program = self.layout.program(name)
        assert program is not None, name
        return program.address

    def dsn_of(self, server: str) -> str:
        """The address of this server's database."""
        if self.wanted.databases:
            return self.wanted.databases[self.servers.index(server)]
        return self._database_of(server).dsn(database_of(server))

    def log(self, name: str) -> Path:
        return self.folder.log(name)

    # --- accidents, on purpose

    def target(self, name: str) -> Keeper | Database:
        """A program, or a PostgreSQL: it can be killed, frozen, thawed and started again."""
        return self.databases.get(name) or self.programs[name]

    def kill(self, name: str) -> None:
        self.target(name).kill()

    async def revive(self, name: str) -> None:
        """One that was killed on purpose."""
        await self.target(name).start()

    @property
    def deaths(self) -> dict[str, int]:
        """Of programs that ended though nobody wanted it."""
        return {name: keeper.deaths for name, keeper in self.programs.items() if keeper.deaths}

    def last_words_of(self, name: str, what: str) -> str:
        return f"{name} {what}. The last lines of {self.log(name)}:\n{last_lines(self.log(name))}"

    # --- starting

    async def start(self) -> None:
        """It is ready when this returns. Whatever is raised, `stop` is to be called."""
        self._secure()
        if not self.wanted.databases:
            self._progress("starting PostgreSQL")
            await self._start_databases(self.servers)
        if self._extras.prepare is not None:
            await self._extras.prepare({name: self.dsn_of(name) for name in self.servers})
        for program in self.layout.programs:
            self._keep(program)
        deadline_s = time.monotonic() + READY_LIMIT_S
        if not self.wanted.created:
            self._progress("giving the servers their first table")
            await self._within(deadline_s, readiness.give_first_table(self.layout))
            self.change(replace(self.wanted, created=True))
            self._have_stores(self.servers)
        if self.wanted.secure:
            await self._within(deadline_s, self._until_ready(self.layout.without_doors))
            await self.publish_grants()  # doors listen when they are granted
            self._tasks.keep(self._renew, "renewing credentials")
        await self._within(deadline_s, self._until_ready(self.layout))
        for name in self.wanted.new:
            self._watch_new(name)

    def _database_of(self, server: str) -> Database:
        name = f"{SHARED}-{server.rpartition('-')[2]}" if self._extras.own_postgres else SHARED
        if name not in self.databases:
            place = self.folder.postgres.with_name(name)
            self.databases[name] = Database(name, place, self._say, self._extras.postgres)
        return self.databases[name]

    async def _start_databases(self, servers: Sequence[str]) -> None:
        databases = {server: self._database_of(server) for server in servers}
        await asyncio.gather(*(database.start() for database in set(databases.values())))
        for server, database in databases.items():
            await database.create(database_of(server))
            if database.name not in self._keeping:
                keeping = self._tasks.keep(database.keep, f"keeping {database.name}")
                self._keeping[database.name] = keeping

    def _keep(self, program: Program) -> None:
        command, environment = self._command(program)
        keeper = Keeper(program.name, command, self.folder, self._say, environment)
        if program.role is Role.SERVER and self.wanted.is_new(program.name):
            keeper.at_first = (CREATE,)
        if keeper.take_over():
            self._say(f"{program.name} still runs, pid {keeper.pid}")
        self.programs[program.name] = keeper
        self._keeping[program.name] = self._tasks.keep(keeper.keep, f"keeping {program.name}")

    def _command(self, program: Program) -> tuple[list[str], dict[str, str]]:
        """How to start it: the command, and what goes by the environment."""
        database, environment = "", dict(self._extras.environment)
        if program.role is Role.SERVER and self.wanted.databases:
            environment["UTUPLE_DATABASE"] = self.dsn_of(program.name)
        elif program.role is Role.SERVER:
            database = self.dsn_of(program.name)
        command = command_of(
            program,
            self.layout,
            python=sys.executable,
            database=database,
            unsafe=self.wanted.unsafe,
            log=str(self.log(program.name)),
            policy=self.wanted.policy,
            telemetry=(self.wanted.telemetry, self.wanted.telemetry_every_s),
            elastic=self._elastic,
            data=str(self.folder.path),
            credentials=self._credentials_of(program),
            capacity_bytes=capacity_of(program.name, self.wanted.capacity),
            limits=self.wanted.limits,
        )
        return [*command, *self._extras.options.get(program.name, ())], environment

    @property
    def _elastic(self) -> tuple[str, str]:
        folder = self.folder
        return (str(folder.elastic), str(folder.path)) if self.wanted.elastic else ("", "")

    # --- who belongs to it

    def _credentials_of(self, program: Program) -> str:
        return str(self.folder.trust.credentials_of(program.name)) if self.wanted.secure else ""

    def _secure(self) -> None:
        """Its programs have credentials, and this process acts as its operator."""
        if self.wanted.secure:
            self.folder.trust.prepare(self.layout.programs, now_us())
            OWN.set(OwnCredentials(self.folder.trust.operator))

    async def publish_grants(self) -> None:
        """What its authority has signed last, to every program."""
        addresses = [program.address for program in self.layout.without_doors.programs]
        await publish(addresses, self.folder.trust.authority.read().signed)

    async def grant_operator_everything(self) -> None:
        """Whoever runs this one also registers, reads and commands: for demonstrations and harnesses."""
        if self.wanted.secure:
            everything = dict.fromkeys(Action, (FamilyPattern(ANY_NAME, ANY_NAME),))
            grant = Grant(OPERATOR, SecurityRole.OPERATOR, everything)
            self.folder.trust.authority.grant(grant, 1)
            await self.publish_grants()

    async def _renew(self) -> None:
        """For ever: credentials of programs that end before long are replaced; programs notice by themselves."""
        while True:
            await asyncio.sleep(RENEW_LOOK_S)
            for name in self.folder.trust.prepare(self.layout.programs, now_us()):
                self._say(f"credentials of {name} renewed")

    def _have_stores(self, servers: Iterable[str]) -> None:
        """They serve, and never make another store."""
        for name in servers:
            if name in self.programs:
                self.programs[name].at_first = ()

    async def _until_ready(self, layout: Layout) -> None:
        while waits := await readiness.not_ready(layout):
            self._progress(f"waiting: {waits[-1]}")
            await asyncio.sleep(ASK_AGAIN_S)

    async def _within(self, deadline_s: float, work: Coroutine[object, object, None]) -> None:
        """Do this, unless a program keeps dying or the deadline comes."""
        task = asyncio.create_task(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_S)
                if task.done():
                    break
                for keeper in self.programs.values():
                    if keeper.backoff.deaths >= DEATHS_BEFORE_READY:
                        raise StartFailed(self.last_words_of(keeper.name, "dies again and again"))
                if time.monotonic() >= deadline_s:
                    raise StartFailed(await self._why_not_ready())
            task.result()
        finally:
            task.cancel()

    async def _why_not_ready(self) -> str:
        waits = await readiness.not_ready(self.layout)
        said = f"not ready after {READY_LIMIT_S:g} s: {'; '.join(waits)}"
        silent = next((n for n in self.programs if f"{n} does not answer" in waits), None)
        return f"{said}. {self.last_words_of(silent, 'is silent')}" if silent else said

    # --- servers come and go

    async def add_server(self, wanted: ClusterFile, options: Sequence[str] = ()) -> Program:
        """The last of this layout's. It is written down before it is started: once it may have taken over a section, it
        must come back."""
        program = wanted.layout.of_role(Role.SERVER)[-1]
        if not wanted.databases:
            await self._start_databases([program.name])
        self.change(wanted)
        self._secure()
        if options:
            own = {**self._extras.options, program.name: options}
            self._extras = replace(self._extras, options=own)
        self._keep(program)
        self._watch_new(program.name)
        return program

    def _watch_new(self, name: str) -> None:
        program = self.layout.program(name)
        if program is not None:
            self._tasks.start(self._until_it_serves(program), f"waiting for {name}")

    async def _until_it_serves(self, program: Program) -> None:
        while await readiness.waits_for(program):  # noqa: ASYNC110
            await asyncio.sleep(ASK_AGAIN_S)
        others = tuple(name for name in self.wanted.new if name != program.name)
        self.change(replace(self.wanted, new=others))
        self._have_stores([program.name])

    async def add_sca(self) -> Program:
        """One more sCA server: it takes its share of the devices by itself."""
        self.change(replace(self.wanted, layout=self.layout.with_sca()))
        program = self.layout.of_role(Role.SCA)[-1]
        self._secure()
        self._keep(program)
        return program

    async def remove_sca(self, name: str) -> None:
        """Its devices go to the others before it ends."""
        wanted = replace(self.wanted, layout=self.layout.without_sca(name))
        await self.remove_program(wanted, name)

    async def remove_program(self, wanted: ClusterFile, name: str) -> None:
        """It ends, and does not come back."""
        self.change(wanted)
        keeping = self._keeping.pop(name)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await self.programs.pop(name).stop()
        self._say(f"{name} is stopped")

    def change(self, wanted: ClusterFile) -> None:
        self.folder.write_cluster(wanted)
        self.wanted = wanted

    # --- stopping

    async def stop(self) -> None:
        """Those who ask before those who answer; PostgreSQL last. Nothing is left, whatever state it is in."""
        await self._tasks.close()
        for role in reversed(Role):
            names = [program.name for program in self.layout.of_role(role)]
            await asyncio.gather(*(self.programs[n].stop() for n in names if n in self.programs))
        own = this_process()
        left = {started.process for started in self.folder.all_started().values()}
        left |= set(strays(self.folder.path))  # what a failed start had found, or not written down
        await asyncio.to_thread(end, left - {own})
        await asyncio.gather(*(database.stop() for database in self.databases.values()))
        self.folder.forget_run()
        self._say("stopped")

    def _failed(self, name: str, error: BaseException, again_s: float | None) -> None:
        """A full disk, or a bug: what runs must run on."""
        then = "" if again_s is None else f"; trying again in {again_s:g} s"
        self._say(f"{name}: {type(error).__name__}: {error}{then}")
