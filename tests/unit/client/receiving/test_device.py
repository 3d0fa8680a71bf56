"""Devices and commands."""

from __future__ import annotations

import asyncio
import random
from array import array
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.server import TwinSca
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.receiving.device import Device
from utuple.client.space import Space
from utuple.cluster.line import Member
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.model.area import Circle
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import pack

POWER: dict[str, Any] = {"subject": "aircon", "type": "power"}
ROOM = {**POWER, "address": "room-101", "position": (35.68, 139.76), "where": {"on": bool}}
NEAR = Circle(35.68, 139.76, 500)


def space_of(cluster: TwinCluster, **knobs: Any) -> Space:
    config = Config(**{"timeout_s": 10.0, **knobs})
    return Space(put_together([MANAGER], config, cluster, random.Random(7), lambda: 7))


async def next_command(commands: Device) -> dict[str, Any]:
    command = await asyncio.wait_for(anext(commands), 60)
    assert (command.address, command.subject) == ("room-101", "aircon")
    return command.data


@in_virtual_time
async def test_a_simple_command_goes_by_the_sca_server_only() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        receipt = await space.command(**POWER, address="room-101", data={"on": False})
        assert (receipt.matched, receipt.handed_over) == (1, 1)
        assert await next_command(commands) == {"on": False}
        assert cluster.sca["sca-1"].calls == 1
        assert not await space.command(**POWER, address="room-101", data={"on": "maybe"})
        assert not await space.command(**POWER, address="room-999", data={"on": False})
    await space.close()


@pytest.mark.parametrize(
    ("knobs", "note", "fitting"),
    [({"window": 3}, "", 3), ({"window_bytes": 3_000}, "x" * 2_000, 2)],
    ids=["rows", "bytes"],
)
@in_virtual_time
async def test_what_finds_no_room_at_a_program_that_takes_nothing_is_not_confirmed(
    knobs: dict[str, Any], note: str, fitting: int
) -> None:
    """An sCA server counts nobody's window, so a program that did not take its commands held all of them."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, **knobs).open()
    async with space.serve(**ROOM) as commands:

        async def send(number: int) -> int:
            data = {"on": True, "n": number, "note": note}
            return (await space.command(**POWER, address="room-101", data=data)).handed_over

        assert [await send(number) for number in range(5)] == [1] * fitting + [0] * (5 - fitting)
        for number in range(fitting):
            assert (await next_command(commands))["n"] == number
        assert await send(5) == 1
        assert (await next_command(commands))["n"] == 5
    await space.close()


@in_virtual_time
async def test_a_command_to_a_place_reaches_devices_at_every_member_once() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    rooms = [space.serve(**{**ROOM, "address": f"room-{n}"}) for n in range(8)]
    for room in rooms:
        await room.open()
    assert all(server.devices for server in cluster.servers.values())
    receipt = await space.command(**POWER, area=NEAR, data={"on": True})
    assert (receipt.matched, receipt.handed_over) == (8, 8)
    for number, room in enumerate(rooms):
        command = await anext(room)
        assert (command.address, command.data) == (f"room-{number}", {"on": True})
    await space.close()
    assert not any(server.devices for server in cluster.servers.values())


@in_virtual_time
async def test_a_device_without_an_sca_server_is_told_so_at_once_and_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    cluster.sca = {}
    space = await space_of(cluster).open()
    with pytest.raises(Unavailable, match=r"no sCA server.*python -m sca_server"):
        await space.serve(**ROOM).open()
    assert [
        r.getMessage()[:25]
        for r in caplog.records
        if r.name == "utuple.client.sending.simple_commands"
    ] == ["waiting for an sCA server"]
    await space.close()


@in_virtual_time
async def test_a_device_is_served_only_when_both_its_member_and_the_sca_server_know_it() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.cut("sca-1")
    with pytest.raises(Unavailable):
        await space.serve(**ROOM).open()
    cluster.mend("sca-1")
    async with space.serve(**ROOM):
        assert len(cluster.servers["a"].devices) == 1, "the first try was undone"
        assert len(cluster.sca["sca-1"].devices) == 1
    await space.close()


@in_virtual_time
async def test_concurrent_simple_commands_leave_as_one_call() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, command_calls_in_flight=1).open()
    async with space.serve(**ROOM):
        receipts = await asyncio.gather(
            *(space.command(**POWER, address="room-101", data={"on": True}) for _ in range(20))
        )
    assert all(receipt.handed_over == 1 for receipt in receipts)
    assert cluster.sca["sca-1"].calls == 2
    await space.close()


@in_virtual_time
async def test_a_command_given_twice_is_delivered_once() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        cluster.losing["sca-1"] = 1  # the sCA server acts, its answer is lost
        receipt = await space.command(**POWER, address="room-101", data={"on": True})
        assert receipt.handed_over == 1
        assert await next_command(commands) == {"on": True}
        await space.command(**POWER, address="room-101", data={"on": False})
        assert await next_command(commands) == {"on": False}
    await space.close()


@in_virtual_time
async def test_a_command_of_unknown_outcome_can_be_tried_again() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        for where in ({"address": "room-101"}, {"area": NEAR}):
            cluster.losing = {"sca-1": 1000, "a": 1000}
            with pytest.raises(OutcomeUnknown) as caught:
                await space.command(**POWER, **where, data={"on": True})
            cluster.losing = {}
            receipt = await space.retry(caught.value)
            assert receipt
            assert await next_command(commands) == {"on": True}
    await space.close()


@in_virtual_time
async def test_what_comes_while_a_device_is_being_attached_again_is_confirmed_afterwards() -> None:
    """Before, the server would not listen."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        sca = cluster.sca["sca-1"]
        [device] = sca.devices.values()
        space._parts.sessions._sessions["sca-1", True]._links[device.id].attach_again()
        sca._give(sca.device_streams[device.id], device, b"\xc0" * 16, b'{"on":true}', 0)
        await asyncio.sleep(1)
        assert not sca.confirmed
        assert await next_command(commands) == {"on": True}, "it is taken, so there is room again"
        await asyncio.sleep(1)
        assert sca.confirmed == {(device.id, b"\xc0" * 16)}
    await space.close()


