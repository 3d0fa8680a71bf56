"""What Eclipse's interoperability tests ask of an MQTT server (paho.mqtt.testing, client_test.py and client_test5.py), in our own
words, case by case under their names: 10 for 3.1.1 and 27 for 5. Where they sleep, these wait for what must come.

A case is given a `Ground`, with a server's port and names that no other case uses, and raises if the server does otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.system.mqtt_wire import Gone, Wire, connected
from utuple.doors.mqtt.codec.packets import V5, Ack, Connect, Kind, Property, Publish, Will
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.codec.writing import write

_LATER_S = 3.0
"""What does not come within this time does not come."""
_USER = {Property.USER_PROPERTY: (("a", "2"), ("c", "3"))}


class Ground:
    def __init__(self, port: int, version: int, name: str, refused: str) -> None:
        self.port = port
        self.version = version
        self.name = name
        self.refused = refused
        """A filter that this server does not allow; Eclipse's tests are told one, too."""
        levels = ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")
        self.topics = tuple(f"{name}/{levels_of}" for levels_of in levels)
        wild = ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")
        self.wild = tuple(f"{name}/{levels_of}" for levels_of in wild)

    def a(self, **said: Any) -> AbstractContextManager[Wire]:
        return connected(self.port, f"{self.name}-a", self.version, **said)

    def b(self, **said: Any) -> AbstractContextManager[Wire]:
        return connected(self.port, f"{self.name}-b", self.version, **said)

    def kept(self, expiry_s: int = 1_000) -> dict[str, Any]:
        properties = {"session_expiry_interval": expiry_s} if self.version == V5 else {}
        return {"clean_start": False, "properties": properties}


Case = Callable[[Ground], None]


def basic(ground: Ground) -> None:
    with ground.a() as client:
        client.disconnect()
    with ground.a() as client:
        client.subscribe(ground.topics[0])
        for qos in range(3):
            client.publish(ground.topics[0], b"qos %d" % qos, qos)
        assert {one.qos for one in client.messages(3)} == {0, 1, 2}
        client.disconnect()
    with ground.a() as client:
        client.say(Connect(f"{ground.name}-a", ground.version))
        assert client.goodbye() != 0
    stranger = Wire(ground.port, ground.version)
    said = write(Connect("x", ground.version), ground.version)
    stranger.say_bytes(said.replace(b"\x00\x04MQTT", b"\x00\x04hjhj"))
    assert stranger.goodbye() != 0


def retained_messages(ground: Ground) -> None:
    said = _USER if ground.version == V5 else {}
    with ground.a() as client:
        for qos in range(3):
            client.publish(
                ground.topics[1 + qos], b"qos %d" % qos, qos, retain=True, properties=said
            )
        client.subscribe(ground.wild[5])
        found = client.messages(3)
        assert {one.qos for one in found} == {0, 1, 2}
        assert all(one.retain and one.properties == said for one in found)
    with ground.a() as client:
        for qos in range(3):
            client.publish(ground.topics[1 + qos], b"", qos, retain=True)
        client.publish(ground.topics[0])
        client.subscribe(ground.wild[5])
        assert client.more(_LATER_S) == []


def will_message(ground: Ground) -> None:
    with ground.b(**ground.kept()) as other:
        other.subscribe(ground.topics[2])
        with ground.a(will=Will(ground.topics[2], b"not disconnected"), keep_alive_s=2):
            """It breaks."""
        assert other.message().payload == b"not disconnected"
        assert other.more() == []


def zero_length_clientid(ground: Ground) -> None:
    for clean in (False, True):
        client = Wire(ground.port, ground.version)
        try:
            is_in = client.connect("", clean_start=clean).reason == 0
        except Gone:
            is_in = False
        assert is_in == (clean or ground.version == V5)
        client.close()


