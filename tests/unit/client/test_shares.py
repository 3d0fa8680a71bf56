"""Section 3.2 of the paper: devices and commands while sCA servers come and go."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.server import TwinSca
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.receiving.device import Device
from utuple.client.space import Space
from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import AWAY, LEFT, Shares
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.model.utuple import Family
from utuple.wire.cluster import server_to_wire

POWER: dict[str, Any] = {"subject": "aircon", "type": "power"}
BOTH = Shares(["sca-1", "sca-2"])
ROOMS = [f"room-{number}" for number in range(40)]
OURS = [room for room in ROOMS if BOTH.owner(Family("aircon", "power"), room) == "sca-1"]
THEIRS = [room for room in ROOMS if room not in OURS]


def space_of(cluster: TwinCluster, **knobs: Any) -> Space:
    config = Config(**{"timeout_s": 10.0, **knobs})
    return Space(put_together([MANAGER], config, cluster, random.Random(7), lambda: 7))


def order(room: str) -> dict[str, Any]:
    return {**POWER, "address": room, "data": {"on": True}}


async def opened(space: Space, rooms: list[str]) -> list[Device]:
    return [await space.serve(**POWER, address=room).open() for room in rooms]


def hear(space: Space, *infos: ServerInfo) -> None:
    space._parts.lines.hear((), map(server_to_wire, infos))


def attached_at(cluster: TwinCluster, name: str) -> int:
    return len(cluster.sca[name].devices)


@in_virtual_time
async def test_devices_attach_where_they_belong_when_an_sca_server_joins() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await opened(space, ROOMS)
    cluster.sca["sca-2"] = TwinSca("sca-2")
    hear(space, ServerInfo("sca-2", "sca-2", "sca", 5))
    await asyncio.sleep(1.0)
    receipts = await space.command_many(map(order, ROOMS))
    assert receipts.handed_over == len(ROOMS)
    assert cluster.sca["sca-2"].calls and attached_at(cluster, "sca-2") == len(THEIRS)
    left = [message for message in cluster.sca["sca-1"].heard if message.HasField("detach")]
    assert len(left) == len(THEIRS)
    assert not any(message.detach.cancel for message in left)
    await space.close()


@in_virtual_time
async def test_an_sca_server_is_told_that_more_devices_come_until_all_have_come() -> None:
    """It must not take a pause of a busy program for the end."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, told_at_once=3).open()
    await opened(space, ROOMS)
    cluster.sca["sca-2"] = TwinSca("sca-2")
    hear(space, ServerInfo("sca-2", "sca-2", "sca", 5))
    await asyncio.sleep(1.0)
    heard = [message for message in cluster.sca["sca-2"].heard if not message.HasField("confirm")]
    words = [
        f"{message.WhichOneof('message')}{' more' if message.bringing.more else ''}"
        for message in heard
    ]
    assert words == ["bringing more", *["attach"] * len(THEIRS), "bringing"]
    assert not any(message.HasField("bringing") for message in cluster.sca["sca-1"].heard)
    await space.close()


@in_virtual_time
async def test_devices_that_come_in_one_message_are_not_announced() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await opened(space, ROOMS)
    cluster.sca["sca-2"] = TwinSca("sca-2")
    hear(space, ServerInfo("sca-2", "sca-2", "sca", 5))
    await asyncio.sleep(1.0)
    assert attached_at(cluster, "sca-2") == len(THEIRS)
    assert not any(message.HasField("bringing") for message in cluster.sca["sca-2"].heard)
    await space.close()


@in_virtual_time
async def test_devices_of_one_that_is_away_attach_to_the_others() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    cluster.sca["sca-2"] = TwinSca("sca-2")
    space = await space_of(cluster).open()
    devices = await opened(space, [THEIRS[0], OURS[0]])
    cluster.down.add("sca-2")
    hear(space, ServerInfo("sca-2", "sca-2", AWAY, 5))
    await asyncio.sleep(1.0)
    for device, room in zip(devices, (THEIRS[0], OURS[0]), strict=True):
        receipt = await space.command(**order(room))
        assert receipt.handed_over == 1
        assert (await anext(device)).data == {"on": True}
    await space.close()


@in_virtual_time
async def test_one_that_leaves_keeps_its_stream_until_its_devices_have_gone() -> None:
    """It has not begun another life: what it handed over a moment ago may still be confirmed."""
    cluster = TwinCluster(one_line(1, "a"))
    cluster.sca["sca-2"] = TwinSca("sca-2")
    space = await space_of(cluster).open()
    await opened(space, ROOMS)
    hear(space, ServerInfo("sca-2", "sca-2", LEFT, 5))
    await asyncio.sleep(1.0)
    assert cluster.connects["sca-2"] == 1
    assert len([one for one in cluster.sca["sca-2"].heard if one.HasField("detach")]) == len(THEIRS)
    assert attached_at(cluster, "sca-1") == len(ROOMS)
    await space.close()


@in_virtual_time
async def test_what_is_moving_is_sent_again_and_the_rest_is_not() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    devices = await opened(space, ROOMS[:3])
    cluster.moving = {ROOMS[1]: 3}
    receipts = await space.command_many(map(order, ROOMS[:3]))
    assert [receipt.handed_over for receipt in receipts] == [1, 1, 1]
    assert cluster.sca["sca-1"].calls == 4
    for device in devices:
        assert len(await device.take(9, timeout_s=1.0)) == 1
    await space.close()


@in_virtual_time
async def test_what_never_comes_to_rest_ends_as_not_registered() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.moving = {ROOMS[0]: 10_000}
    with pytest.raises(Unavailable, match="on its way, says the test"):
        await space.command(**order(ROOMS[0]))
    await space.close()


@in_virtual_time
async def test_of_many_some_of_which_were_handed_over_none_is_called_not_registered() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await opened(space, ROOMS[:2])
    cluster.moving = {ROOMS[1]: 10_000}
    with pytest.raises(OutcomeUnknown) as caught:
        await space.command_many(map(order, ROOMS[:2]))
    cluster.moving = {}
    receipts: Any = await space.retry(caught.value)
    assert [receipt.handed_over for receipt in receipts] == [1, 1]
    await space.close()


@in_virtual_time
async def test_after_a_lost_answer_nobody_is_called_not_connected() -> None:
    """The device had the command and went: its sender must not hear that it was not connected."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    device = space.serve(**POWER, address=ROOMS[0], reader="hall")
    await device.open()
    cluster.losing["sca-1"] = 1
    sending = asyncio.create_task(space.command(**order(ROOMS[0])))
    assert (await anext(device)).data == {"on": True}
    await device.close()
    receipt = await sending
    assert [one.reason for one in receipt.devices] == ["not confirmed"]
    again = await space.command(**order(ROOMS[0]))
    assert [one.reason for one in again.devices] == ["not connected"]
    await space.close()


@in_virtual_time
async def test_while_an_sca_server_cannot_be_reached_one_command_knocks_for_all() -> None:
    """As many calls as commands would keep the program too busy to hear that it is back."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, timeout_s=60.0).open()
    devices = await opened(space, ROOMS[:1])
    cluster.down.add("sca-1")
    sending = []
    for _ in range(20):
        sending += [asyncio.create_task(space.command(**order(ROOMS[0]))) for _ in range(10)]
        await asyncio.sleep(1.0)
    assert cluster.unreached["sca-1"] < len(sending)
    cluster.down.clear()
    await asyncio.sleep(2.0)
    assert [(await one).handed_over for one in sending] == [1] * len(sending)
    assert len(await devices[0].take(len(sending) + 1, timeout_s=1.0)) == len(sending)
    await space.close()