@in_virtual_time
async def test_a_device_that_is_behind_holds_its_own_commands_only() -> None:
    """Those of a message for many share its columns, and one that stopped would keep every message."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    rooms = [await space.serve(**{**ROOM, "address": f"room-{n}"}).open() for n in range(2)]
    session = space._parts.sessions._sessions["sca-1", True]
    for number in range(3):
        columns = pb.Columns(
            ids=bytes([number] * 16 + [9, number] * 8),
            times_us=pack(array("q", [7, 7])),
            payloads=[b'{"n":%d}' % number, b'{"m":%d}' % number],
        )
        formals, ones = b"".join(room._utuple.id for room in rooms), pack(array("I", [1, 1]))
        several = pb.Deliveries(formals=formals, counts=ones, columns=columns)
        session._hear(pb.ToReader(deliveries=several))
    assert [len(arrived.chunk) for arrived in rooms[1]._formal._queue] == [2, 1, 1]
    commands = [await anext(rooms[1]) for _ in range(3)]
    assert [(one.address, one.data) for one in commands] == [
        ("room-1", {"m": number}) for number in range(3)
    ]
    await space.close()


@in_virtual_time
async def test_a_device_that_does_not_confirm_is_reported() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM):
        cluster.sca["sca-1"].silent = True
        receipt = await space.command(**POWER, address="room-101", data={"on": True})
        assert [device.reason for device in receipt.devices] == ["not confirmed"]
    await space.close()


@in_virtual_time
async def test_a_command_is_kept_by_members_that_are_off_too() -> None:
    """A device that is away may have its CF there (decision 28)."""
    cluster = TwinCluster(one_line(1, Member("a", accumulatable=False), "b"))
    cluster.move(one_line(2, *cluster.line.members, Member("c", accumulatable=False)))
    space = await space_of(cluster).open()
    assert not await space.command(**POWER, everywhere=True, data={"on": True}, lifetime_s=60)
    for name in "abc":
        [(_, kept)] = cluster.servers[name].commands.values()
        assert kept.lifetime_s == 60
    await space.close()


@in_virtual_time
async def test_a_device_whose_member_leaves_the_line_moves() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        newer = one_line(2, "b")
        cluster.add_server("b", newer)
        cluster.change(newer, told=["a"])
        cluster.announce(newer)
        await asyncio.sleep(1)
        receipt = await space.command(**POWER, area=NEAR, data={"on": True})
        assert receipt.handed_over == 1
        assert await next_command(commands) == {"on": True}
    await space.close()


@in_virtual_time
async def test_a_device_moved_by_a_drain_and_registered_again_is_on_a_receipt_once() -> None:
    """The heir has its CF, not connected; the device has chosen another member."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    rooms = [space.serve(**{**ROOM, "address": f"room-{n}"}) for n in range(8)]
    for room in rooms:
        await room.open()
    cluster.move(one_line(2, Member("a", accumulatable=False), "b", "c"))
    cluster.drain("a", "b", one_line(3, "b", "c"))
    await asyncio.sleep(1)
    assert len(cluster.servers["b"].devices) == 8
    assert 0 < len(cluster.servers["c"].devices) < 8
    receipt = await space.command(**POWER, area=NEAR, data={"on": True})
    assert (receipt.matched, receipt.handed_over) == (8, 8)
    assert ("a", False) not in space._parts.sessions._sessions
    await space.close()


