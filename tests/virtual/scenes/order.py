"""Order: what a program emits for one address, each event awaited before the next, reaches every watcher in that order while the
line stands still (decision 49). Live, and from the store; also when several members take the line's events, and also what is
never stored, which may be missing but keeps its own order. (What is stored may overtake it: that is an exception of decision 49.)

Messages are slow by turns, so that streams of two members overtake each other whenever they can."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from tests.virtual.coverage import IN_ORDER
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.directories import newest
from tests.virtual.scenes.waiting import until
from tests.virtual.world.network import Weather
from utuple.client.receiving.deliveries import Deliveries
from utuple.cluster.line import Line
from utuple.model.key import key_of
from utuple.model.utuple import Family, datetime_of

LIFETIMES_S = {
    "one by one 1": 3600.0,
    "one by one 2": 3600.0,
    "one by one 3": 3600.0,
    "one by one, never stored": 0.0,
}
"""Of each address's events."""
_COUNT = 8
_SLOW = Weather(slow=0.4, slow_s=2.0)
_ALL_CAME_S = 20.0
_BACK_S = 150


async def one_by_one(
    cluster: Cluster, client: Client, other: Client, families: Sequence[Family]
) -> None:
    world, life = cluster.world, other.process.life
    assert life is not None
    table = newest(cluster)

    def line_of(family: Family) -> Line:
        line = table.line_of(key_of(*family))
        assert line is not None
        return line

    family = max(families, key=lambda one: len(line_of(one).accumulatable))
    key, epoch = key_of(*family), line_of(family).epoch
    began_us = world.now_us
    live = await _watch(cluster, client, family, "in order, live", began_us)
    cluster.network.weather = _SLOW
    sent = {address: list[bytes]() for address in LIFETIMES_S}
    await asyncio.gather(
        *(world.loop.start(life, _emit(cluster, other, family, sent, a)) for a in LIFETIMES_S)
    )
    await _all_came(cluster, live, sent)
    stored = await _watch(cluster, client, family, "in order, stored", began_us)
    await _all_came(cluster, stored, sent)
    cluster.network.weather = Weather()
    if cluster.epoch_of(key) == epoch and not cluster.is_moving(key):
        if len(line_of(family).accumulatable) > 1:
            world.count(IN_ORDER)
        for label, _, _ in (live, stored):
            _check(cluster, label, sent)
    else:
        await _until_whole(cluster, key)
    for label, watch, taking in (live, stored):
        world.history.watch_closed(label, world.now_us)
        await watch.close()
        await taking


async def _all_came(
    cluster: Cluster,
    watch: tuple[str, Deliveries, asyncio.Task[None]],
    sent: Mapping[str, list[bytes]],
) -> None:
    kept = {id_ for address, ids in sent.items() if LIFETIMES_S[address] for id_ in ids}
    label = cluster.world.history.labels[watch[0]]
    await until(lambda: kept <= label.ids, _ALL_CAME_S, after_s=2 * _SLOW.slow_s)


async def _until_whole(cluster: Cluster, key: int) -> None:
    """A monitor may have taken slow servers for silent ones: what they hold comes when they are back."""
    for _ in range(_BACK_S):
        if not any(member.suspended for member in cluster.line_of(key).members):
            break
        await asyncio.sleep(1.0)
    await asyncio.sleep(_ALL_CAME_S)


async def _watch(
    cluster: Cluster, client: Client, family: Family, label: str, since_us: int
) -> tuple[str, Deliveries, asyncio.Task[None]]:
    world, asked_us = cluster.world, cluster.world.now_us
    assert client.space is not None
    watch = await client.space.watch(**family._asdict(), since=datetime_of(since_us)).open()
    world.history.watch_opened(label, watch._utuple, asked_us, world.now_us)
    return label, watch, asyncio.create_task(client._take(watch, label, 0.0))


async def _emit(
    cluster: Cluster, client: Client, family: Family, sent: Mapping[str, list[bytes]], address: str
) -> None:
    world = cluster.world
    for _ in range(_COUNT):
        assert client.space is not None
        event = {
            **family._asdict(),
            "address": address,
            "position": None,
            "data": {"kg": 1},
            "time": datetime_of(world.now_us),
            "lifetime_s": LIFETIMES_S[address],
        }
        before = world.sent_from(address)
        if not await client.emit(client.space, Emission(0.0, (event,), many=False)):
            world.bug(f"{address} emits in vain, though all is healed")
        sent[address].extend(world.sent_from(address) - before)


def _check(cluster: Cluster, label: str, sent: Mapping[str, list[bytes]]) -> None:
    """Whether all came is law 2's business, and so is what may be missing."""
    lives = cluster.world.history.labels[label].lives
    came = [id_ for life in lives for id_ in life]
    for address, ids in sent.items():
        seen = [id_ for id_ in came if id_ in set(ids)]
        if seen != [id_ for id_ in ids if id_ in set(seen)]:
            cluster.world.bug(f"{label}: events of {address} out of order: {_places(ids, seen)}")


def _places(ids: list[bytes], seen: list[bytes]) -> list[int]:
    return [ids.index(id_) for id_ in seen]
