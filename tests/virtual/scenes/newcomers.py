"""Newcomers: many watches opened at once while searches take long, and events that live for less than that.

The laws give such events no grace: a pair whose lives overlap is delivered (law 2), and what is of lifetime 0 reaches
whoever is connected, unless the server that has it is drained before the newcomer's first search there has ended (decision 19).
Only what is calm can be held to it, so this is a probe.
"""

from __future__ import annotations

import asyncio

from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.waiting import until
from utuple.client.receiving.deliveries import Deliveries
from utuple.model.key import key_of
from utuple.model.utuple import Family, datetime_of

WATCHES = 6
SEARCH_S = 4.0
LIFETIMES_S = {"newcomer, fleeting": 0.0, "newcomer, 0.3 s": 0.3, "newcomer, 1 s": 1.0}
"""By address: nobody else's, since other programs may be answered just now for what they sent long ago."""
_WAIT_S = 4 * SEARCH_S
"""What came before the EF and what came after it are two searches."""


async def newcomers(cluster: Cluster, client: Client, family: Family) -> None:
    world, space = cluster.world, client.space
    assert space is not None
    disks = [disk for process in cluster.processes.values() if (disk := process.disk) is not None]
    began_us, epoch = world.now_us, cluster.epoch_of(key_of(*family))
    usual_s = [disk.search_s for disk in disks]
    for disk in disks:
        disk.search_s = SEARCH_S

    async def came(number: int) -> tuple[str, Deliveries, asyncio.Task[None]]:
        asked_us, label = world.now_us, f"newcomer {number}"
        since = datetime_of(began_us)  # what is stored would leave no room
        watch = await space.watch(subject=family.subject, type=family.type, since=since).open()
        world.history.watch_opened(label, watch._utuple, asked_us, world.now_us)
        return label, watch, asyncio.create_task(client._take(watch, label, 0.0))

    opened = await asyncio.gather(*(came(number) for number in range(WATCHES)))
    for address, lifetime_s in LIFETIMES_S.items():
        event = {
            "subject": family.subject,
            "type": family.type,
            "address": address,
            "position": None,
            "data": {"kg": 1},
            "time": datetime_of(world.now_us),
            "lifetime_s": lifetime_s,
        }
        if not await client.emit(space, Emission(0.0, (event,), many=False)):
            world.bug("a newcomer emits in vain, though all is healed")
    everything = set().union(*map(world.sent_from, LIFETIMES_S))
    labels = [world.history.labels[label] for label, _, _ in opened]
    await until(lambda: all(everything <= label.ids for label in labels), _WAIT_S)
    moved = cluster.epoch_of(key_of(*family)) != epoch
    judged = [address for address, life_s in LIFETIMES_S.items() if life_s or not moved]
    sent = set().union(*map(world.sent_from, judged))
    for label, watch, taking in opened:
        missing = len(sent - world.history.labels[label].ids)
        if missing:
            world.bug(f"{label} misses {missing} of {len(sent)} short-lived events")
        world.history.watch_closed(label, world.now_us)
        await watch.close()
        await taking
    for disk, search_s in zip(disks, usual_s, strict=True):
        disk.search_s = search_s
