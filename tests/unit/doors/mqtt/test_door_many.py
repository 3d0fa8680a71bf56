"""Many subscriptions at a door: they are opened together, and what doors remember of families is watched once."""

from __future__ import annotations

import asyncio

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.doors.mqtt.devices import Device, door_of, space_of
from utuple.doors.mqtt.codec.packets import Disconnect, Filter, Publish, Suback, Subscribe
from utuple.doors.mqtt.families import TYPE


def filters(count: int) -> tuple[Filter, ...]:
    return tuple(Filter(f"truck/load/{number}", 1) for number in range(count))


async def subscribe(device: Device, asked: tuple[Filter, ...]) -> tuple[int, ...]:
    device.say(Subscribe(1, asked))
    answer = await device.next()
    assert isinstance(answer, Suback)
    return answer.reasons


@pytest.mark.parametrize("elsewhere", [True, False], ids=["at another door", "at the same door"])
@in_virtual_time
async def test_a_hundred_subscriptions_are_opened_together_and_again_when_their_client_is_back(
    elsewhere: bool,
) -> None:
    """Found with a thousand on a busy machine: one after the other they took a minute."""
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 1.0})
    loop = asyncio.get_running_loop()
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        door = door_of(first)
        device = Device(door)
        await device.come_in()
        before_s = loop.time()
        assert await subscribe(device, filters(100)) == 100 * (1,)
        assert loop.time() - before_s < 20.0
        device.lose()
        await asyncio.sleep(100.0)
        device = Device(door_of(second) if elsewhere else door)
        before_s = loop.time()
        assert (await device.come_in()).session_present
        assert loop.time() - before_s < 20.0
        await first.emit(subject="truck", type="load", address="77", data={})
        assert await device.names(1) == {"truck/load/77"}
        await door.stop()


@in_virtual_time
async def test_a_filter_that_is_there_twice_in_one_packet_counts_as_it_came_last() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        twice = (Filter("truck/load/7", 2), Filter("truck/load/8", 1), Filter("truck/load/7", 0))
        assert await subscribe(device, twice) == (2, 1, 0)
        await space.emit(subject="truck", type="load", address="7", data={})
        message = await device.next()
        assert isinstance(message, Publish) and message.qos == 0
        await door.stop()


@in_virtual_time
async def test_two_clients_that_subscribe_to_everything_at_once_make_one_watch_of_families() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 1.0})
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        devices = [Device(door, f"application-{number}") for number in range(2)]
        for device in devices:
            await device.come_in()
        asked = (Filter("#", 1),)
        assert await asyncio.gather(*(subscribe(device, asked) for device in devices)) == [(1,)] * 2
        watched = [
            family
            for _, request in cluster.calls
            for family in request.templates.families
            if family.type == TYPE
        ]
        assert len(watched) == 1
        await door.stop()


@in_virtual_time
async def test_more_subscriptions_than_a_client_may_have_are_refused_one_by_one() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        most = door.limits.subscriptions
        reasons = await subscribe(device, filters(most + 3))
        assert reasons == most * (1,) + 3 * (0x97,)
        device.say(Disconnect())
        await door.stop()
