"""Somebody else cancels the EF of a reader that is connected, as `utuple.testing` does between tests. The reader has no part in that:
it hears of it, registers the EF again, and gets what comes afterwards.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.virtual.coverage import CANCELLED_ELSEWHERE
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from utuple.model.utuple import Family, datetime_of
from utuple.server.writing.request import Request

_ADDRESS = "elsewhere"
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""


async def cancelled_elsewhere(
    cluster: Cluster, client: Client, other: Client, family: Family
) -> None:
    world, space = cluster.world, client.space
    assert space is not None and other.space is not None
    async with space.watch(**family._asdict(), address=_ADDRESS) as watch:
        for name in cluster.servers:
            await _cancel(cluster, name, watch._utuple.id, family)
        event: dict[str, Any] = {**family._asdict(), "address": _ADDRESS, "position": None}
        event |= {"data": {"kg": 5}, "time": datetime_of(world.now_us), "lifetime_s": 3600.0}
        if not await other.emit(other.space, Emission(0.0, (event,), many=False)):
            world.bug("an event is emitted in vain, though all is healed")
        if not await watch.take(1, timeout_s=_BACK_S):
            world.bug("a connected reader whose EF was cancelled by another gets nothing any more")
        world.count(CANCELLED_ELSEWHERE)


async def _cancel(cluster: Cluster, name: str, formal: bytes, family: Family) -> None:
    life, engine = cluster.processes[name].life, cluster.engine(name)
    assert life is not None
    epochs = {family: engine.writer.lines.epoch_of(family)}
    request = Request(cancels=[(0, formal, family)], epochs=epochs)
    await cluster.world.loop.start(life, engine.register(request))
    await asyncio.sleep(0)
