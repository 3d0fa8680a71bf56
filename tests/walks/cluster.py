"""A whole cluster as tasks of this process: real gRPC on loopback, real PostgreSQL, the programs' own `serve`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import assignment_manager.__main__ as manager
import sca_server.__main__ as sca
import utuple.server.__main__ as server
from tests.embedded import running_postgres
from tests.system.cluster import free_port
from utuple.admin import transport
from utuple.cluster.line import ServerInfo, first_table

SERVERS = 4
"""As many lines: each help takes one."""
HOST = "127.0.0.1"


@asynccontextmanager
async def running() -> AsyncIterator[tuple[str, dict[str, str]]]:
    """The manager's address, and the servers' by name."""
    stop = asyncio.Event()
    port = free_port()
    at = f"{HOST}:{port}"
    addresses = {f"server-{n}": f"{HOST}:{port + n}" for n in range(1, SERVERS + 1)}
    with running_postgres() as postgres:
        programs = [
            manager.serve(manager.config_from(["--name", "manager-1", "--listen", at]), stop),
            sca.serve(
                sca.config_from(
                    ["--name", "sca-1", "--listen", f"{HOST}:{port + 9}", "--managers", at]
                ),
                stop,
            ),
        ]
        for name, address in addresses.items():
            postgres.create_database(name)
            options = ["--name", name, "--listen", address, "--managers", at, "--create"]
            given = server.config_from([*options, "--database", postgres.dsn(name)])
            programs.append(server.serve(given, stop))
        tasks = [asyncio.create_task(program) for program in programs]
        try:
            await _found(at, addresses)
            yield at, addresses
        finally:
            stop.set()
            await asyncio.gather(*tasks)


async def _found(at: str, addresses: dict[str, str]) -> None:
    lines = first_table(list(addresses))
    infos = [ServerInfo(name, address) for name, address in addresses.items()]
    for address in addresses.values():
        await _until(partial(transport.adopt, address, lines, infos))
    await _until(partial(_is_whole, at))


async def _is_whole(at: str) -> bool:
    table = await transport.table(at)
    return table is not None and table.whole


async def _until(is_so: Callable[[], Awaitable[object]]) -> None:
    """Waits by asking."""
    while True:
        if await is_so():
            return
        await asyncio.sleep(0.05)
