"""Keeping `refill` up to date: the table from any manager, the CFs of every server in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from sca_server import transport
from sca_server.config import Config
from sca_server.core import Core
from sca_server.refill import THE_TABLE, Refill
from utuple.cluster.line import NO_TABLE, Line, ServerInfo
from utuple.errors import Unavailable, UTupleError
from utuple.model.columns import Columns
from utuple.runtime import clock
from utuple.runtime.logs import Log

_log = Log("sca_server.refilling")


class Refilling:
    def __init__(
        self, config: Config, core: Core, refill: Refill, managers: Callable[[], Iterable[str]]
    ) -> None:
        """`managers` gives the addresses known at the time."""
        self._config = config
        self._managers = managers
        self._core = core
        self._refill = refill
        self._at_once = asyncio.Semaphore(config.max_readings)
        self._said: dict[str, str] = {}

    async def run(self) -> None:
        """For ever: a server that is new in the table is read when it appears. A bug in a reading ends
        it all, rather than leave its keys unserved in silence."""
        async with asyncio.TaskGroup() as readings:
            while True:
                await self._hear_table()
                for server in self._refill.due(clock.monotonic_s()):
                    self._refill.begin(server.name)
                    readings.create_task(self._read(server))
                await asyncio.sleep(self._pause_s())

    def _pause_s(self) -> float:
        """While something is missing, as often as a first retry; else at leisure."""
        if self._refill.is_complete:
            return self._config.table_every_s
        return min(self._config.first_retry_s, self._config.table_every_s)

    async def _hear_table(self) -> None:
        for manager in self._managers():
            try:
                lines, servers = await transport.fetch_table(manager, self._config.call_limit_s)
            except UTupleError as error:
                self._warn("no table from a manager", manager, error)
                continue
            if lines:
                self._said.pop(manager, None)
            self._refill.hear(lines, servers)
            if THE_TABLE not in self._refill.waiting_for:
                return
            if not lines:
                self._warn("waiting", manager, Unavailable(NO_TABLE))

    async def _read(self, server: ServerInfo) -> None:
        async with self._at_once:
            try:
                before, after, rows = await self._read_all(server)
            except UTupleError as error:
                self._refill.failed(server.name, clock.monotonic_s())
                self._warn("server not read", server.name, error)
                return
        self._said.pop(server.name, None)
        counts = self._refill.end(server.name, before, after, clock.monotonic_s())
        phrase = "server read" if counts else "server moved while it was read"
        _log.info(phrase, server=server.name, devices=rows, known=len(self._core.index))
        if self._refill.is_complete:
            _log.info("serving", devices=len(self._core.index))

    async def _read_all(self, server: ServerInfo) -> tuple[Sequence[Line], Sequence[Line], int]:
        rows = 0
        async with transport.calls_to(server, self._config.read_idle_s) as calls:
            before = await calls.lines()
            async for columns in calls.devices():
                await self._fill(columns, server)
                rows += len(columns)
            return before, await calls.lines(), rows

    async def _fill(self, columns: Columns, server: ServerInfo) -> None:
        self._core.index.make_room(columns.each_id())
        step = self._config.slice_rows
        for start in range(0, len(columns), step):
            rows = range(start, min(start + step, len(columns)))
            for row, error in self._core.fill(columns, rows, clock.now_us()):
                _log.error(
                    "CF not taken", server=server.name, id=columns.id_at(row).hex(), reason=error
                )
            await asyncio.sleep(0)  # commands go on between slices

    def _warn(self, phrase: str, who: str, error: UTupleError) -> None:
        """Once, not at every attempt."""
        if self._said.get(who) != str(error):
            self._said[who] = str(error)
            _log.warning(phrase, who=who, reason=error)
