"""The supervisor: starts what the layout names, keeps it alive until told to stop, leaves nothing.

Its children outlive it when it is killed; the next one takes them over (`Keeper.take_over`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from utuple.admin import transport
from utuple.admin.founding import ASK_AGAIN_S
from utuple.cluster.line import ServerInfo
from utuple.errors import UTupleError
from utuple.local import readiness, requests
from utuple.local.folder import ClusterFile, DataFolder, FolderError, Started
from utuple.local.growing import Growing
from utuple.local.keeper import LOOK_S, Keeper, Say
from utuple.local.layout import CREATE, Program, Role, command_of, database_of
from utuple.local.ports import check_free
from utuple.local.processes import end, strays, this_process
from utuple.local.reuse import with_server, without_server
from utuple.runtime.backoff import Backoff
from utuple.runtime.clock import now_us
from utuple.runtime.postgresql.embedded import EmbeddedPostgres, PostgresUnavailable
from utuple.runtime.postgresql.unavailable import last_lines
from utuple.runtime.tasks import Tasks

READY_LIMIT_S = 120.0
"""From the start of the programs. A server reads its templates back first; a cold machine is slow."""

DEATHS_BEFORE_READY = 4
"""A program that dies so often before it ever served has something to say to a person."""


class StartFailed(UTupleError):
    """The cluster did not become ready; the message has the last words of who is to blame."""


class Supervisor:
    def __init__(self, folder: DataFolder, cluster: ClusterFile, say: Say) -> None:
        self._folder = folder
        self._cluster = cluster
        self._say = _where_it_can_be_heard(say)
        self._postgres = None if cluster.databases else EmbeddedPostgres(folder.postgres)
        self._keepers: dict[str, Keeper] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._tasks = Tasks(self._failed)

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        """Returns after an ordered stop. Holds the folder's lock all the while."""
        with self._folder.lock():
            requests.forget_all(self._folder)
            self._folder.note_started("supervisor", Started(this_process()))
            started = asyncio.create_task(self._start())
            stopping = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({started, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if started.done():
                    started.result()
                    self._folder.note_state("ready", "the cluster is ready")
                    on_ready()
                    self._tasks.keep(Growing(self._folder, self, self._say).run, "growing")
                    await stopping
                self._note("stopping", "stopping")
            finally:
                started.cancel()
                stopping.cancel()
                await asyncio.gather(started, stopping, return_exceptions=True)
                await self._stop()

    def _failed(self, name: str, error: BaseException, again_s: float | None) -> None:
        """A full disk, or a bug: what runs must run on."""
        then = "" if again_s is None else f"; trying again in {again_s:g} s"
        self._say(f"{name}: {type(error).__name__}: {error}{then}")

    # --- starting

    async def _start(self) -> None:
        self._note("starting", "looking for what still runs here")
        new = await asyncio.to_thread(self._take_over)
        check_free(new)
        if self._postgres is not None:
            self._note("starting", "starting PostgreSQL")
            await asyncio.to_thread(self._start_postgres, self._postgres)
            self._tasks.keep(partial(self._keep_postgres, self._postgres), "keeping PostgreSQL")
        for program in self._cluster.layout.programs:
            self._keep(program)
            if program.name in self._cluster.new:
                self._tasks.start(self._until_it_serves(program), f"waiting for {program.name}")
        deadline_s = time.monotonic() + READY_LIMIT_S
        if not self._cluster.created:
            self._note("starting", "giving the servers their first table")
            await self._within(deadline_s, self._give_first_table())
        await self._within(deadline_s, self._until_ready())

    def _take_over(self) -> list[Program]:
        """Ends what was started for this folder but is not what we would start. Returns the programs
        that do not run yet."""
        expected = {started.process for started in self._folder.all_started().values()}
        end(process for process in strays(self._folder.path) if process not in expected)
        programs = self._cluster.layout.programs
        names = {program.name for program in programs} | {"supervisor"}
        others = (s for n, s in self._folder.all_started().items() if n not in names)
        end(started.process for started in others)
        return [program for program in programs if self._folder.started(program.name) is None]

    def _start_postgres(self, postgres: EmbeddedPostgres) -> None:
        if postgres.start():
            self._say(f"PostgreSQL started, pid {postgres.pid}")
        for name in self._cluster.layout.server_names:
            postgres.create_database(database_of(name))

    def _keep(self, program: Program) -> None:
        command, environment = self._command(program)
        keeper = Keeper(program.name, command, self._folder, self._say, environment)
        if program.role is Role.SERVER and self._cluster.is_new(program.name):
            keeper.at_first = (CREATE,)
        if keeper.take_over():
            self._say(f"{program.name} still runs, pid {keeper.pid}")
        self._keepers[program.name] = keeper
        self._keeping[program.name] = self._tasks.keep(keeper.keep, f"keeping {program.name}")

    def _command(self, program: Program) -> tuple[list[str], dict[str, str]]:
        """How to start it: the command, and what goes by the environment."""
        database, environment = "", {}
        if program.role is Role.SERVER and self._postgres is not None:
            database = self._postgres.dsn(database_of(program.name))
        elif program.role is Role.SERVER:
            at = self._cluster.layout.server_names.index(program.name)
            environment = {"UTUPLE_DATABASE": self._cluster.databases[at]}
        command = command_of(
            program,
            self._cluster.layout,
            python=sys.executable,
            database=database,
            unsafe=self._cluster.unsafe,
            log=str(self._folder.log(program.name)),
            policy=self._cluster.policy,
            telemetry=(self._cluster.telemetry, self._cluster.telemetry_every_s),
        )
        return command, environment

    async def _give_first_table(self) -> None:
        await readiness.give_first_table(self._cluster.layout)
        self._cluster = self._folder.note_created(self._cluster)
        self._have_stores(self._cluster.layout.of_role(Role.SERVER))

    async def _until_it_serves(self, program: Program) -> None:
        while await readiness.waits_for(program):  # noqa: ASYNC110
            await asyncio.sleep(ASK_AGAIN_S)
        others = tuple(name for name in self._cluster.new if name != program.name)
        self._change(replace(self._cluster, new=others))
        self._have_stores([program])

    def _have_stores(self, servers: Iterable[Program]) -> None:
        """They serve, and never make another store."""
        for server in servers:
            if server.name in self._keepers:
                self._keepers[server.name].at_first = ()

    async def _until_ready(self) -> None:
        while waits := await readiness.not_ready(self._cluster.layout):
            self._note("starting", f"waiting: {waits[-1]}")
            await asyncio.sleep(ASK_AGAIN_S)

    async def _within(self, deadline_s: float, work: Coroutine[object, object, None]) -> None:
        """Do this, unless a program keeps dying or the deadline comes."""
        task = asyncio.create_task(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_S)
                dying = [
                    k for k in self._keepers.values() if k.backoff.deaths >= DEATHS_BEFORE_READY
                ]
                if dying and not task.done():
                    raise StartFailed(self._words_of(dying[0].name, "dies again and again"))
                if time.monotonic() >= deadline_s and not task.done():
                    raise StartFailed(await self._why_not_ready())
            task.result()
        finally:
            task.cancel()

    async def _why_not_ready(self) -> str:
        waits = await readiness.not_ready(self._cluster.layout)
        said = f"not ready after {READY_LIMIT_S:g} s: {'; '.join(waits)}"
        silent = next((n for n in self._keepers if f"{n} does not answer" in waits), None)
        return f"{said}. {self._words_of(silent, 'is silent')}" if silent else said

    def _words_of(self, name: str, what: str) -> str:
        log = self._folder.log(name)
        return f"{name} {what}. The last lines of {log}:\n{last_lines(log)}"

    # --- growing and shrinking

    @property
    def managers(self) -> list[str]:
        return self._cluster.layout.manager_addresses

    @property
    def leaving(self) -> tuple[str, ...]:
        return self._cluster.leaving

    async def add_server(self, name: str, database: str) -> Program:
        """Written down before it is started: once it may have taken over a section, it must come back."""
        cluster = with_server(self._cluster, name, database)
        program = cluster.layout.of_role(Role.SERVER)[-1]
        check_free([program])
        if self._postgres is not None:
            await asyncio.to_thread(self._postgres.create_database, database_of(program.name))
        self._change(cluster)
        self._keep(program)
        self._tasks.start(self._until_it_serves(program), f"waiting for {program.name}")
        return program

    def note_leaving(self, name: str, *, leaves: bool) -> None:
        cluster = self._cluster
        if name not in cluster.layout.server_names:
            raise FolderError(f"{name} is no server of the cluster in {self._folder.path}")
        others = tuple(other for other in cluster.leaving if other != name)
        self._change(replace(cluster, leaving=(*others, name) if leaves else others))

    async def remove_server(self, name: str) -> None:
        """It has left every line: the managers forget it, it does not come back, and it ends."""
        program = self._cluster.layout.program(name)
        if program is None:
            return
        gone = ServerInfo(name, program.address, transport.GONE, now_us())
        await transport.announce_gone(self.managers, gone)
        self._change(without_server(self._cluster, name))
        keeping = self._keeping.pop(name)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await self._keepers.pop(name).stop()
        self._say(f"{name} is stopped")

    def _change(self, cluster: ClusterFile) -> None:
        self._folder.write_cluster(cluster)
        self._cluster = cluster

    # --- keeping PostgreSQL

    async def _keep_postgres(self, postgres: EmbeddedPostgres) -> None:
        backoff = Backoff()
        while True:
            began_s = time.monotonic()
            while postgres.is_running:
                postgres.set_aside_long_log()
                await asyncio.sleep(LOOK_S)
            backoff = backoff.after_death(time.monotonic() - began_s)
            self._say(f"PostgreSQL is gone; starting it again in {backoff.wait_s:g} s")
            await asyncio.sleep(backoff.wait_s)
            try:
                await asyncio.to_thread(postgres.start)
                self._say(f"PostgreSQL started, pid {postgres.pid}")
            except PostgresUnavailable as error:
                self._say(str(error))

    # --- stopping

    async def _stop(self) -> None:
        """Those who ask before those who answer; PostgreSQL last."""
        await self._tasks.close()
        for role in reversed(Role):
            programs = self._cluster.layout.of_role(role)
            keepers = [self._keepers[p.name] for p in programs if p.name in self._keepers]
            await asyncio.gather(*(keeper.stop() for keeper in keepers))
        own = this_process()
        left = [s.process for s in self._folder.all_started().values() if s.process != own]
        await asyncio.to_thread(end, left)  # what a failed start had found and not taken over yet
        if self._postgres is not None:
            await asyncio.to_thread(self._postgres.stop)
        self._folder.forget_run()
        self._say("stopped")

    def _note(self, state: str, said: str) -> None:
        with suppress(OSError):  # a word for who looks on; a full disk must not end what runs
            self._folder.note_state(state, said)


def _where_it_can_be_heard(say: Say) -> Say:
    """What is said goes to a file on a disk that may be full, or to a terminal that may be gone."""

    def said(words: str) -> None:
        with suppress(OSError):
            say(words)

    return said
