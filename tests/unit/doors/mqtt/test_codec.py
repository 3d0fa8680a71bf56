"""The codec: what is written is read again; whatever else the bytes are, they are refused and nothing else happens."""

from __future__ import annotations

from dataclasses import replace

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.doors.mqtt.packets import connects, packets, publishes, versions
from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Connect,
    Packet,
    Property,
    Publish,
    Subscribe,
    Will,
)
from utuple.doors.mqtt.codec.reading import frame, read
from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason
from utuple.doors.mqtt.codec.writing import write

LIMIT = 10_000


def read_back(data: bytes, version: int) -> Packet:
    found = frame(data, 0, LIMIT)
    assert found is not None
    start, end = found
    assert end == len(data)
    return read(data[0], data[start:end], version)


@given(versions.flatmap(lambda v: st.tuples(st.just(v), packets(v))))
def test_what_is_written_is_read_again(made: tuple[int, Packet]) -> None:
    version, packet = made
    assert read_back(write(packet, version), version) == packet


@given(publishes(V5))
def test_another_codec_reads_the_same_publish(packet: Publish) -> None:
    theirs, size = mqtt5.read(memoryview(write(packet, V5)))
    assert isinstance(theirs, mqtt5.PublishPacket)
    assert size == len(write(packet, V5))
    assert (theirs.topic, theirs.payload, theirs.qos, theirs.retain, theirs.duplicate) == (
        packet.topic,
        packet.payload,
        packet.qos,
        packet.retain,
        packet.dup,
    )
    said = packet.properties
    assert (theirs.packet_id or 0) == packet.packet_id
    assert theirs.message_expiry_interval == said.get(Property.MESSAGE_EXPIRY_INTERVAL)
    assert theirs.correlation_data == said.get(Property.CORRELATION_DATA)
    assert tuple(theirs.user_properties) == said.get(Property.USER_PROPERTY, ())
    assert read_back(theirs.write(), V5) == replace(
        packet, properties={k: v for k, v in said.items() if k is not _FORMAT or v}
    )


_FORMAT = Property.PAYLOAD_FORMAT_INDICATOR  # mqtt5 leaves out a 0


@given(connects(V5))
def test_another_codec_reads_the_same_connect(packet: Connect) -> None:
    theirs, _ = mqtt5.read(memoryview(write(packet, V5)))
    assert isinstance(theirs, mqtt5.ConnectPacket)
    assert (theirs.client_id, theirs.clean_start, theirs.keep_alive, theirs.username) == (
        packet.client_id,
        packet.clean_start,
        packet.keep_alive_s,
        packet.user_name,
    )
    assert theirs.password == packet.password
    assert (theirs.will.topic if theirs.will else None) == (packet.will and packet.will.topic)
    assert (theirs.will.payload or b"" if theirs.will else None) == (
        packet.will.payload if packet.will else None
    )


@given(versions, st.binary(max_size=60))
def test_random_bytes_are_a_packet_or_a_protocol_error(version: int, data: bytes) -> None:
    judged(data, version)


@given(
    versions.flatmap(lambda v: st.tuples(st.just(v), packets(v))),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 200), st.integers(0, 255)),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_packets_are_a_packet_or_a_protocol_error(
    made: tuple[int, Packet], changes: list[tuple[int, int, int]]
) -> None:
    version, packet = made
    data = bytearray(write(packet, version))
    for how, place, value in changes:
        at = place % (len(data) + 1)
        if how == 0:
            data.insert(at, value)
        elif at < len(data) and how == 1:
            data[at] = value
        elif at < len(data):
            del data[at]
    judged(bytes(data), version)


def judged(data: bytes, version: int) -> None:
    """Never another exception, and never a body that reaches beyond what was said."""
    try:
        found = frame(data, 0, LIMIT)
        if found is not None and found[1] <= len(data):
            packet = read(data[0], data[found[0] : found[1]], version)
            assert write(packet, version)
    except ProtocolError:
        pass


@given(publishes(V5), st.integers(0, 30))
def test_a_packet_that_is_cut_short_is_waited_for(packet: Publish, size: int) -> None:
    data = write(packet, V5)
    found = frame(data[:size], 0, LIMIT)
    assert found is None or found[1] == len(data)


