"""A door before a cluster that fails at the wrong moment: a session that is kept keeps all of its subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.doors.mqtt.devices import Device, OneSpace, door_of, space_of
from utuple.client.space import Space
from utuple.doors.mqtt.__main__ import read_mapping
from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Ack,
    Disconnect,
    Kind,
    Property,
    Publish,
    Will,
)
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.codec.writing import write
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.door import Door
from utuple.doors.mqtt.remembering import RENEWED_S
from utuple.wire import utuple_pb2 as pb


async def until_templates(cluster: TwinCluster, count: int) -> None:
    """Until so many more EFs have been brought to servers."""

    def brought() -> int:
        return sum(bool(request.templates.families) for _, request in cluster.calls)

    due = brought() + count
    while brought() < due:  # noqa: ASYNC110  in virtual time
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("opened", [1, 2])
@pytest.mark.parametrize("elsewhere", [True, False], ids=["at another door", "at the same door"])
@in_virtual_time
async def test_a_session_whose_subscriptions_cannot_all_be_opened_again_keeps_them(
    elsewhere: bool, opened: int
) -> None:
    """Found with a server killed while thousands reconnect: a session was kept again with those subscriptions that had been
    opened by then, and what was published until its client subscribed once more never came."""
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 1.0})
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        door = door_of(first)
        device = Device(door)
        await device.come_in()
        await device.subscribe()
        device.lose()
        await asyncio.sleep(10.0)
        if elsewhere:
            door = door_of(second)
        device = Device(door)
        coming = asyncio.create_task(device.come_in())
        await until_templates(cluster, opened)
        cluster.cut("a")
        assert (await coming).reason >= 0x80
        await asyncio.sleep(5.0)
        cluster.mend("a")
        await asyncio.sleep(40.0)  # whatever it does about the session that could not begin
        for family in ("truck", "bus", "tram"):
            await first.emit(subject=family, type="load", address="7", data={})
        device = Device(door)
        answer = await device.come_in()
        assert answer.reason == 0 and answer.session_present
        assert await device.names(3) == {"truck/load/7", "bus/load/7", "tram/load/7"}
        await door.stop()


@pytest.mark.parametrize("elsewhere", [True, False], ids=["at another door", "at the same door"])
@in_virtual_time
async def test_a_clean_start_that_cannot_end_the_session_before_is_refused(elsewhere: bool) -> None:
    """Else the session before would be there again at the next connection."""
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 1.0})
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        door = door_of(first)
        device = Device(door)
        await device.come_in()
        await device.subscribe()
        device.lose()
        await asyncio.sleep(10.0)
        if elsewhere:
            door = door_of(second)
        device = Device(door)
        coming = asyncio.create_task(device.come_in(clean=True))
        await until_templates(cluster, 1)
        cluster.cut("a")
        assert (await coming).reason >= 0x80
        cluster.mend("a")
        device = Device(door)
        assert (await device.come_in(clean=True)).reason == 0
        device.lose()
        await asyncio.sleep(10.0)
        device = Device(door)
        answer = await device.come_in()
        assert answer.reason == 0 and not answer.session_present
        await door.stop()


@in_virtual_time
async def test_who_comes_to_another_door_while_it_still_comes_in_at_the_first_is_at_the_second_only() -> (
    None
):
    """A door that welcomed it nevertheless would hold a client to which nothing ever comes."""
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 1.0})
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        device = Device(door_of(first))
        await device.come_in()
        await device.subscribe()
        device.lose()
        await asyncio.sleep(10.0)
        doors = door_of(first), door_of(second)
        early, late = Device(doors[0]), Device(doors[1])
        coming = asyncio.create_task(early.come_in())
        await until_templates(cluster, 2)
        answer = await late.come_in()
        assert answer.reason == 0 and answer.session_present
        assert (await coming).reason >= 0x80 or early.is_closed
        await first.emit(subject="truck", type="load", address="7", data={})
        assert await late.names(1) == {"truck/load/7"}
        for door in doors:
            await door.stop()


@in_virtual_time
async def test_who_has_said_connect_is_not_late_however_long_the_space_takes() -> None:
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 6.0})
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        await device.subscribe()
        device.lose()
        await asyncio.sleep(100.0)
        before_s = asyncio.get_running_loop().time()
        assert (await Device(door).come_in()).reason == 0
        assert asyncio.get_running_loop().time() - before_s > Limits().connect_s
        await door.stop()


def truck(number: int, version: int = V5) -> bytes:
    return write(Publish("truck/load/7", b"%d" % number, 1, packet_id=number), version)


def trucks(numbers: Iterable[int], *, dup: bool = False) -> list[bytes]:
    """A message of each of these trucks."""
    return [
        write(Publish(f"truck/load/{n}", b"%d" % n, 1, dup=dup, packet_id=n), V5) for n in numbers
    ]


async def loads(space: Space) -> list[int]:
    return sorted([one.data["value"] async for one in space.read(subject="truck", type="load")])


@in_virtual_time
async def test_what_a_client_said_before_a_wrong_packet_in_the_same_read_is_registered() -> None:
    """Once it is heard it is heard: the client may not send it again."""
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        device.connection.data_received(truck(1) + truck(2) + b"\x36\x00" + truck(3))
        answer = await device.next()
        assert isinstance(answer, Disconnect) and answer.reason == Reason.MALFORMED_PACKET
        await door.rooms.drained()
        assert await loads(space) == [1, 2]
        await door.stop()


@in_virtual_time
async def test_of_a_client_with_too_many_messages_under_way_the_rest_of_a_read_waits() -> None:
    """Of MQTT 3.1.1, which cannot be told how many it may have."""
    cluster = TwinCluster(one_line(1, "a"), slow_calls={"a": 1.0})
    async with space_of(cluster, 1) as space:
        door = Door(space, OneSpace(space), None, read_mapping(""), Limits(receive_maximum=3))
        device = Device(door, version=V311)
        await device.come_in(clean=True)
        said = b"".join(truck(number, V311) for number in range(1, 6))
        device.connection.data_received(said)
        assert device.connection.client is not None
        assert device.connection.client.session.pending == 3
        answers = [await device.next() for _ in range(5)]
        assert answers == [Ack(Kind.PUBACK, number) for number in range(1, 6)]
        assert await loads(space) == [1, 2, 3, 4, 5]
        await door.stop()


class Looked(TwinCluster):
    """How often something was read."""

    times = 0

    def read(self, address: str, request: pb.ReadRequest) -> AsyncGenerator[pb.ReadChunk, None]:
        self.times += 1
        return super().read(address, request)


@in_virtual_time
async def test_messages_that_are_sent_again_to_another_door_are_looked_for_together() -> None:
    """Found with a door killed under 3,600 clients: a reading for each of 36,000 messages, and none was answered in time."""
    cluster = Looked(one_line(1, "a"))
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        device = Device(door_of(first))
        await device.come_in()
        device.connection.data_received(b"".join(trucks(range(1, 151))))
        for _ in range(150):
            assert isinstance(await device.next(), Ack)
        device.lose()
        door = door_of(second)
        device = Device(door)
        await device.come_in()
        before = cluster.times
        device.connection.data_received(b"".join(trucks(range(1, 201), dup=True)))
        answers = [await device.next() for _ in range(200)]
        assert answers == [Ack(Kind.PUBACK, number) for number in range(1, 201)]
        assert cluster.times - before <= 4  # a hundred with each
        assert await loads(second) == list(range(1, 201))
        await door.stop()


@in_virtual_time
async def test_a_message_sent_again_is_found_beside_one_whose_name_has_very_many() -> None:
    """What is looked for together is looked through to a limit: then each has it for itself."""
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        device.connection.data_received(b"".join(trucks([1])))
        await device.next()
        many = [{"subject": "truck", "type": "load", "address": "2", "data": {"value": 2}}] * 1_500
        await space.emit_many(many)
        device.connection.data_received(b"".join(trucks([1, 2], dup=True)))
        for number in (1, 2):
            assert await device.next() == Ack(Kind.PUBACK, number)
        assert (await loads(space)).count(1) == 1
        await door.stop()


@in_virtual_time
async def test_a_session_that_cannot_be_renewed_for_now_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        client = device.connection.client
        assert client is not None
        cluster.cut("a")
        client._renewed_s -= RENEWED_S
        client.tick()
        await asyncio.sleep(20.0)
        said = [record.getMessage() for record in caplog.records]
        assert any("session could not be kept" in one for one in said)
        assert not [one for one in said if "failed" in one]
        cluster.mend("a")
        await door.stop()


WILL = Will("truck/load/will", b"0", 1, properties={Property.WILL_DELAY_INTERVAL: 10})


@pytest.mark.parametrize("back", ["here", "elsewhere", "elsewhere anew", "nowhere"])
@in_virtual_time
async def test_a_will_that_waits_comes_unless_its_client_does_at_whichever_door(back: str) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        here, elsewhere = door_of(first), door_of(second)
        device = Device(here)
        await device.come_in(will=WILL)
        device.lose()
        await asyncio.sleep(5.0)
        if back != "nowhere":
            again = Device(here if back == "here" else elsewhere)
            answer = await again.come_in(clean=back == "elsewhere anew")
            assert answer.session_present == (back != "elsewhere anew")
        assert await loads(second) == []
        await asyncio.sleep(20.0)
        assert await loads(second) == ([] if back in ("here", "elsewhere") else [0])
        for door in (here, elsewhere):
            await door.stop()


@in_virtual_time
async def test_a_kept_session_without_subscriptions_ends_where_its_client_was_before() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, 1) as first, space_of(cluster, 2) as second:
        here, elsewhere = door_of(first), door_of(second)
        before, after = Device(here), Device(elsewhere)
        await before.come_in()
        assert (await after.come_in()).session_present
        for device in (before, after):
            client = device.connection.client
            assert client is not None
            client._renewed_s -= RENEWED_S
            client.tick()
            await asyncio.sleep(5.0)
        assert await before.next() == Disconnect(Reason.SESSION_TAKEN_OVER)
        assert not after.is_closed
        for door in (here, elsewhere):
            await door.stop()


@pytest.mark.parametrize(
    ("level", "answer"),
    [
        (b"\x00\x04MQTT\x09", b"\x20\x03\x00\x84\x00"),
        (b"\x00\x04MQTT\x03", b"\x20\x02\x00\x01"),
        (b"\x00\x06MQIsdp\x03", b"\x20\x02\x00\x01"),
        (b"\x00\x06MQ", b""),
    ],
)
@in_virtual_time
async def test_an_unknown_version_is_refused_in_words_it_can_read(
    level: bytes, answer: bytes
) -> None:
    """MQTT 3.1 calls itself MQIsdp, and reads no more than 3.1.1 does."""
    async with space_of(TwinCluster(one_line(1, "a")), 1) as space:
        door = door_of(space)
        device = Device(door)
        body = level + b"\x02\x00\x3c\x00\x02id"
        device.connection.data_received(bytes((0x10, len(body))) + body)
        await asyncio.sleep(1.0)
        assert device.is_closed
        assert bytes(device._buffer) == answer
        await door.stop()


@in_virtual_time
async def test_nothing_is_kept_of_what_comes_after_a_connection_has_ended() -> None:
    """A WebSocket whose client does not answer the goodbye stays open for a while."""
    async with space_of(TwinCluster(one_line(1, "a")), 1) as space:
        door = door_of(space)
        device = Device(door)
        await device.come_in()
        device.connection.data_received(b"\x00\x00")
        assert device.is_closed
        device.connection.data_received(bytes(1 << 20))
        assert len(device.connection._buffer) <= 2
        await door.stop()
