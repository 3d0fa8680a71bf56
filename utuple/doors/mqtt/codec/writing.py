"""From packets to bytes, MQTT 3.1.1 and 5. Pure. What 3.1.1 cannot say is left out."""

from __future__ import annotations

from utuple.doors.mqtt.codec.fields import binary, text, u16, varint, write_properties
from utuple.doors.mqtt.codec.packets import (
    V5,
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Kind,
    Packet,
    Ping,
    Properties,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
)
from utuple.doors.mqtt.codec.reasons import CONNACK_311, SUBACK_FAILURE_311, Reason


def write(packet: Packet, version: int) -> bytes:
    match packet:
        case Publish():
            return _publish(packet, version)
        case Ack(kind, packet_id, reason, properties):
            flags = 2 if kind is Kind.PUBREL else 0
            return _whole(kind, flags, u16(packet_id) + _ending(reason, properties, version))
        case Ping(kind):
            return _whole(kind, 0, b"")
        case Connack(reason, present, properties):
            code = reason if version == V5 else CONNACK_311.get(reason, 3)
            body = bytes((present, code)) + _properties(properties, version)
            return _whole(Kind.CONNACK, 0, body)
        case Suback(kind, packet_id, _, properties):
            return _whole(
                kind,
                0,
                u16(packet_id) + _properties(properties, version) + _reasons(packet, version),
            )
        case Subscribe(packet_id, filters, properties):
            lines = b"".join(
                text(one.pattern)
                + bytes(
                    (
                        one.qos
                        | one.no_local << 2
                        | one.retain_as_published << 3
                        | one.retain_handling << 4,
                    )
                )
                for one in filters
            )
            body = u16(packet_id) + _properties(properties, version) + lines
            return _whole(Kind.SUBSCRIBE, 2, body)
        case Unsubscribe(packet_id, patterns, properties):
            body = u16(packet_id) + _properties(properties, version) + b"".join(map(text, patterns))
            return _whole(Kind.UNSUBSCRIBE, 2, body)
        case Disconnect(reason, properties):
            return _whole(Kind.DISCONNECT, 0, _ending(reason, properties, version))
        case Auth(reason, properties):
            return _whole(Kind.AUTH, 0, _ending(reason, properties, version))
        case Connect():
            return _connect(packet)


def _whole(kind: Kind, flags: int, body: bytes) -> bytes:
    return bytes((kind << 4 | flags,)) + varint(len(body)) + body


def _properties(properties: Properties, version: int) -> bytes:
    return write_properties(properties) if version == V5 else b""


def _ending(reason: int, properties: Properties, version: int) -> bytes:
    """Success without properties is said by saying nothing."""
    if version != V5 or (reason == Reason.SUCCESS and not properties):
        return b""
    return bytes((reason,)) + (write_properties(properties) if properties else b"")


def _reasons(packet: Suback, version: int) -> bytes:
    if version == V5:
        return bytes(packet.reasons)
    if packet.kind is Kind.UNSUBACK:
        return b""
    return bytes(
        code if code < Reason.UNSPECIFIED_ERROR else SUBACK_FAILURE_311 for code in packet.reasons
    )


def _publish(packet: Publish, version: int) -> bytes:
    qos = packet.qos
    first = 0x30 | packet.dup << 3 | qos << 1 | packet.retain
    head = text(packet.topic)
    if qos:
        head += u16(packet.packet_id)
    if version == V5:
        head += write_properties(packet.properties)
    size = varint(len(head) + len(packet.payload))
    return b"".join((bytes((first,)), size, head, packet.payload))


def _connect(packet: Connect) -> bytes:
    will, version = packet.will, packet.version
    flags = packet.clean_start << 1
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
    flags |= (packet.password is not None) << 6 | (packet.user_name is not None) << 7
    body = text("MQTT") + bytes((version, flags)) + u16(packet.keep_alive_s)
    body += _properties(packet.properties, version) + text(packet.client_id)
    if will is not None:
        body += _properties(will.properties, version) + text(will.topic) + binary(will.payload)
    if packet.user_name is not None:
        body += text(packet.user_name)
    if packet.password is not None:
        body += binary(packet.password)
    return _whole(Kind.CONNECT, 0, body)
