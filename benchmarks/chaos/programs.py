"""The processes of a chaos run: each can be killed, stopped and started again, and is kept alive otherwise."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from typing import Protocol

from utuple.local.folder import DataFolder
from utuple.local.keeper import LOOK_S, Say, until
from utuple.local.processes import Process, spawn, start_of
from utuple.runtime.postgresql.embedded import EmbeddedPostgres, PostgresConfig, PostgresUnavailable
from utuple.runtime.postgresql.process import processes_on

AGAIN_S = 0.3
"""Before a program that ended by itself is started again."""

SMALL = PostgresConfig(
    max_connections=60, shared_buffers_mb=64, max_wal_size_mb=1024, min_wal_size_mb=80
)
"""Several share a machine, and the load is modest."""

ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}
"""Else every start may compile everything anew, and that would be most of what a recovery takes."""

Command = Callable[[int], Sequence[str]]
"""The command line of a program's next life, counted from 1."""


class Target(Protocol):
    """What faults are done to."""

    name: str

    def kill(self) -> None:
        """With -9; it stays dead until it is started."""

    def freeze(self) -> None: ...
    def thaw(self) -> None: ...
    async def start(self) -> None: ...


class Program:
    def __init__(self, name: str, command: Command, folder: DataFolder, say: Say) -> None:
        self.name = name
        self.lives = 0
        self.deaths = 0
        """Those that nobody ordered."""
        self._command = command
        self._folder = folder
        self._say = say
        self._child: Popen[bytes] | None = None
        self._process: Process | None = None
        self._held = True
        """It is meant to be down."""

    @property
    def process(self) -> Process | None:
        return self._process if self._runs() else None

    async def start(self) -> None:
        if self._runs():
            return
        self.lives += 1
        command = list(self._command(self.lives))
        log, path = self._folder.log(self.name), self._folder.path
        child = spawn(command, log, path, ENVIRONMENT)
        self._child = child
        self._process = Process(child.pid, start_of(child.pid) or "")
        self._held = False

    def kill(self) -> None:
        self._held = True
        self._signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()  # at once: a killed process has no say in it

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def tell(self, number: signal.Signals) -> None:
        self._signal(number)

    def dismiss(self) -> None:
        """Asked to end in order; it is not started again."""
        self._held = True
        self._signal(signal.SIGTERM)

    async def ended(self, limit_s: float) -> int | None:
        """Its exit code; None if it is still there."""
        with suppress(TimeoutError):
            await asyncio.wait_for(until(lambda: not self._runs()), limit_s)
        return self._child.returncode if self._child is not None else None

    async def keep(self) -> None:
        """Start it again when it ends though nobody ordered that. Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._held or self._runs():
                continue
            assert self._child is not None
            self.deaths += 1
            self._say(f"{self.name} ended by itself with exit code {self._child.returncode}")
            await asyncio.sleep(AGAIN_S)
            if not self._held:
                await self.start()

    def _runs(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None and self._runs():
            self._child.send_signal(number)


class Database:
    """The PostgreSQL of one server."""

    def __init__(self, name: str, folder: Path, say: Say) -> None:
        self.name = name
        self._say = say
        self._postgres = EmbeddedPostgres(folder, SMALL)
        self._data = self._postgres.folder / "data"
        self._held = True

    async def start(self) -> None:
        await asyncio.to_thread(self._postgres.start)
        self._held = False

    def create(self, database: str) -> None:
        self._postgres.create_database(database)

    def address(self, database: str) -> str:
        return self._postgres.dsn(database)

    def kill(self) -> None:
        """The postmaster; its backends find out for themselves, as after a crash."""
        self._held = True
        pid = self._postgres.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def stop(self) -> None:
        self._held = True
        self._postgres.stop()

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(AGAIN_S)
            if self._held or self._postgres.is_running:
                continue
            self._say(f"{self.name} ended by itself")
            try:
                await self.start()
            except PostgresUnavailable as error:
                self._say(str(error))

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in processes_on(self._data):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
