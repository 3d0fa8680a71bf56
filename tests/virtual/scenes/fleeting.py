"""Events of lifetime 0, and servers that are killed right after.

They reach who is connected, and the stores have no part in it. What is registered at the restarted servers must not be
taken for what was received before: a reader that was cut off meanwhile, and comes back when as much was stored as had
passed by, gets all of it (law 2).
"""

from __future__ import annotations

import asyncio

from tests.virtual.coverage import FLEETING_EVENT
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.waiting import until
from utuple.model.utuple import Family, datetime_of

PASSING, STORED = "passing", "kept"
"""Addresses that are nobody else's, as in `newcomers`."""
_COUNT = 8
"""Of each: with so many, every server that is on has some."""
_DEAD_S = 0.5
_SOON_S = 8.0
"""Deliveries without a fault come by then."""
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""


async def fleeting(cluster: Cluster, reader: Client, other: Client, family: Family) -> None:
    world, space, life = cluster.world, reader.space, other.process.life
    assert space is not None and other.space is not None and life is not None
    asked_us, label = world.now_us, "seen passing"
    watch = await space.watch(**family._asdict(), since=datetime_of(asked_us)).open()
    world.history.watch_opened(label, watch._utuple, asked_us, world.now_us)
    taking = asyncio.create_task(reader._take(watch, label, 0.0))
    await asyncio.sleep(_SOON_S)
    await world.loop.start(life, _emit(cluster, other, family, PASSING, 0.0))
    passing, came = world.sent_from(PASSING), world.history.labels[label]
    await until(lambda: passing <= came.ids, _SOON_S)
    if missing := len(passing - came.ids):
        world.bug(f"a connected reader misses {missing} of {_COUNT} events of lifetime 0")
    else:
        world.count(FLEETING_EVENT)
    servers, network = list(cluster.servers), cluster.network
    network.block([reader.process.name], servers, both=True)
    for server in servers:
        cluster.crash(server, _DEAD_S)
    await asyncio.sleep(_DEAD_S)
    await world.loop.start(life, _emit(cluster, other, family, STORED, 3600.0))
    network.unblock([reader.process.name], servers, both=True)
    stored = world.sent_from(STORED)
    await until(lambda: stored <= came.ids, _BACK_S)
    if missing := len(stored - came.ids):
        world.bug(f"after events of lifetime 0 a reader misses {missing} of {_COUNT} stored ones")
    world.history.watch_closed(label, world.now_us)
    await watch.close()
    await taking


async def _emit(
    cluster: Cluster, client: Client, family: Family, address: str, lifetime_s: float
) -> None:
    assert client.space is not None
    for _ in range(_COUNT):
        event = {
            **family._asdict(),
            "address": address,
            "position": None,
            "data": {"kg": 1},
            "time": datetime_of(cluster.world.now_us),
            "lifetime_s": lifetime_s,
        }
        if not await client.emit(client.space, Emission(0.0, (event,), many=False)):
            cluster.world.bug(f"an event is emitted in vain by {address}, though all is healed")