def offline_message_queueing(ground: Ground) -> None:
    with ground.a(**ground.kept()) as client:
        client.subscribe(ground.wild[5])
        client.disconnect()
    with ground.b() as other:
        for qos in range(3):
            other.publish(ground.topics[1 + qos], b"qos %d" % qos, qos)
    with ground.a(**ground.kept()) as client:
        assert {1, 2} <= {one.qos for one in [*client.messages(2), *client.more(1.0)]} <= {0, 1, 2}


def overlapping_subscriptions(ground: Ground) -> None:
    with ground.a() as client:
        client.subscribe(ground.wild[6], qos=2)
        client.subscribe(ground.wild[0], qos=1)
        client.publish(ground.topics[3], b"overlapping", 2)
        found = sorted(one.qos for one in [client.message(), *client.more(1.0)])
        assert found in ([2], [1, 2])


def keepalive(ground: Ground) -> None:
    with ground.b() as other:
        other.subscribe(ground.topics[4])
        with ground.a(keep_alive_s=2, will=Will(ground.topics[4], b"expired")):
            assert other.message(15.0).payload == b"expired"


def redelivery_on_reconnect(ground: Ground) -> None:
    with ground.b(**ground.kept()) as client, ground.a() as other:
        client.subscribe(ground.wild[6])
        client.answers = False
        other.publish(ground.topics[1], b"", 1)
        other.publish(ground.topics[3], b"", 2)
        client.messages(2)
    with ground.b(**ground.kept()) as client:
        assert {one.topic for one in client.messages(2)} == {ground.topics[1], ground.topics[3]}


def subscribe_failure(ground: Ground) -> None:
    with ground.a() as client:
        assert client.subscribe(ground.refused) == (0x80,)


def dollar_topics(ground: Ground) -> None:
    with ground.b() as client:
        client.subscribe("+/+")
        client.more(1.0)  # retained ones of others
        client.publish(f"${ground.name}/x")
        assert [one for one in client.more(1.0) if ground.name in one.topic] == []


def unsubscribe(ground: Ground) -> None:
    with ground.b() as other, ground.a() as client:
        other.subscribe(*ground.topics[:3])
        other.unsubscribe(ground.topics[0])
        for topic in ground.topics[:3]:
            client.publish(topic)
        assert {one.topic for one in other.messages(2)} == set(ground.topics[1:3])
        assert other.more() == []


def session_expiry(ground: Ground) -> None:
    def is_present(clean: bool, expiry_s: int, **goodbye: int) -> bool:
        client = Wire(ground.port)
        said = {"session_expiry_interval": expiry_s}
        name = f"{ground.name}-a"
        present = client.connect(name, clean_start=clean, properties=said).session_present
        client.subscribe(ground.topics[0])
        client.disconnect(**goodbye)
        return present

    assert not is_present(True, 0)
    assert not is_present(False, 0)
    assert not is_present(True, 4)
    time.sleep(1.0)
    assert is_present(False, 1)
    time.sleep(2.5)
    assert not is_present(False, 1)
    assert not is_present(True, 1, session_expiry_interval=6)
    time.sleep(2.5)
    assert is_present(False, 1, session_expiry_interval=0)
    assert not is_present(False, 0)


def shared_subscriptions(ground: Ground) -> None:
    with ground.a() as client, ground.b() as other:
        for one in (client, other):
            one.subscribe(f"$share/sharename/{ground.name}/x", ground.topics[0])
        other.publish(ground.topics[0], b"to both", 0)
        assert client.message().payload == other.message().payload == b"to both"
        other.publish(f"{ground.name}/x", b"to one", 0)
        assert len([*client.more(1.0), *other.more(1.0)]) == 1


def _with_properties(ground: Ground, said: dict[Property, Any]) -> None:
    with ground.a() as client:
        client.subscribe(ground.topics[0])
        for qos in range(3):
            client.publish(ground.topics[0], b"", qos, properties=said)
        found = client.messages(3)
        assert {one.qos for one in found} == {0, 1, 2}
        assert all(one.properties == said for one in found)


def user_properties(ground: Ground) -> None:
    _with_properties(ground, _USER)


