"""Losing a store's connection to PostgreSQL at the worst moment, on purpose: by a proxy between the two, or
by ending a backend that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import psycopg

Beside = psycopg.AsyncConnection[tuple[object, ...]]
"""Another connection to the same database, which can be in the way."""

_SOCKET = ".s.PGSQL.5432"
_READ_BYTES = 1 << 16


class Cut(Enum):
    NEVER = "never"
    BEFORE = "what holds the mark is lost on its way"
    AFTER = "what holds the mark arrives, and its answer is lost"


@dataclass
class Proxy:
    """Passes everything on until a message holds `mark`; then, once, does what `cut` says."""

    folder: Path
    server: Path
    mark: bytes = b""
    cut: Cut = Cut.NEVER
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(
        self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter
    ) -> None:
        server_in, server_out = await asyncio.open_unix_connection(str(self.server / _SOCKET))
        answering = asyncio.create_task(self._pass_on(server_in, client_out))
        try:
            while content := await client_in.read(_READ_BYTES):
                met = self.mark in content and self.cut is not Cut.NEVER
                if met and self.cut is Cut.AFTER:
                    answering.cancel()
                    await asyncio.wait([answering])
                if not met or self.cut is Cut.AFTER:
                    server_out.write(content)
                    await server_out.drain()
                if met:
                    if self.cut is Cut.AFTER:
                        await server_in.read(1)  # PostgreSQL has answered, so it is done
                    self.cut = Cut.NEVER
                    break
        finally:
            answering.cancel()
            for side in (client_out, server_out):
                side.close()

    @staticmethod
    async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while content := await source.read(_READ_BYTES):
                target.write(content)
                await target.drain()
        target.close()


@asynccontextmanager
async def proxied(folder: Path, server: Path) -> AsyncIterator[Proxy]:
    """A proxy whose unix socket lies in `folder`, before the PostgreSQL whose socket is in `server`."""
    proxy = Proxy(folder, server)
    listening = await asyncio.start_unix_server(proxy.serve, str(folder / _SOCKET))
    try:
        yield proxy
    finally:
        listening.close()


async def waiting_backend(beside: Beside) -> int:
    """The writer's backend, once it waits for a lock that we hold."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'utuple-server %' "
        "AND wait_event_type = 'Lock'"
    )
    while True:
        await beside.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees it once
        found = await (await beside.execute(query)).fetchone()
        if found is not None:
            return int(str(found[0]))
        await asyncio.sleep(0)
