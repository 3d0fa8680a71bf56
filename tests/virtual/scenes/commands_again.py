"""Commands that come again and again while searches take long.

Each break of the connections makes their sender visit the servers anew, and each of the commands is in the servers' queues
already. A command that comes after them waits for as many searches as there are commands, not as there were visits, and
that is less than its sender waits.
"""

from __future__ import annotations

import asyncio

from tests.virtual.plan import Commanding
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from utuple.model.condition import prefix
from utuple.model.utuple import Family

COMMANDS = 7
SEARCH_S = 2.0
"""At most; half of that on average."""
_BREAKS = 8
_BETWEEN_S = 0.5


async def commands_again(cluster: Cluster, client: Client, family: Family) -> None:
    world, space = cluster.world, client.space
    assert space is not None
    disks = [disk for process in cluster.processes.values() if (disk := process.disk) is not None]
    usual_s = [disk.search_s for disk in disks]
    for disk in disks:
        disk.search_s = SEARCH_S
    command = Commanding(0.0, family, {"address": prefix("room")}, {"on": True}, 3600.0)
    sending = [asyncio.create_task(client.command(space, command)) for _ in range(COMMANDS)]
    for _ in range(_BREAKS):
        await asyncio.sleep(_BETWEEN_S)
        for server in cluster.servers:
            cluster.network.reset(client.process.name, server)
    sending.append(asyncio.create_task(client.command(space, command)))
    if not all(await asyncio.gather(*sending)):
        world.bug("a command that waits for others is sent in vain, though all is healed")
    for disk, search_s in zip(disks, usual_s, strict=True):
        disk.search_s = search_s