BAD = [
    ("wildcard in PUBLISH", b"\x30\x05\x00\x03a/+", Reason.TOPIC_NAME_INVALID),
    ("bad UTF-8", b"\x30\x05\x00\x03\xff\xfe\xfd", Reason.MALFORMED_PACKET),
    ("a surrogate", b"\x30\x05\x00\x03\xed\xa0\x80", Reason.MALFORMED_PACKET),
    ("U+0000", b"\x30\x05\x00\x03a\x00b", Reason.MALFORMED_PACKET),
    ("a text beyond the packet", b"\x30\x05\x00\x09abc", Reason.MALFORMED_PACKET),
    ("QoS 3", b"\x36\x07\x00\x01a\x00\x01xx", Reason.MALFORMED_PACKET),
    ("DUP with QoS 0", b"\x38\x03\x00\x01a", Reason.MALFORMED_PACKET),
    ("packet id 0", b"\x32\x05\x00\x01a\x00\x00", Reason.PROTOCOL_ERROR),
    ("an empty topic", b"\x30\x02\x00\x00", Reason.PROTOCOL_ERROR),
    ("kind 0", b"\x00\x00", Reason.MALFORMED_PACKET),
    ("flags of SUBSCRIBE", b"\x80\x06\x00\x01\x00\x01a\x00", Reason.MALFORMED_PACKET),
    ("SUBSCRIBE of nothing", b"\x82\x02\x00\x01", Reason.PROTOCOL_ERROR),
    ("bytes behind PINGREQ", b"\xc0\x01\x00", Reason.MALFORMED_PACKET),
    ("another protocol", b"\x10\x0e\x00\x02hj\x04\x02\x00\x00\x00\x02id\x00\x00", Reason.UNSUPPORTED_PROTOCOL_VERSION),
    ("version 9", b"\x10\x0e\x00\x04MQTT\x09\x02\x00\x00\x00\x02id", Reason.UNSUPPORTED_PROTOCOL_VERSION),
    ("a reserved flag of CONNECT", b"\x10\x0e\x00\x04MQTT\x04\x03\x00\x00\x00\x02id", Reason.MALFORMED_PACKET),
]  # fmt: skip


@pytest.mark.parametrize(("what", "data", "reason"), BAD, ids=[one[0] for one in BAD])
def test_bad_input_has_its_reason(what: str, data: bytes, reason: Reason) -> None:
    found = frame(data, 0, LIMIT)
    assert found is not None
    with pytest.raises(ProtocolError) as caught:
        read(data[0], data[found[0] : found[1]], V311)
    assert caught.value.reason is reason


def test_a_packet_that_is_too_large_is_refused_before_it_has_come() -> None:
    with pytest.raises(ProtocolError) as caught:
        frame(b"\x30\xff\xff\xff\x7f", 0, LIMIT)
    assert caught.value.reason is Reason.PACKET_TOO_LARGE


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\x01", b"\x80\x00"])
def test_a_malformed_length_is_refused(length: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        frame(b"\x30" + length, 0, LIMIT)
    assert caught.value.reason is Reason.MALFORMED_PACKET


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (b"\x03\x23\x00\x00", Reason.TOPIC_ALIAS_INVALID),
        (b"\x06\x23\x00\x01\x23\x00\x01", Reason.PROTOCOL_ERROR),
        (b"\x05\x11\x00\x00\x00\x01", Reason.MALFORMED_PACKET),
        (b"\x02\x01\x02", Reason.PROTOCOL_ERROR),
        (b"\x02\x7f\x00", Reason.MALFORMED_PACKET),
        (b"\x09\x01", Reason.MALFORMED_PACKET),
        (b"\x06\x08\x00\x03a/#", Reason.TOPIC_NAME_INVALID),
        (b"\x03\x08\x00\x00", Reason.PROTOCOL_ERROR),
    ],
)
def test_properties_that_are_not_valid_have_their_reason(properties: bytes, reason: Reason) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(0x30, b"\x00\x01a" + properties, V5)
    assert caught.value.reason is reason


def test_nobody_can_answer_a_will_under_a_filter() -> None:
    will = Will("t", b"", properties={Property.RESPONSE_TOPIC: "a/+"})
    data = write(Connect("id", will=will), V5)
    found = frame(data, 0, LIMIT)
    assert found is not None
    with pytest.raises(ProtocolError) as caught:
        read(data[0], data[found[0] :], V5)
    assert caught.value.reason is Reason.TOPIC_NAME_INVALID


def test_many_user_properties_are_read_in_linear_time() -> None:
    pairs = (("", ""),) * 50_000
    packet = Publish("t", b"", properties={Property.USER_PROPERTY: pairs})
    data = write(packet, V5)
    found = frame(data, 0, 1 << 20)
    assert found is not None
    assert read(data[0], data[found[0] :], V5) == packet


def test_3_1_1_says_less() -> None:
    subscribe = write(Subscribe(1, (), {}), V311)
    assert subscribe == b"\x82\x02\x00\x01"
    assert b"MQTT\x04" in write(Connect("c", V311), V311)
