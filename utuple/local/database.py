"""Keeps one embedded PostgreSQL alive, like `keeper` a program. Its files are the folder's, and it outlives who started it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from utuple.local.keeper import LOOK_S, Say
from utuple.runtime.backoff import Backoff
from utuple.runtime.postgresql.embedded import EmbeddedPostgres, PostgresConfig, PostgresUnavailable
from utuple.runtime.postgresql.process import processes_on


class Database:
    def __init__(
        self, name: str, folder: Path, say: Say, config: PostgresConfig | None = None
    ) -> None:
        self.name = name
        self._say = say
        self._postgres = EmbeddedPostgres(folder, config)
        self._data = self._postgres.folder / "data"
        self._is_held = False
        """It is meant to be down."""
        self._at_work: set[asyncio.Task[object]] = set()

    @property
    def pid(self) -> int | None:
        return self._postgres.pid

    def dsn(self, database: str) -> str:
        return self._postgres.dsn(database)

    async def start(self) -> None:
        self._is_held = False
        if await self._in_thread(self._postgres.start):
            self._say(f"PostgreSQL started, pid {self.pid}")

    async def create(self, database: str) -> None:
        await self._in_thread(partial(self._postgres.create_database, database))

    async def keep(self) -> None:
        """Until cancelled."""
        backoff = Backoff()
        while True:
            began_s = time.monotonic()
            while not self._is_missed():
                self._postgres.set_aside_long_log()
                await asyncio.sleep(LOOK_S)
            backoff = backoff.after_death(time.monotonic() - began_s)
            self._say(f"PostgreSQL is gone; starting it again in {backoff.wait_s:g} s")
            await asyncio.sleep(backoff.wait_s)
            try:
                if self._is_missed():
                    await self.start()
            except PostgresUnavailable as error:
                self._say(str(error))

    def _is_missed(self) -> bool:
        return not (self._is_held or self._postgres.is_running)

    def kill(self) -> None:
        """The postmaster, with -9; its backends find out for themselves, as after a crash. It stays dead until it is
        started."""
        self._is_held = True
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    async def stop(self) -> None:
        self._is_held = True
        self.thaw()
        await asyncio.gather(*self._at_work, return_exceptions=True)
        await asyncio.to_thread(self._postgres.stop)

    async def _in_thread(self, work: Callable[[], bool]) -> bool:
        """A thread cannot be interrupted. When whoever waits for it is, it goes on, and `stop` waits for it: else
        PostgreSQL could be started after it was stopped."""
        task = asyncio.create_task(asyncio.to_thread(work))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        return await asyncio.shield(task)

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in processes_on(self._data):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
