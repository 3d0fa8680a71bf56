"""The MQTT door, packet by packet: what brokers do for their clients, and what this one does for the space.

The behaviours are those that Eclipse's interoperability tests look at (paho.mqtt.testing), one test each.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.system.mqtt_door import MqttDoor, door_before
from tests.system.mqtt_wire import Wire, connected
from tests.waiting import until
from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Ack,
    Filter,
    Kind,
    Property,
    Publish,
    Subscribe,
    Will,
)
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.codec.writing import write

pytestmark = pytest.mark.slow
BOTH = pytest.mark.parametrize("version", [V311, V5])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2") as running:
        yield running


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttDoor]:
    with door_before(cluster, tmp_path_factory.mktemp("door"), "--connect-s", "1") as running:
        yield running


@pytest.fixture
def name() -> str:
    """A level of names that no other test uses."""
    return uuid4().hex[:8]


@pytest.fixture
async def space(cluster: Cluster) -> AsyncIterator[Any]:
    async with utuple.connect(cluster.at) as connected_space:
        yield connected_space


def kept(version: int, expiry_s: int = 100) -> dict[str, Any]:
    """A session that outlives its connection."""
    properties = {"session_expiry_interval": expiry_s} if version == V5 else {}
    return {"clean_start": False, "properties": properties}


@BOTH
def test_every_qos_reaches_a_subscriber_as_it_was_published(
    door: MqttDoor, name: str, version: int
) -> None:
    with connected(door.port, name, version) as client:
        assert client.subscribe(name) == (2,)
        for qos in range(3):
            assert client.publish(name, b"qos %d" % qos, qos) == 0
        found = {(message.qos, message.payload, message.retain) for message in client.messages(3)}
        assert found == {(qos, b"qos %d" % qos, False) for qos in range(3)}
        assert client.more() == []


@BOTH
def test_a_retained_message_waits_for_who_comes_later_until_an_empty_one_ends_it(
    door: MqttDoor, name: str, version: int
) -> None:
    said = {Property.USER_PROPERTY: (("a", "2"), ("c", "3"))} if version == V5 else {}
    with connected(door.port, name, version) as client:
        for qos in range(3):
            client.publish(f"{name}/{qos}", b"kept", qos, retain=True, properties=said)
        client.publish(f"{name}/last")
        client.subscribe(f"{name}/+")
        found = client.messages(3)
        assert sorted(message.qos for message in found) == [0, 1, 2]
        assert all(message.retain and message.properties == said for message in found)
        client.unsubscribe(f"{name}/+")
        for qos in range(3):
            client.publish(f"{name}/{qos}", b"", qos, retain=True)
        client.publish(f"{name}/last")
        client.subscribe(f"{name}/+")
        assert client.more() == []


def test_a_will_comes_when_a_client_goes_without_a_word_and_not_when_it_says_goodbye(
    door: MqttDoor, name: str
) -> None:
    with connected(door.port, f"{name}-w") as watching:
        watching.subscribe(name)
        for word in (True, False):
            will = Will(name, b"with a word" if word else b"without")
            with connected(door.port, name, will=will) as client:
                if word:
                    client.disconnect()
        assert watching.message().payload == b"without"
        assert watching.more() == []


def test_a_will_waits_for_its_delay_and_never_comes_if_its_client_does(
    door: MqttDoor, name: str
) -> None:
    will = Will(name, b"gone", properties={Property.WILL_DELAY_INTERVAL: 1})
    with connected(door.port, f"{name}-w") as watching:
        watching.subscribe(name)
        with connected(door.port, name, will=will, **kept(V5)):
            """It breaks."""
        with connected(door.port, name, will=will, **kept(V5)):
            assert watching.more(1.5) == []
        before_s = time.monotonic()
        assert watching.message().payload == b"gone"
        assert 0.9 < time.monotonic() - before_s < 5


@BOTH
def test_a_kept_session_gets_what_came_while_it_was_away_once(
    door: MqttDoor, name: str, version: int
) -> None:
    with connected(door.port, name, version, **kept(version)) as client:
        client.subscribe(f"{name}/+")
        client.disconnect()
    with connected(door.port, f"{name}-p", version) as other:
        for number in range(20):
            other.publish(f"{name}/x", b"%d" % number, 1 + number % 2)
    client = Wire(door.port, version)
    assert client.connect(name, **kept(version)).session_present
    assert [message.payload for message in client.messages(20)] == [b"%d" % n for n in range(20)]
    client.publish(name)  # what it has acknowledged is heard before that
    client.disconnect()
    with connected(door.port, name, version, **kept(version)) as client:
        assert client.more() == []


def test_a_message_comes_once_however_many_filters_match_and_says_by_which(
    door: MqttDoor, name: str
) -> None:
    with connected(door.port, name) as client:
        for number, pattern in ((2, name), (3, f"{name}/#")):
            client.subscribe(pattern, properties={Property.SUBSCRIPTION_IDENTIFIER: (number,)})
        client.publish(name)
        assert client.message().properties[Property.SUBSCRIPTION_IDENTIFIER] == (2, 3)
        assert client.more() == []


@BOTH
def test_what_a_client_has_not_acknowledged_is_sent_again(
    door: MqttDoor, name: str, version: int
) -> None:
    with connected(door.port, name, version, **kept(version)) as client:
        client.subscribe(f"{name}/#")
        client.answers = False
        client.say(
            Publish(f"{name}/1", b"1", 1, packet_id=11), Publish(f"{name}/2", b"2", 2, packet_id=12)
        )
        first = {message.packet_id: message.payload for message in client.messages(2)}
    with connected(door.port, name, version, **kept(version)) as client:
        again = client.messages(2)
        assert {message.packet_id: message.payload for message in again} == first
        assert all(message.dup for message in again)
        assert client.more() == []


def test_names_that_begin_with_a_dollar_are_for_filters_that_do(door: MqttDoor, name: str) -> None:
    with connected(door.port, name) as client:
        client.subscribe(f"+/{name}", "#")
        client.publish(f"$x/{name}")
        assert [one for one in client.more() if name in one.topic] == []
        client.subscribe(f"$x/{name}/#")
        client.publish(f"$x/{name}")
        assert client.message().topic == f"$x/{name}"


def test_a_session_lasts_as_long_as_it_was_asked_for(door: MqttDoor, name: str) -> None:
    def is_present(clean_start: bool, expiry_s: int, **goodbye: int) -> bool:
        client = Wire(door.port)
        said = {"session_expiry_interval": expiry_s}
        present = client.connect(name, clean_start=clean_start, properties=said).session_present
        client.subscribe(name)
        client.disconnect(**goodbye)
        return present

    assert not is_present(True, 0)
    assert not is_present(False, 0), "it ended at once"
    assert not is_present(True, 1)
    assert is_present(False, 1)
    time.sleep(1.6)
    assert not is_present(False, 1, session_expiry_interval=60), "it has expired"
    assert is_present(False, 1, session_expiry_interval=0)
    assert not is_present(False, 100), "it was said to end at the goodbye"
    assert not is_present(True, 100)
    assert is_present(False, 100)


def test_a_message_that_has_expired_is_not_delivered_and_others_say_what_is_left(
    door: MqttDoor, name: str
) -> None:
    with connected(door.port, name, **kept(V5)) as client:
        client.subscribe(name)
    with connected(door.port, f"{name}-p") as other:
        for expiry_s in (1, 60):
            said = {Property.MESSAGE_EXPIRY_INTERVAL: expiry_s}
            other.publish(name, b"%d" % expiry_s, properties=said)
    time.sleep(1.6)
    with connected(door.port, name, **kept(V5)) as client:
        message = client.message()
        assert message.payload == b"60"
        assert 50 < message.properties[Property.MESSAGE_EXPIRY_INTERVAL] < 60
        assert client.more() == []


def test_options_of_a_subscription(door: MqttDoor, name: str) -> None:
    with connected(door.port, name) as client, connected(door.port, f"{name}-2") as other:
        for one in (client, other):
            one.subscribe(name, no_local=True, retain_as_published=True)
        client.publish(name, b"1")
        client.publish(name, b"2", retain=True)
        assert [message.retain for message in other.messages(2)] == [False, True]
        assert client.more() == []
        for handling, count in ((2, 0), (1, 0), (0, 1)):
            other.subscribe(name, retain_handling=handling)
            assert len(other.more()) == count, handling


def test_aliases_both_ways(door: MqttDoor, name: str) -> None:
    alias = {Property.TOPIC_ALIAS: 1}
    with connected(door.port, name, properties={"topic_alias_maximum": 1}) as client:
        client.subscribe(name)
        client.publish(name, b"1", properties=alias)
        client.publish("", b"2", properties=alias)
        found = client.messages(2)
        assert [(one.topic, one.payload) for one in found] == [(name, b"1"), ("", b"2")]


def test_limits_on_packets_and_on_what_is_under_way(door: MqttDoor, name: str) -> None:
    said = {"maximum_packet_size": 64, "receive_maximum": 2}
    with connected(door.port, name, properties=said, keep_alive_s=120) as client:
        client.answers = False
        client.subscribe(name)
        client.publish(name, 64 * b".", 1)
        for number in range(3):
            client.publish(name, b"%d" % number, 1)
        found = client.messages(2)
        assert [message.payload for message in found] == [b"0", b"1"]
        assert client.more() == []
        client.say(Ack(Kind.PUBACK, found[0].packet_id))
        assert client.message().payload == b"2"


def test_five_thousand_messages_at_once_are_acknowledged_in_order_and_a_large_one_goes_through(
    door: MqttDoor, name: str
) -> None:
    with connected(door.port, name, V311) as client:
        numbers = range(1, 5_001)
        client.say(*(Publish(f"{name}/load/t", b"%d" % n, 1, packet_id=n) for n in numbers))
        acks = [client.until(lambda packet: isinstance(packet, Ack)) for _ in numbers]
        assert acks == [Ack(Kind.PUBACK, number) for number in numbers]
    large = 600_000 * b"x"
    with connected(door.port, name, V311) as client:
        client.subscribe(f"{name}/load/#")
        client.publish(f"{name}/load/t", large)
        assert client.message().payload == large


def test_what_a_client_is_told_when_it_comes_in(door: MqttDoor, name: str) -> None:
    client = Wire(door.port)
    answer = client.connect("", keep_alive_s=120).properties
    assert answer[Property.SERVER_KEEP_ALIVE] == 60
    assert answer[Property.ASSIGNED_CLIENT_IDENTIFIER]
    client.say(
        *(
            Publish(name, b"x", 2, packet_id=n + 1)
            for n in range(answer[Property.RECEIVE_MAXIMUM] + 1)
        )
    )
    client.answers = False
    assert client.goodbye() == Reason.RECEIVE_MAXIMUM_EXCEEDED
    assert Wire(door.port, V311).connect("", clean_start=False).reason == Reason.CLIENT_ID_NOT_VALID


def test_a_client_that_comes_twice_is_there_once(door: MqttDoor, name: str) -> None:
    with connected(door.port, name) as first, connected(door.port, name) as second:
        assert first.goodbye() == Reason.SESSION_TAKEN_OVER
        second.subscribe(name)
        second.publish(name)
        assert second.message().topic == name


def test_a_client_that_falls_silent_is_let_go(door: MqttDoor, name: str) -> None:
    with connected(door.port, f"{name}-w") as watching:
        watching.subscribe(name)
        with connected(door.port, name, keep_alive_s=1, will=Will(name, b"silent")) as client:
            assert client.goodbye() == Reason.KEEP_ALIVE_TIMEOUT
        assert watching.message().payload == b"silent"


BAD = [
    ("a wildcard in PUBLISH", b"\x30\x06\x00\x03a/+\x00", Reason.TOPIC_NAME_INVALID),
    ("bad UTF-8", b"\x30\x06\x00\x03\xff\xfe\xfd\x00", Reason.MALFORMED_PACKET),
    ("a malformed length", b"\x30\xff\xff\xff\xff\x01", Reason.MALFORMED_PACKET),
    ("an oversize packet", b"\x30\xff\xff\xff\x7f", Reason.PACKET_TOO_LARGE),
    ("packet id 0", b"\x32\x06\x00\x01a\x00\x00\x00", Reason.PROTOCOL_ERROR),
    ("alias 0", b"\x30\x07\x00\x01a\x03\x23\x00\x00", Reason.TOPIC_ALIAS_INVALID),
    (
        "a second CONNECT",
        b"\x10\x0f\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x02id",
        Reason.PROTOCOL_ERROR,
    ),
    ("what servers say", b"\x90\x04\x00\x01\x00\x00", Reason.PROTOCOL_ERROR),
]


@pytest.mark.parametrize(("what", "data", "reason"), BAD, ids=[one[0] for one in BAD])
def test_who_breaks_a_rule_is_told_which_and_nobody_else_notices(
    door: MqttDoor, name: str, what: str, data: bytes, reason: Reason
) -> None:
    with connected(door.port, f"{name}-o") as other, connected(door.port, name) as client:
        other.subscribe(name)
        client.say_bytes(data)
        assert client.goodbye() == reason
        other.publish(name)
        assert other.message().payload == b"x"


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\x10\x0e\x00\x02hj\x04\x02\x00\x00\x00\x02id\x00\x00", b"\x20\x02\x00\x01"),
        (b"\x10\x0e\x00\x04MQTT\x09\x02\x00\x00\x00\x02id", b"\x20\x03\x00\x84\x00"),
        (b"\x30\x03\x00\x01a", b""),
        (b"GET / HTTP/1.1\r\n\r\n", b""),
        (b"", b"\x20\x02\x00\x03"),
    ],
)
def test_who_does_not_begin_with_connect_does_not_come_in(
    door: MqttDoor, data: bytes, answer: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=20) as raw:
        raw.sendall(data)
        found = b""
        while more := raw.recv(100):
            found += more
    assert found == answer


def test_rubbish_harms_nobody_and_leaves_nothing(door: MqttDoor, name: str) -> None:
    dice = random.Random(7)
    sound = write(Publish(f"{name}/any/thing", b"x", 1, packet_id=3), V5)
    with connected(door.port, name) as other:
        other.subscribe(name)
        for number in range(200):
            client = Wire(door.port)
            if number % 2:
                client.connect(f"{name}{number}")
            rubbish = bytearray(sound * 3)
            for _ in range(dice.randint(1, 6)):
                rubbish[dice.randrange(len(rubbish))] = dice.randrange(256)
            with suppress(ConnectionError):
                client.say_bytes(dice.randbytes(40) if number % 4 == 0 else bytes(rubbish))
            client.close()
        other.publish(name)
        assert other.message().payload == b"x"
    pid = door.process.pid
    until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < 60, "the connections are closed")


def test_subscriptions_that_cannot_be_are_refused_one_by_one(door: MqttDoor, name: str) -> None:
    with connected(door.port, name) as client:
        asked = (
            "$share/g",
            "$share/+/x",
            "$share/g/cmd/aircon/power/a",
            "a/#/b",
            "cmd/aircon/#",
            name,
        )
        assert client.subscribe(*asked) == (0x8F, 0x8F, 0x8F, 0x8F, 0x8F, 2)
        wrong = {Property.USER_PROPERTY: (("area", "nowhere"),)}
        assert client.subscribe("truck/load/#", properties=wrong) == (0x83,)
        assert client.unsubscribe(name, "never") == (0, 0x11)


# --- shared subscriptions ---------------------------------------------------------------------------


@BOTH
def test_of_those_that_share_a_subscription_each_message_goes_to_one(
    door: MqttDoor, name: str, version: int
) -> None:
    asked = f"{name}/load/#"
    with (
        connected(door.port, name + "1", version) as first,
        connected(door.port, name + "2", version) as second,
        connected(door.port, name + "3", version) as alone,
        connected(door.port, name + "4", version) as other,
    ):
        first.publish(f"{name}/load/before", b"before", retain=True)
        assert other.subscribe(f"$share/others/{asked}") == (2,)
        for member in (first, second):
            assert member.subscribe(f"$share/workers/{asked}") == (2,)
        alone.subscribe(asked, retain_handling=2 if version == V5 else 0)
        for number in range(60):
            alone.publish(f"{name}/load/t{number}", b"%d" % number, qos=1 + number % 2)
        everything = {b"%d" % number for number in range(60)}
        came: list[set[bytes]] = []
        for member in (first, second):
            came.append({message.payload for message in member.more(1.0)})
        assert came[0] | came[1] == everything
        assert not came[0] & came[1]
        assert {message.payload for message in other.more(1.0)} == everything, "another group"
        assert {message.payload for message in alone.more(1.0)} - {b"before"} == everything


def test_what_a_member_of_a_group_did_not_acknowledge_goes_to_another(
    door: MqttDoor, name: str
) -> None:
    shared = f"$share/workers/{name}/load/#"
    with connected(door.port, name + "2") as second, connected(door.port, name + "3") as other:
        lost = Wire(door.port)
        lost.connect(name + "1")
        lost.subscribe(shared)
        lost.answers = False
        for number in range(10):
            other.publish(f"{name}/load/t{number}", b"%d" % number)
        assert len(lost.messages(10)) == 10
        assert second.subscribe(shared) == (2,)
        lost.close()
        found = {message.payload for message in second.messages(10)}
        assert found == {b"%d" % number for number in range(10)}


def test_who_leaves_a_group_leaves_the_others_in_it(door: MqttDoor, name: str) -> None:
    """And what the group has had does not come again."""
    shared = f"$share/workers/{name}/load/#"
    with connected(door.port, name + "1") as first, connected(door.port, name + "2") as second:
        first.subscribe(shared)
        second.subscribe(shared)
        for number in range(10):
            first.publish(f"{name}/load/t{number}", b"before")
        assert len([*first.more(1.0), *second.more(1.0)]) == 10
        assert first.unsubscribe(shared) == (0,)
        for number in range(10):
            first.publish(f"{name}/load/t{number}", b"%d" % number)
        assert {m.payload for m in second.messages(10)} == {b"%d" % n for n in range(10)}
        assert first.more() == second.more() == []


def test_a_shared_subscription_is_not_local(door: MqttDoor, name: str) -> None:
    with connected(door.port, name) as client:
        client.say(Subscribe(1, (Filter(f"$share/g/{name}", 1, no_local=True),), {}))
        assert client.goodbye() == Reason.PROTOCOL_ERROR


# --- the space ------------------------------------------------------------------------------------


async def test_events_go_both_ways_with_position_and_data(
    door: MqttDoor, name: str, space: utuple.Space
) -> None:
    with connected(door.port, name) as client:
        client.publish(f"{name}/load/t-1", b'{"kg": 1200, "lat": 35.5, "lon": 139.5}')
        found = [
            event
            async for event in space.read(
                subject=name, type="load", where={"kg": utuple.at_least(1000)}
            )
        ]
        assert [(event.address, event.position) for event in found] == [("t-1", (35.5, 139.5))]
        client.subscribe(f"{name}/load/+", qos=1)
        await space.emit(subject=name, type="load", address="t-2", data={"kg": 5})
        message = client.message()
        assert (message.topic, message.payload, message.qos) == (f"{name}/load/t-2", b'{"kg":5}', 1)
        await space.emit(subject=name, type="load", address="deeper/t-3", data={})
        assert client.more() == []


async def test_stored_then_live_for_who_asks_with_conditions(
    door: MqttDoor, name: str, space: utuple.Space
) -> None:
    with connected(door.port, name) as client:
        for kg in (1, 5):
            client.publish(f"{name}/load/t", b'{"kg":%d}' % kg)
        pairs = (("since", "1h"), ("where", "kg>=5"))
        client.subscribe(f"{name}/load/#", properties={Property.USER_PROPERTY: pairs})
        for kg in (2, 6):
            client.publish(f"{name}/load/t", b'{"kg":%d}' % kg)
        assert [message.payload for message in client.messages(2)] == [b'{"kg":5}', b'{"kg":6}']
        assert client.more() == []


async def test_commands_go_both_ways(door: MqttDoor, name: str, space: utuple.Space) -> None:
    topic = f"cmd/{name}/power/room-1"
    with connected(door.port, name) as device, connected(door.port, f"{name}-a") as application:
        assert application.publish(topic, b'{"on":true}') == Reason.NO_MATCHING_SUBSCRIBERS
        device.subscribe(topic, qos=1)
        receipt = await space.command(
            subject=name, type="power", address="room-1", data={"on": True}
        )
        assert receipt
        assert device.message().payload == b'{"on":true}'
        assert application.publish(topic, b"off") == 0
        message = device.message()
        assert (message.topic, message.payload) == (topic, b"off")


async def test_the_newest_event_of_an_address_is_its_retained_message(
    door: MqttDoor, name: str, space: utuple.Space
) -> None:
    for kg in (1, 2):
        await space.emit(subject=name, type="load", address="t", data={"kg": kg})
    with connected(door.port, name) as client:
        client.subscribe(f"{name}/load/t")
        message = client.message()
        assert (message.payload, message.retain) == (b'{"kg":2}', True)


def test_a_filter_over_several_families_reaches_those_that_come_later(
    door: MqttDoor, name: str
) -> None:
    with connected(door.port, name) as client, connected(door.port, f"{name}-p") as other:
        client.say(Subscribe(1, (Filter("#", 2), Filter(f"+/{name}/#", 2))))
        client.publish("ready")
        other.publish(f"a{name}/{name}/c", b"1")
        other.publish(f"{name}/message", b"2")
        found: set[tuple[str, bytes]] = set()
        while len(found) < 2:
            message = client.message()
            if name in message.topic:
                found.add((message.topic, message.payload))
        assert found == {(f"a{name}/{name}/c", b"1"), (f"{name}/message", b"2")}


def test_a_filter_that_comes_to_reach_more_families_than_a_door_opens_ends_with_the_reason(
    cluster: Cluster, name: str, tmp_path: Any
) -> None:
    with door_before(cluster, tmp_path, "--families", "3") as small:
        with connected(small.port, name) as client, connected(small.port, f"{name}p") as other:
            assert client.subscribe(f"{name}/#") == (2,)
            for number in range(3):
                other.publish(f"{name}/{number}/x", b"%d" % number)
                assert client.message().payload == b"%d" % number
            other.publish(f"{name}/3/x")
            assert client.goodbye() == Reason.QUOTA_EXCEEDED
            assert other.subscribe(f"{name}/#") == (0x97,)


def test_bytes_come_out_as_they_came_in(door: MqttDoor, name: str) -> None:
    payloads = [
        b"",
        b"\0\xff",
        b"21.50",
        b'{ "kg":1 }',
        b'{"kg": 1}',
        b'{"":1}',
        b'"\\u0000"',
        b"[" * 40 + b"]" * 40,
    ]
    with connected(door.port, name) as client:
        client.subscribe(f"{name}/any/thing", name)
        for topic in (f"{name}/any/thing", name):
            for payload in payloads:
                assert client.publish(topic, payload) == 0
            assert [message.payload for message in client.messages(len(payloads))] == payloads


async def test_what_the_sdk_says_and_mqtt_cannot_stops_nobody(
    door: MqttDoor, name: str, space: utuple.Space
) -> None:
    with connected(door.port, name) as client:
        client.subscribe(f"{name}/load/#")
        strange: list[tuple[str, dict[str, Any]]] = [
            ("a+b", {}),
            ("#", {}),
            ("t", {"$mqtt": {"user": 5, "expires_s": "x", "form": 4}}),
            ("t", {"b": b"\xff"}),
        ]
        for address, data in strange:
            await space.emit(subject=name, type="load", address=address, data=data)
        await space.emit(subject=name, type="load", address="t", data={"last": 1})
        found = [(message.topic, message.payload) for message in client.messages(3)]
        payloads = (b"{}", b'{"b":"ff"}', b'{"last":1}')
        assert found == [(f"{name}/load/t", payload) for payload in payloads]


def test_messages_sent_again_to_another_door_after_the_first_was_killed_are_one_event_each(
    cluster: Cluster, door: MqttDoor, name: str, tmp_path: Any
) -> None:
    """Some were registered when it was killed and some not, some were acknowledged and some not."""
    first = MqttDoor(cluster, tmp_path / "first.log")
    clients = [Wire(first.port) for _ in range(40)]
    for number, client in enumerate(clients):
        client.answers = False
        client.connect(f"{name}{number}", **kept(V5))
    for number, client in enumerate(clients):
        client.say(Publish(f"{name}/load/t{number}", b"%d" % number, 1 + number % 2, packet_id=7))
        if number == 30:
            clients[0].next()
    first.kill()
    for number, client in enumerate(clients):
        client.close()
        with connected(door.port, f"{name}{number}", **kept(V5)) as again:
            again.publish(
                f"{name}/load/t{number}", b"%d" % number, 1 + number % 2, packet_id=7, dup=True
            )
    with utuple.blocking.connect(cluster.at) as space:
        found = sorted(event.data["value"] for event in space.read(subject=name, type="load"))
    assert found == list(range(40))


def test_a_mapping_may_refuse_names_and_a_door_is_full_at_some_time(
    cluster: Cluster, name: str, tmp_path: Any
) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(f"unmapped = 'refuse'\n[events]\nfamilies = ['{name}/load']")
    with door_before(cluster, tmp_path, "--mapping", str(mapping), "--connections", "2") as strict:
        with (
            connected(strict.port, name) as client,
            connected(strict.port, f"{name}2", V311) as old,
        ):
            assert Wire(strict.port).connect(f"{name}3").reason == Reason.SERVER_BUSY
            assert Wire(strict.port, V311).connect(f"{name}4").reason.name == "SERVER_UNAVAILABLE"
            assert client.subscribe(f"{name}/load/#", "+/load/t", name) == (2, 2, 0x8F)
            assert client.publish(f"{name}/speed/t") == Reason.TOPIC_NAME_INVALID
            assert client.publish(f"{name}/load/t") == 0
            assert client.message().topic == f"{name}/load/t"
            old.say(Publish(f"{name}/speed/t", b"x", 1, packet_id=1))
            assert old.goodbye() is None, "3.1.1 cannot say no"


def test_a_door_says_goodbye_and_a_session_goes_on_at_the_next(
    cluster: Cluster, door: MqttDoor, name: str, tmp_path: Any
) -> None:
    with door_before(cluster, tmp_path) as other_door:
        with connected(other_door.port, name, **kept(V5)) as client:
            client.subscribe(name)
            other_door.process.terminate()
            assert client.goodbye() == Reason.SERVER_SHUTTING_DOWN
        other_door.process.wait()
        with connected(door.port, f"{name}-p") as publisher:
            publisher.publish(name, b"missed")
        again = Wire(door.port)
        assert again.connect(name, **kept(V5)).session_present
        assert again.message().payload == b"missed"


def test_a_session_that_moves_to_another_door_leaves_the_first(
    cluster: Cluster, door: MqttDoor, name: str, tmp_path: Any
) -> None:
    with (
        door_before(cluster, tmp_path) as other_door,
        connected(door.port, name, **kept(V5)) as first,
    ):
        first.subscribe(name)
        second = Wire(other_door.port)
        assert second.connect(name, **kept(V5)).session_present
        assert first.goodbye() == Reason.SESSION_TAKEN_OVER
        second.publish(name)
        assert second.message().payload == b"x"
        second.disconnect()
        back = Wire(door.port)
        assert back.connect(name, **kept(V5)).session_present
        back.publish(name, b"y")
        assert back.message().payload == b"y"