def payload_format(ground: Ground) -> None:
    said = {Property.PAYLOAD_FORMAT_INDICATOR: 1, Property.CONTENT_TYPE: "My name"}
    _with_properties(ground, said)


def publication_expiry(ground: Ground) -> None:
    with ground.b(**ground.kept(99_999)) as other:
        other.subscribe(ground.topics[0])
        other.disconnect(session_expiry_interval=999_999_999)
    with ground.a() as client:
        for expiry_s in (1, 6):
            for qos in (1, 2):
                said = {Property.MESSAGE_EXPIRY_INTERVAL: expiry_s}
                client.publish(ground.topics[0], b"%d" % expiry_s, qos, properties=said)
    time.sleep(2.0)
    with ground.b(**ground.kept()) as other:
        for one in other.messages(2):
            assert one.payload == b"6" and one.properties[Property.MESSAGE_EXPIRY_INTERVAL] < 6
        assert other.more() == []


def subscribe_options(ground: Ground) -> None:
    with ground.a() as client, ground.b() as other:
        for one in (client, other):
            one.subscribe(ground.topics[0], no_local=True)
        client.publish(ground.topics[0])
        assert other.message().topic == ground.topics[0]
        assert client.more() == []
    with ground.a() as client:
        client.subscribe(ground.topics[0], retain_as_published=True)
        client.publish(ground.topics[0], b"false")
        client.publish(ground.topics[0], b"true", retain=True)
        assert [one.retain for one in client.messages(2)] == [False, True]
    for handling, counts in ((1, (3, 0)), (2, (0, 0)), (0, (3, 3))):
        with ground.a() as client:
            for qos in range(3):
                client.publish(ground.topics[1 + qos], b"kept", qos, retain=True)
            for count in counts:
                client.subscribe(ground.wild[5], retain_handling=handling)
                assert all(one.retain for one in client.messages(count)), handling
                assert client.more(1.0) == [], handling


def assigned_clientid(ground: Ground) -> None:
    client = Wire(ground.port)
    assert client.connect("").properties[Property.ASSIGNED_CLIENT_IDENTIFIER]
    client.disconnect()


def subscribe_identifiers(ground: Ground) -> None:
    def asked(number: int) -> dict[Property, Any]:
        return {Property.SUBSCRIPTION_IDENTIFIER: (number,)}

    with ground.a() as client, ground.b() as other:
        client.subscribe(ground.topics[0], properties=asked(456_789))
        other.subscribe(ground.topics[0], properties=asked(2))
        other.subscribe(f"{ground.topics[0]}/#", properties=asked(3))
        other.publish(ground.topics[0])
        assert client.message().properties[Property.SUBSCRIPTION_IDENTIFIER] == (456_789,)
        assert set(other.message().properties[Property.SUBSCRIPTION_IDENTIFIER]) == {2, 3}
        assert other.more() == []


def request_response(ground: Ground) -> None:
    with ground.a() as client, ground.b() as other:
        for one in (client, other):
            one.subscribe(ground.topics[0], no_local=True)
        said = {Property.RESPONSE_TOPIC: ground.topics[0], Property.CORRELATION_DATA: b"334"}
        client.publish(ground.topics[0], b"request", properties=said)
        request = other.message()
        assert request.properties == said
        answer_to = request.properties[Property.RESPONSE_TOPIC]
        other.publish(answer_to, b"response", properties=request.properties)
        assert client.message().payload == b"response"


def client_topic_alias(ground: Ground) -> None:
    with ground.a() as client:
        client.say(
            Publish(ground.topics[0], b"0", 1, packet_id=1, properties={Property.TOPIC_ALIAS: 0})
        )
        assert client.goodbye() != 0
    alias = {Property.TOPIC_ALIAS: 1}
    client = Wire(ground.port)
    answer = client.connect(f"{ground.name}-a", clean_start=True, **_expiring(1_000))
    if not answer.properties.get(Property.TOPIC_ALIAS_MAXIMUM):
        return
    client.subscribe(ground.topics[0])
    client.publish(ground.topics[0], b"1", properties=alias)
    client.publish("", b"2", properties=alias)
    assert {one.payload for one in client.messages(2)} == {b"1", b"2"}
    client.disconnect()
    with ground.a(**ground.kept()) as client:
        client.publish(ground.topics[0], b"3")
        assert client.message().payload == b"3"
        client.say(Publish("", b"4", 1, packet_id=9, properties=alias))
        assert client.goodbye() != 0


