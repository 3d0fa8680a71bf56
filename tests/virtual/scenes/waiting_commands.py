"""Commands that wait for a device: never after their lifetime, never again to a device that acknowledged them.

A device with a name acknowledges one and goes. Another comes while it is away; its member goes off, and may be drained; all
uTupleServers die and come back, and the sCA servers change. A third one comes and expires, and a fourth after it. Then the
device is served by another program, which remembers nothing: it is given what was never given, and nothing else. It acknowledges
that: its position is past the one that expired by then, of which nobody may say that the device has it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.virtual.coverage import OFF_WHILE_AWAY, WAITED
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.sending_off import SendingOff
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.sending.receipt import Receipt
from utuple.client.space import Space
from utuple.model.condition import prefix
from utuple.model.utuple import Family

LABEL = "porch"
"""Nobody else's, as in `newcomers`."""
MOVED, _OFTEN = ("not", "off", "drained"), (1, 2, 2)
_LONG_S, _SHORT_S = 3600.0, 3.0
_OVER_S = 0.3
"""After its end a command is remembered for a while, and must not be given."""
_DURABLE_S = 2.0
_DOWN_S, _AGAIN_S = 0.7, 10.0
"""All are down; and all serve again, sCA servers too."""
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""
_NO_MORE_S = 3.0


async def waiting_commands(cluster: Cluster, client: Client, other: Client, family: Family) -> None:
    space, next_space = client.space, other.space
    assert space is not None and next_space is not None
    about = {**family._asdict(), "address": LABEL}
    async with space.serve(**about, reader=LABEL) as device:
        first, _ = await _command(cluster, next_space, family, _LONG_S)
        for command in await _taken(device, [first]):
            await command.ack()
        await asyncio.sleep(_DURABLE_S)
        member = device._member
    wanted, receipt = await _command(cluster, space, family, _LONG_S)
    await _move_away(cluster, family, member)
    for name in cluster.servers:
        cluster.crash(name, _DOWN_S)
    _change_scas(cluster)
    await asyncio.sleep(_AGAIN_S)
    _, short = await _command(cluster, space, family, _SHORT_S)
    await asyncio.sleep(_SHORT_S + _OVER_S)
    later, _ = await _command(cluster, space, family, _LONG_S)
    async with next_space.serve(**about, reader=LABEL) as device:
        given = await _taken(device, [wanted, later])
        given += await device.take(9, timeout_s=_NO_MORE_S)
        numbers = [command.data["n"] for command in given if LABEL in command.data]
        if numbers != [wanted, later]:
            cluster.world.bug(f"a device waits for commands {wanted, later} and is given {numbers}")
        for command in given:
            await command.ack()
        await asyncio.sleep(_DURABLE_S)
        receipt, short = await receipt.refresh(), await short.end()
        is_done = all(one.acknowledged for one in receipt.devices) and receipt.is_done
        if not is_done or short.handed_over:
            cluster.world.bug(
                f"the receipts of commands that waited are not true: {receipt.devices}, {short}"
            )
        await device.cancel()
    cluster.world.count(WAITED)


async def _move_away(cluster: Cluster, family: Family, member: str) -> None:
    """Most often, from the member that knows what the device has acknowledged."""
    dice = cluster.world.dice("waiting commands")
    moved = dice.choices(MOVED, _OFTEN)[0]
    if moved == "not":
        return
    sending_off = SendingOff(cluster, family, dice)
    drain = await sending_off.send_off(member)
    cluster.world.count(OFF_WHILE_AWAY)
    if drain is not None and moved == "drained":
        await sending_off.order(drain)


async def _command(
    cluster: Cluster, space: Space, family: Family, lifetime_s: float
) -> tuple[int, Receipt]:
    number = cluster.world.next_number()
    receipt = await space.command(
        **family._asdict(),
        address=prefix(LABEL),
        data={"n": number, LABEL: True},
        lifetime_s=lifetime_s,
    )
    return number, receipt


async def _taken(device: Deliveries, wanted: list[int]) -> list[Any]:
    """Commands to all devices may come, too."""
    came: list[Any] = []
    while not {command.data["n"] for command in came}.issuperset(wanted):
        some = await device.take(9, timeout_s=_BACK_S)
        if not some:
            break
        came += some
    return came


def _change_scas(cluster: Cluster) -> None:
    """One joins if there is room; else one is killed and comes back."""
    away = [name for name in cluster.scas if name not in cluster.serving_scas]
    if away:
        cluster.join_sca(away[0])
    else:
        cluster.crash(cluster.serving_scas[-1], _DOWN_S)
