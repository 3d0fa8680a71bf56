"""A reader whose lifetime is over when it comes back, while events are on their way into the stores.

Its EF is not dropped yet, so it may go on with it; but what is just being committed was matched without it. Those events
live on, so the reader gets them like all others (law 2): they are for it to find in the store.
"""

from __future__ import annotations

import asyncio

from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.waiting import until
from utuple.model.utuple import Family, datetime_of

ADDRESS = "passed by"
"""Nobody else's, as in `newcomers`."""
LIFETIME_S = 0.1
_AWAY_S = 0.5
_ON_S = 2.0
"""For so long after it could come back events are sent: it is back by then."""
_COMMIT_S = 0.6
"""What a statement takes at most: at any time some event is being committed."""
_AGAIN, _AGAIN_S = 5, 0.15
"""It comes more than once while the same events are being committed: its streams break so often, and so soon one after the other."""
_SENDERS = 4
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""


async def passed_by(cluster: Cluster, reader: Client, other: Client, family: Family) -> None:
    world, space, life = cluster.world, reader.space, other.process.life
    assert space is not None and other.space is not None and life is not None
    asked_us, label = world.now_us, "over"
    watch = await space.watch(
        **family._asdict(), since=datetime_of(asked_us), reader=label, lifetime_s=LIFETIME_S
    ).open()
    world.history.watch_opened(label, watch._utuple, asked_us, world.now_us)
    taking = asyncio.create_task(reader._take(watch, label, 0.0))
    disks = [disk for process in cluster.processes.values() if (disk := process.disk) is not None]
    usual_s = [disk.usual_s for disk in disks]
    for disk in disks:
        disk.usual_s = _COMMIT_S
    servers, network = list(cluster.servers), cluster.network
    network.block([reader.process.name], servers, both=True)
    for server in servers:
        network.reset(reader.process.name, server)
    until_s = world.now_s + _AWAY_S + _ON_S
    sending = [
        world.loop.start(life, _send(cluster, other, family, until_s)) for _ in range(_SENDERS)
    ]
    await asyncio.sleep(_AWAY_S)
    network.unblock([reader.process.name], servers, both=True)
    for _ in range(_AGAIN):
        await asyncio.sleep(_AGAIN_S)
        for server in servers:
            network.reset(reader.process.name, server)
    await asyncio.gather(*sending)
    for disk, before_s in zip(disks, usual_s, strict=True):
        disk.usual_s = before_s
    sent, came = world.sent_from(ADDRESS), world.history.labels[label]
    await until(lambda: sent <= came.ids, _BACK_S)
    if missing := len(sent - came.ids):
        world.bug(f"a reader whose lifetime was over misses {missing} of {len(sent)} events")
    world.history.watch_closed(label, world.now_us)
    await watch.cancel()
    await taking


async def _send(cluster: Cluster, client: Client, family: Family, until_s: float) -> None:
    assert client.space is not None
    while cluster.world.now_s < until_s:
        event = {
            **family._asdict(),
            "address": ADDRESS,
            "position": None,
            "data": {"kg": 1},
            "time": datetime_of(cluster.world.now_us),
            "lifetime_s": 3600.0,
        }
        if not await client.emit(client.space, Emission(0.0, (event,), many=False)):
            cluster.world.bug("an event is emitted in vain, though all is healed")
