"""The supervisor: starts what the layout names, keeps it alive until told to stop, leaves nothing.

Its children outlive it when it is killed; the next one takes them over (`Keeper.take_over`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine

from utuple.cli.local import readiness
from utuple.cli.local.backoff import Backoff
from utuple.cli.local.folder import ClusterFile, DataFolder, Started
from utuple.cli.local.keeper import LOOK_S, Keeper, Say, until
from utuple.cli.local.layout import Program, Role, command_of, database_of
from utuple.cli.local.ports import check_free
from utuple.cli.local.processes import end, strays, this_process
from utuple.errors import UTupleError
from utuple.runtime.postgres import EmbeddedPostgres, PostgresUnavailable
from utuple.runtime.postgres_unavailable import last_lines

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
        self._say = say
        self._postgres = None if cluster.databases else EmbeddedPostgres(folder.postgres)
        self._keepers: dict[str, Keeper] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        """Returns after an ordered stop. Holds the folder's lock all the while."""
        with self._folder.lock():
            self._folder.note_started("supervisor", Started(this_process()))
            started = asyncio.create_task(self._start())
            stopping = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait({started, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if started.done():
                    started.result()
                    self._note("ready", "the cluster is ready")
                    on_ready()
                    await stopping
                self._note("stopping", "stopping")
            finally:
                started.cancel()
                stopping.cancel()
                await asyncio.gather(started, stopping, return_exceptions=True)
                await self._stop()

    # --- starting

    async def _start(self) -> None:
        self._note("starting", "looking for what still runs here")
        new = await asyncio.to_thread(self._take_over)
        check_free(new)
        if self._postgres is not None:
            self._note("starting", "starting PostgreSQL")
            await asyncio.to_thread(self._start_postgres, self._postgres)
            self._tasks.append(asyncio.create_task(self._keep_postgres(self._postgres)))
        self._make_keepers()
        self._tasks += [asyncio.create_task(keeper.keep()) for keeper in self._keepers.values()]
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

    def _make_keepers(self) -> None:
        for program in self._cluster.layout.programs:
            command, environment = self._command(program)
            keeper = Keeper(program.name, command, self._folder, self._say, environment)
            if keeper.take_over():
                self._say(f"{program.name} still runs, pid {keeper.pid}")
            self._keepers[program.name] = keeper

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
        )
        return command, environment

    async def _give_first_table(self) -> None:
        await readiness.give_first_table(self._cluster.layout)
        self._folder.note_created(self._cluster)

    async def _until_ready(self) -> None:
        while waits := await readiness.not_ready(self._cluster.layout):
            self._note("starting", f"waiting: {waits[-1]}")
            await asyncio.sleep(readiness.ASK_AGAIN_S)

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

    # --- keeping PostgreSQL

    async def _keep_postgres(self, postgres: EmbeddedPostgres) -> None:
        backoff = Backoff()
        while True:
            began_s = time.monotonic()
            await until(lambda: not postgres.is_running)
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
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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
        self._folder.note_state(state, said)
