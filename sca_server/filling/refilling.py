"""Keeping `refill` up to date: the table from any manager, the CFs of every server in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from sca_server import transport
from sca_server.config import Config
from sca_server.core import Core
from sca_server.filling.refill import THE_TABLE, Refill, Refills
from sca_server.sharing.meeting import Sharing
from utuple.cluster.line import NO_TABLE, Line, ServerInfo
from utuple.cluster.shares import Shares
from utuple.errors import Unavailable, UTupleError
from utuple.model.columns import Columns
from utuple.runtime import clock
from utuple.runtime.logs import Log

_log = Log("sca_server.filling.refilling")


class Refilling:
    def __init__(
        self,
        config: Config,
        core: Core,
        refills: Refills,
        sharing: Sharing,
        managers: Callable[[], Iterable[str]],
    ) -> None:
        """`managers` gives the addresses known at the time."""
        self._config = config
        self._managers = managers
        self._core = core
        self._refills = refills
        self._sharing = sharing
        self._at_once = asyncio.Semaphore(config.max_readings)
        self._said: dict[str, str] = {}

    async def run(self) -> None:
        """For ever: a server that is new in the table is read when it appears. A bug in a reading ends
        it all, rather than leave its keys unserved in silence."""
        async with asyncio.TaskGroup() as readings:
            while True:
                self._sharing.read_again.clear()
                await self._hear_table()
                refill = self._refills.reading
                tenure = self._core.tenure
                # What is registered with another sCA server while we do not agree whose it is would be missed.
                may_read = tenure.has_agreed and tenure.has_share
                for server in refill.due(clock.monotonic_s()) if may_read else ():
                    refill.begin(server.name)
                    readings.create_task(self._read(server, refill, tenure.shares))
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause_s()):
                        await self._sharing.read_again.wait()

    def _pause_s(self) -> float:
        """While something is missing, as often as a first retry; else at leisure."""
        if self._refills.reading.is_complete:
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
            self._refills.hear(lines, servers)
            self._sharing.hear(servers)
            if THE_TABLE not in self._refills.reading.waiting_for:
                return
            if not lines:
                self._warn("waiting", manager, Unavailable(NO_TABLE))

    async def _read(self, server: ServerInfo, refill: Refill, shares: Shares) -> None:
        """What is ours by these shares. If they change meanwhile so that more becomes ours, all is read anew
        (`Refills.again`); if less, more than enough is read."""
        async with self._at_once:
            try:
                before, after, rows = await self._read_all(server, shares)
            except UTupleError as error:
                refill.failed(server.name, clock.monotonic_s())
                self._warn("server not read", server.name, error)
                return
        self._said.pop(server.name, None)
        counts = refill.end(server.name, before, after, clock.monotonic_s())
        phrase = "server read" if counts else "server moved while it was read"
        _log.info(phrase, server=server.name, devices=rows, known=len(self._core.index))
        if refill is self._refills.reading and refill.is_complete:
            _log.info("serving", devices=len(self._core.index))
            self._sharing.progress()

    async def _read_all(
        self, server: ServerInfo, shares: Shares
    ) -> tuple[Sequence[Line], Sequence[Line], int]:
        rows = 0
        async with transport.calls_to(server, self._config.read_idle_s) as calls:
            before = await calls.lines()
            async for columns in calls.devices(shares, self._config.name):
                await self._fill(columns, server)
                rows += len(columns)
            return before, await calls.lines(), rows

    async def _fill(self, columns: Columns, server: ServerInfo) -> None:
        step = self._config.slice_rows
        for start in range(0, len(columns), step):
            rows = range(start, min(start + step, len(columns)))
            self._core.make_room(columns, rows)
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