def _expiring(expiry_s: int) -> dict[str, Any]:
    return {"properties": {"session_expiry_interval": expiry_s}}


def server_topic_alias(ground: Ground) -> None:
    for most in (1, 0):
        with ground.a(properties={"topic_alias_maximum": most}) as client:
            client.subscribe(ground.topics[0])
            for qos in range(3):
                client.publish(ground.topics[0], b"x", qos)
            found = client.messages(3)
            names = [one.topic for one in found]
            aliases = {one.properties.get(Property.TOPIC_ALIAS) for one in found}
            if most:
                assert names == [ground.topics[0], "", ""] and aliases == {1}
            else:
                assert names == 3 * [ground.topics[0]] and aliases == {None}


def maximum_packet_size(ground: Ground) -> None:
    with ground.a(properties={"maximum_packet_size": 64}) as client:
        client.subscribe(ground.topics[0])
        client.publish(ground.topics[0], 20 * b".", 0)
        assert client.message().payload == 20 * b"."
        client.publish(ground.topics[0], 64 * b".", 1)
        assert client.more(_LATER_S) == []


def server_keep_alive(ground: Ground) -> None:
    answer = Wire(ground.port).connect(f"{ground.name}-a", keep_alive_s=120)
    assert answer.properties[Property.SERVER_KEEP_ALIVE] == 60


def flow_control1(ground: Ground) -> None:
    with ground.a(properties={"receive_maximum": 2}) as client:
        client.answers = False
        client.subscribe(ground.topics[0])
        for number in range(3):
            client.publish(ground.topics[0], b"%d" % number)
        first = client.messages(2)
        assert client.more(_LATER_S) == []
        client.say(Ack(Kind.PUBACK, first[0].packet_id))
        assert client.message().qos == 1


def flow_control2(ground: Ground) -> None:
    client = Wire(ground.port)
    answer = client.connect(f"{ground.name}-a")
    most = answer.properties.get(Property.RECEIVE_MAXIMUM, 65_535)
    client.answers = False
    try:
        client.say(*(Publish(ground.topics[0], b"x", 2, packet_id=n) for n in range(1, most + 2)))
    except ConnectionError:
        """It has said goodbye already."""
    assert client.goodbye() == Reason.RECEIVE_MAXIMUM_EXCEEDED


def will_delay(ground: Ground) -> None:
    for delay_s, expiry_s, due_s in ((2, 4, 2), (4, 0, 0), (4, 2, 2)):
        with ground.b() as other:
            other.subscribe(ground.topics[0])
            said = {Property.WILL_DELAY_INTERVAL: delay_s}
            will = Will(ground.topics[0], b"will", properties=said)
            with ground.a(will=will, **_expiring(expiry_s)):
                """It breaks."""
            before_s = time.monotonic()
            assert other.message().payload == b"will"
            assert due_s - 0.5 < time.monotonic() - before_s < due_s + 2.0


# fmt: off
CASES_311: tuple[Case, ...] = (
    basic, retained_messages, will_message, zero_length_clientid, offline_message_queueing, overlapping_subscriptions, keepalive,
    redelivery_on_reconnect, subscribe_failure, dollar_topics,
)
CASES_5: tuple[Case, ...] = (
    *CASES_311, unsubscribe, session_expiry, shared_subscriptions, user_properties, payload_format, publication_expiry,
    subscribe_options, assigned_clientid, subscribe_identifiers, request_response, client_topic_alias, server_topic_alias,
    maximum_packet_size, server_keep_alive, flow_control1, flow_control2, will_delay,
)
# fmt: on
