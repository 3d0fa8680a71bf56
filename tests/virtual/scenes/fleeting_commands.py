"""Commands of lifetime 0 to an area write nothing, and take no place in the order that something else could be given later.

A device with a name is given one and acknowledges it, and all servers die at once: whatever they had counted without writing it is
forgotten, while the device's program remembers what it acknowledged, and says so when they are back. A command that is kept comes
next, while the device is away. It is new to the device, which must get it.
"""

from __future__ import annotations

import asyncio

from tests.virtual.programs.clients import Client, id_of
from tests.virtual.programs.cluster import Cluster
from utuple.client.space import Space
from utuple.model.condition import prefix
from utuple.model.utuple import Family

LABEL = "hall"
_AWAY_S = 0.7
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""


async def fleeting_commands(
    cluster: Cluster, client: Client, other: Client, family: Family
) -> None:
    space, sender = client.space, other.space
    assert space is not None and sender is not None
    first, second = cluster.world.next_number(), cluster.world.next_number()
    async with space.serve(**family._asdict(), address=LABEL, reader=LABEL) as device:
        await _command(sender, family, first, 0.0)
        for command in await device.take(1, timeout_s=_BACK_S):
            await command.ack()
        for name in cluster.servers:
            cluster.crash(name, _AWAY_S)
    await asyncio.sleep(2 * _AWAY_S)
    await _command(sender, family, second, 3600.0)
    async with space.serve(**family._asdict(), address=LABEL, reader=LABEL) as device:
        came: list[int] = []  # other commands to all devices may be kept, too
        while second not in came and (some := await device.take(9, timeout_s=_BACK_S)):
            came += [command.data["n"] for command in some]
        if second not in came:
            cluster.world.bug(f"a kept command ({id_of(second).hex()}) never came, only {came}")
        await device.cancel()


async def _command(space: Space, family: Family, number: int, lifetime_s: float) -> None:
    await space.command(
        **family._asdict(),
        address=prefix(LABEL),
        data={"n": number, LABEL: True},
        lifetime_s=lifetime_s,
    )
