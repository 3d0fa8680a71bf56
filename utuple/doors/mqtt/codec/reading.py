"""From bytes to packets, MQTT 3.1.1 and 5. Pure: whatever the bytes are, a packet comes out or a `ProtocolError`.

The bytes come from anyone who reaches the port. So the length of a packet is judged before the packet is waited for, no
field may reach beyond its packet, and nothing is kept of a packet that is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.codec.fields import WILL, Cursor, read_properties
from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Filter,
    Kind,
    Packet,
    Ping,
    Properties,
    Property,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Will,
)
from utuple.doors.mqtt.codec.reasons import CONNACK_311, ProtocolError, Reason, malformed

_LENGTH_BITS = 28
"""Four bytes of seven."""
_FROM_311 = {code: reason for reason, code in reversed(CONNACK_311.items())}


def frame(buffer: bytes | bytearray, at: int, limit_bytes: int) -> tuple[int, int] | None:
    """Where the body of the packet that begins at `at` begins and ends; None if too little has come to say so. The end may
    lie beyond the buffer: then the rest is still to come."""
    place, size, shift = at, 0, 0
    while (place := place + 1) < len(buffer):
        byte = buffer[place]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift and not byte:
                raise malformed("the length is longer than it need be")
            if place + 1 - at + size > limit_bytes:
                raise ProtocolError(Reason.PACKET_TOO_LARGE, f"more than {limit_bytes} bytes")
            return place + 1, place + 1 + size
        shift += 7
        if shift == _LENGTH_BITS:
            raise malformed("the length has more than four bytes")
    return None


def read(first: int, body: bytes, version: int) -> Packet:
    """The packet of these bytes. `first` is its first byte, `version` what its CONNECT said (of a CONNECT: anything)."""
    flags = first & 0x0F
    if first >> 4 == Kind.PUBLISH:
        return _publish(flags, Cursor(body), version)
    try:
        kind = Kind(first >> 4)
    except ValueError as error:
        raise malformed("there is no packet of kind 0") from error
    if flags != (2 if kind in _RESERVED_2 else 0):
        raise malformed(f"the reserved flags of {kind.name} are {flags}")
    if kind is Kind.AUTH and version != V5:
        raise malformed("AUTH is of MQTT 5")
    cursor = Cursor(body)
    packet = _READERS[kind](kind, cursor, version)
    cursor.finish()
    return packet


_RESERVED_2 = frozenset((Kind.PUBREL, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE))


def _properties(kind: Kind, cursor: Cursor, version: int) -> Properties:
    return read_properties(cursor, kind) if version == V5 else {}


def _publish(flags: int, cursor: Cursor, version: int) -> Publish:
    qos = flags >> 1 & 3
    if qos == 3:
        raise malformed("QoS 3")
    if not qos and flags & 8:
        raise malformed("DUP with QoS 0")
    topic = cursor.text()
    packet_id = cursor.packet_id() if qos else 0
    properties = _properties(Kind.PUBLISH, cursor, version)
    _check_response_topic(properties)
    if topic or Property.TOPIC_ALIAS not in properties:
        names.check_topic(topic)
    return Publish(
        topic, cursor.rest(), qos, bool(flags & 1), bool(flags & 8), packet_id, properties
    )


def _check_response_topic(properties: Properties) -> None:
    """Whoever answers publishes under it."""
    if Property.RESPONSE_TOPIC in properties:
        names.check_topic(properties[Property.RESPONSE_TOPIC])


def _connect(_: Kind, cursor: Cursor, __: int) -> Connect:
    if (name := cursor.text()) not in ("MQTT", "MQIsdp"):
        raise ProtocolError(Reason.UNSUPPORTED_PROTOCOL_VERSION, f"the protocol is {name!r}")
    version = cursor.u8()
    if name != "MQTT" or version not in (V311, V5):
        raise ProtocolError(Reason.UNSUPPORTED_PROTOCOL_VERSION, f"version {version}")
    flags = cursor.u8()
    has_will, will_qos = bool(flags & 4), flags >> 3 & 3
    if flags & 1 or will_qos == 3 or (not has_will and flags & 0x38):
        raise malformed("the flags of CONNECT contradict each other")
    if version == V311 and flags & 0x40 and not flags & 0x80:
        raise malformed("a password without a user name")
    keep_alive_s = cursor.u16()
    properties = _properties(Kind.CONNECT, cursor, version)
    client_id = cursor.text()
    will = _will(flags, cursor, version) if has_will else None
    user_name = cursor.text() if flags & 0x80 else None
    password = cursor.binary() if flags & 0x40 else None
    clean = bool(flags & 2)
    return Connect(client_id, version, clean, keep_alive_s, will, user_name, password, properties)


def _will(flags: int, cursor: Cursor, version: int) -> Will:
    properties = read_properties(cursor, WILL) if version == V5 else {}
    _check_response_topic(properties)
    topic = cursor.text()
    names.check_topic(topic)
    return Will(topic, cursor.binary(), flags >> 3 & 3, bool(flags & 0x20), properties)


def _connack(kind: Kind, cursor: Cursor, version: int) -> Connack:
    flags, code = cursor.u8(), cursor.u8()
    if flags > 1:
        raise malformed("the reserved flags of CONNACK are set")
    try:
        reason = Reason(code) if version == V5 else _FROM_311[code]
    except (ValueError, KeyError) as error:
        raise malformed(f"CONNACK says {code}") from error
    return Connack(reason, bool(flags), _properties(kind, cursor, version))


def _ack(kind: Kind, cursor: Cursor, version: int) -> Ack:
    packet_id = cursor.packet_id()
    if version != V5 or cursor.at == cursor.end:
        return Ack(kind, packet_id)
    reason = cursor.u8()
    properties = read_properties(cursor, kind) if cursor.at < cursor.end else {}
    return Ack(kind, packet_id, reason, properties)


def _subscribe(kind: Kind, cursor: Cursor, version: int) -> Subscribe:
    packet_id = cursor.packet_id()
    properties = _properties(kind, cursor, version)
    filters = []
    while cursor.at < cursor.end:
        pattern, options = cursor.text(), cursor.u8()
        qos, handling = options & 3, options >> 4 & 3
        if qos == 3 or handling == 3 or options & (0xC0 if version == V5 else 0xFC):
            raise malformed("the options of a subscription are not valid")
        filters.append(Filter(pattern, qos, bool(options & 4), bool(options & 8), handling))
    if not filters:
        raise ProtocolError(Reason.PROTOCOL_ERROR, "SUBSCRIBE without a filter")
    return Subscribe(packet_id, tuple(filters), properties)


def _unsubscribe(kind: Kind, cursor: Cursor, version: int) -> Unsubscribe:
    packet_id = cursor.packet_id()
    properties = _properties(kind, cursor, version)
    patterns = []
    while cursor.at < cursor.end:
        patterns.append(cursor.text())
    if not patterns:
        raise ProtocolError(Reason.PROTOCOL_ERROR, "UNSUBSCRIBE without a filter")
    return Unsubscribe(packet_id, tuple(patterns), properties)


def _suback(kind: Kind, cursor: Cursor, version: int) -> Suback:
    packet_id = cursor.packet_id()
    properties = _properties(kind, cursor, version)
    return Suback(kind, packet_id, tuple(cursor.rest()), properties)


def _ping(kind: Kind, _: Cursor, __: int) -> Ping:
    return Ping(kind)


def _disconnect(kind: Kind, cursor: Cursor, version: int) -> Disconnect:
    return Disconnect(*_ending(kind, cursor, version))


def _auth(kind: Kind, cursor: Cursor, version: int) -> Auth:
    return Auth(*_ending(kind, cursor, version))


def _ending(kind: Kind, cursor: Cursor, version: int) -> tuple[int, Properties]:
    """A reason and properties, which may both be left out."""
    if version != V5 or cursor.at == cursor.end:
        return 0, {}
    reason = cursor.u8()
    return reason, read_properties(cursor, kind) if cursor.at < cursor.end else {}


_READERS: dict[Kind, Callable[[Kind, Cursor, int], Packet]] = {
    Kind.CONNECT: _connect,
    Kind.CONNACK: _connack,
    **dict.fromkeys((Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP), _ack),
    Kind.SUBSCRIBE: _subscribe,
    Kind.UNSUBSCRIBE: _unsubscribe,
    Kind.SUBACK: _suback,
    Kind.UNSUBACK: _suback,
    Kind.PINGREQ: _ping,
    Kind.PINGRESP: _ping,
    Kind.DISCONNECT: _disconnect,
    Kind.AUTH: _auth,
}
