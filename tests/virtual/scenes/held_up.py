"""A stream that is held up: its reader has many EFs of one family, the wire takes nothing for a while, and more is registered than
the stream may hold. All of them fall behind together, and one search of the store is made for them (`reading/together.py`), during
which more is registered and, in every second seed, the servers are killed. Each EF is given all it matches, once and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.virtual.coverage import SEARCHED_TOGETHER
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.waiting import until
from utuple.client.receiving.deliveries import Deliveries
from utuple.model.condition import at_least, between
from utuple.model.match import matches
from utuple.model.utuple import Family, datetime_of

ADDRESS = "held up"
"""Nobody else's, as in `newcomers`."""
WHERES: tuple[Mapping[str, Any], ...] = (
    {},
    {"kg": at_least(3)},
    {"kg": between(0, 4)},
    {"kg": 2},
    {"kg": at_least(1)},
    {},
)
_HELD_S, _WAIT_S = 2.0, 25.0
_ROUNDS, _EVENTS = 4, 12


async def held_up(cluster: Cluster, client: Client, other: Client, family: Family) -> None:
    world, network, dice = cluster.world, cluster.network, cluster.world.dice("held up")
    began = datetime_of(world.now_us)
    opened = [await _open(cluster, client, family, n, began) for n in range(len(WHERES))]
    life, space = other.process.life, other.space
    assert life is not None and space is not None
    usual, network.full = network.full, (0.5, _HELD_S)
    for number in range(_ROUNDS):
        events = tuple(_event(cluster, family, dice.randrange(6)) for _ in range(_EVENTS))
        emitting = other.emit(space, Emission(0.0, events, many=True))
        if not await world.loop.start(life, emitting):
            world.bug("an event is emitted in vain, though all is healed")
        await asyncio.sleep(dice.uniform(0.0, _HELD_S))
        if number == _ROUNDS - 2 and world.seed % 2:
            for name in cluster.servers:
                cluster.crash(name, 0.7)
            await asyncio.sleep(_WAIT_S)
    network.full = usual
    sent = [world.history.sent[id_].utuple for id_ in sorted(world.sent_from(ADDRESS))]
    labels = [world.history.labels[label] for label, _, _ in opened]
    wanted = [(came, one.id) for came in labels for one in sent if matches(one, came.formal)]
    await until(lambda: all(id_ in came.ids for came, id_ in wanted), _WAIT_S)
    for label, watch, taking in opened:
        world.history.watch_closed(label, world.now_us)
        await watch.close()
        await taking
    engines = filter(None, map(cluster.engine, cluster.servers))
    if any(engine.delivering.searches.together for engine in engines):
        world.count(SEARCHED_TOGETHER)


async def _open(
    cluster: Cluster, client: Client, family: Family, number: int, since: datetime
) -> tuple[str, Deliveries, asyncio.Task[None]]:
    world, space, label = cluster.world, client.space, f"held up {number}"
    assert space is not None
    asked_us, where = world.now_us, {"held": True, **WHERES[number]}
    watch = await space.watch(**family._asdict(), since=since, where=where).open()
    world.history.watch_opened(label, watch._utuple, asked_us, world.now_us)
    return label, watch, asyncio.create_task(client._take(watch, label, 0.0))


def _event(cluster: Cluster, family: Family, kg: int) -> dict[str, object]:
    return {
        **family._asdict(),
        "address": ADDRESS,
        "position": None,
        "data": {"kg": kg, "held": True},
        "time": datetime_of(cluster.world.now_us),
        "lifetime_s": 3600.0,
    }
