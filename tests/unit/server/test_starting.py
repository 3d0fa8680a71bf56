"""A server may be started before its PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.twins.servers import Wires
from tests.twins.virtual_time import in_virtual_time
from utuple.server.__main__ import started
from utuple.server.config import ServerConfig
from utuple.server.writing.engine import Engine
from utuple.store.contract import Recovered, StoreUnavailable
from utuple.store.memory import MemoryStore

CONFIG = ServerConfig("A", "127.0.0.1:0", "memory", ("none",))


class LateStore(MemoryStore):
    """Not there before this instant of the loop's clock."""

    def __init__(self, from_s: float) -> None:
        super().__init__()
        self._from_s = asyncio.get_running_loop().time() + from_s

    async def open(self, name: str, now_us: int) -> Recovered:
        if asyncio.get_running_loop().time() < self._from_s:
            raise StoreUnavailable("PostgreSQL is away")
        return await super().open(name, now_us)


def engine_on(store: MemoryStore, config: ServerConfig = CONFIG) -> Engine:
    return Engine(config, store, Wires())


@in_virtual_time
async def test_a_server_waits_for_its_postgresql_and_says_so_every_few_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = engine_on(LateStore(60.5))
    assert await started(engine, asyncio.Event())
    said = [r.getMessage() for r in caplog.records if "waiting for PostgreSQL" in r.getMessage()]
    assert 10 <= len(said) <= 14
    assert "PostgreSQL is away" in said[0]
    await engine.stop()


@in_virtual_time
async def test_with_a_limit_it_ends_with_the_reason() -> None:
    engine = engine_on(LateStore(60), replace(CONFIG, database_wait_s=5.0))
    with pytest.raises(StoreUnavailable, match="PostgreSQL is away"):
        await started(engine, asyncio.Event())


@in_virtual_time
async def test_while_it_waits_it_can_be_stopped() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(30, stop.set)
    assert not await started(engine_on(LateStore(60)), stop)
