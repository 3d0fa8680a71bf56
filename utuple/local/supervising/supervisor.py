"""The supervisor of a data folder: runs its cluster until told to stop, carries out what it is asked for meanwhile, and
leaves nothing. What it starts outlives it when it is killed; the next one takes that over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from utuple.admin import transport
from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import LEFT
from utuple.local.folder import ClusterFile, DataFolder, FolderError, Started
from utuple.local.keeper import Say
from utuple.local.layout import Program, Role
from utuple.local.ports import check_free
from utuple.local.processes import end, strays, this_process
from utuple.local.running import Cluster
from utuple.local.supervising import requests
from utuple.local.supervising.growing import Growing
from utuple.local.supervising.reuse import with_server, without_server
from utuple.runtime.clock import now_us
from utuple.runtime.tasks import Tasks


class Supervisor:
    def __init__(self, folder: DataFolder, wanted: ClusterFile, say: Say) -> None:
        self._folder = folder
        self._say = _where_it_can_be_heard(say)
        self._cluster = Cluster(
            folder, wanted, self._say, lambda said: self._note("starting", said)
        )
        self._tasks = Tasks(lambda name, error, _: self._say(f"{name}: {error!r}"))

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
                await self._tasks.close()
                await self._cluster.stop()

    async def _start(self) -> None:
        self._note("starting", "looking for what still runs here")
        check_free(await asyncio.to_thread(self._take_over))
        await self._cluster.start()

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

    # --- growing and shrinking

    @property
    def managers(self) -> list[str]:
        return self._cluster.managers

    @property
    def leaving(self) -> tuple[str, ...]:
        return self._cluster.wanted.leaving

    async def add_server(self, name: str, database: str) -> Program:
        wanted = with_server(self._cluster.wanted, name, database)
        check_free(wanted.layout.of_role(Role.SERVER)[-1:])
        return await self._cluster.add_server(wanted)

    def note_leaving(self, name: str, *, leaves: bool) -> None:
        wanted = self._cluster.wanted
        if name not in wanted.layout.server_names:
            raise FolderError(f"{name} is no server of the cluster in {self._folder.path}")
        others = tuple(other for other in wanted.leaving if other != name)
        self._cluster.change(replace(wanted, leaving=(*others, name) if leaves else others))

    async def remove_server(self, name: str) -> None:
        """It has left every line: the managers forget it, it does not come back, and it ends."""
        program = self._cluster.layout.program(name)
        if program is None:
            return
        gone = ServerInfo(name, program.address, transport.GONE, now_us())
        await transport.announce_gone(self.managers, gone)
        await self._cluster.remove_program(without_server(self._cluster.wanted, name), name)

    async def add_sca(self) -> Program:
        check_free(self._cluster.layout.with_sca().of_role(Role.SCA)[-1:])
        return await self._cluster.add_sca()

    async def remove_sca(self, name: str) -> None:
        """It gives its devices to the others and ends. Should it not have said so itself, because it is down, the managers
        hear it from us."""
        program = self._cluster.layout.program(name)
        await self._cluster.remove_sca(name)
        assert program is not None
        left = ServerInfo(name, program.address, LEFT, now_us())
        await transport.announce_gone(self.managers, left)

    def _note(self, state: str, said: str) -> None:
        with suppress(OSError):  # a word for who looks on; a full disk must not end what runs
            self._folder.note_state(state, said)


def _where_it_can_be_heard(say: Say) -> Say:
    """What is said goes to a file on a disk that may be full, or to a terminal that may be gone."""

    def said(words: str) -> None:
        with suppress(OSError):
            say(words)

    return said
