"""The grants of a uTupleServer: in force as soon as they are durable, whoever brought them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from tests.twins.servers import Wires
from utuple.runtime.trust.auditing import Auditor
from utuple.runtime.trust.guard import Guard
from utuple.security.credentials import write_credentials
from utuple.security.folder import AuthorityFolder
from utuple.security.identity import Role
from utuple.security.own import OwnCredentials
from utuple.server.config import ServerConfig
from utuple.server.trusting import secured
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import Transaction
from utuple.store.memory import MemoryStore

CONFIG = ServerConfig("server-1", "127.0.0.1:0", "memory", ("none",))


class SlowStore(MemoryStore):
    """Commits wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def commit(self, transaction: Transaction) -> None:
        self.begun.set()
        await self.go.wait()
        await super().commit(transaction)


async def test_durable_grants_are_in_force_though_who_brought_them_has_gone(tmp_path: Path) -> None:
    folder = AuthorityFolder(tmp_path / "authority")
    folder.create("here")
    path = tmp_path / "server-1.creds"
    write_credentials(path, folder.issue(Role.PROGRAM, "server-1"))
    store, guard = SlowStore(), Guard(OwnCredentials(path), Auditor(None))
    engine = Engine(CONFIG, store, Wires())
    exchange = secured(engine, guard)
    await engine.start()
    hearing = asyncio.create_task(exchange.hear(folder.read().signed))
    await store.begun.wait()
    hearing.cancel()  # as a call is whose caller waits no longer
    with suppress(asyncio.CancelledError):
        await hearing
    assert guard.grants.number == 0
    store.go.set()
    await engine.register(Request())
    assert engine.writer.moves.grants_number == guard.grants.number == 1
    await engine.stop()