@in_virtual_time
async def test_a_device_whose_member_goes_off_stays() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        cluster.move(one_line(2, Member("a", accumulatable=False), "b"))
        await asyncio.sleep(1)
        assert not cluster.servers["b"].devices
        assert (await space.command(**POWER, area=NEAR, data={"on": True})).handed_over == 1
        assert await next_command(commands) == {"on": True}
    await space.close()


@in_virtual_time
async def test_a_device_whose_member_is_suspended_moves() -> None:
    """Commands do not go to a suspended member."""
    cluster = TwinCluster(one_line(1, "b", "a"))
    space = await space_of(cluster).open()
    device = space.serve(**ROOM, reader="room-101")
    async with device as commands:
        silent = device._member
        other = "a" if silent == "b" else "b"
        cluster.cut(silent)
        cluster.move(one_line(2, other, Member(silent, accumulatable=False, suspended=True)))
        await asyncio.sleep(1)
        assert (await space.command(**POWER, area=NEAR, data={"on": True})).handed_over == 1
        assert await next_command(commands) == {"on": True}
    await space.close()


@in_virtual_time
async def test_a_device_taken_by_a_server_that_leaves_too_moves_on() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM):
        go = cluster.hold("b")
        cluster.move(one_line(2, "b"))
        await asyncio.sleep(1)
        newer = one_line(3, "c")
        cluster.add_server("c", newer)
        cluster.announce(newer)  # b has not heard of it, and takes the device
        go.set()
        await asyncio.sleep(5)
        assert len(cluster.servers["b"].devices) == 1
        assert [name for name, one in cluster.servers.items() if one.device_streams] == ["c"]
    await space.close()


@in_virtual_time
async def test_a_command_not_acted_on_yet_is_not_lost_when_the_device_moves() -> None:
    """The new member has it under a seq of its own and sends it again."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM, reader="room-101") as commands:
        cluster.move(one_line(2, "a", Member("b", accumulatable=False)))
        await space.command(**POWER, area=NEAR, data={"on": True}, lifetime_s=60)
        assert await next_command(commands) == {"on": True}
        cluster.move(one_line(3, "b"))
        await asyncio.sleep(1)
        assert len(cluster.servers["b"].device_streams) == 1
    async with space.serve(**ROOM, reader="room-101") as commands:
        command = await asyncio.wait_for(anext(commands), 60)
        assert command.data == {"on": True}, "the program ended before it had acted on it"
        await command.ack()
    async with space.serve(**ROOM, reader="room-101") as commands:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(commands), 5)
    await space.close()


@in_virtual_time
async def test_a_command_that_waits_for_a_silent_member_goes_on_when_that_is_suspended() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    cluster.hold("b")
    sending = asyncio.create_task(space.command(**POWER, area=NEAR, data={"on": True}))
    await asyncio.sleep(0.5)
    newer = one_line(2, "a", Member("b", accumulatable=False, suspended=True))
    cluster.line = newer
    cluster.change(newer, told=["a"])
    await sending
    assert asyncio.get_running_loop().time() < 3
    await space.close()


@in_virtual_time
async def test_a_device_forgotten_by_its_servers_is_registered_again() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as commands:
        for name in ("a", "sca-1"):
            cluster.cut(name)
            cluster.mend(name)
        cluster.servers["a"].devices.clear()
        cluster.sca["sca-1"] = TwinSca("sca-1")  # it started anew
        await asyncio.sleep(2)
        for where in ({"address": "room-101"}, {"area": NEAR}):
            assert (await space.command(**POWER, **where, data={"on": True})).handed_over == 1
            assert await next_command(commands) == {"on": True}
    await space.close()


@in_virtual_time
async def test_a_named_device_comes_back_to_the_same_member() -> None:
    cluster = TwinCluster(one_line(1, "a", "b", "c"))
    places = []
    for _ in range(3):
        space = await space_of(cluster).open()
        async with space.serve(**ROOM, reader="room-101"):
            places.append([name for name, one in cluster.servers.items() if one.device_streams])
        await space.close()
    assert places[0] == places[1] == places[2]
    assert len(places[0]) == 1
