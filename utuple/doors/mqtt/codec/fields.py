"""The fields that packets are made of, and properties. Pure.

`Cursor` reads them from the body of one packet and refuses whatever does not fit into it; the functions beside it write
them. Which property may stand in which packet, and what its value looks like, is one table.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from utuple.doors.mqtt.codec.packets import Kind, Properties, Property
from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason, malformed

_U16, _U32 = Struct(">H"), Struct(">I")
MAX_VARINT = 268_435_455
_VARINT_BYTES = 4
WILL = 0
"""Stands for the will's own properties in a CONNECT: no packet has this number."""


class Cursor:
    """The body of one packet, read from front to back."""

    __slots__ = ("_body", "at", "end")

    def __init__(self, body: bytes, at: int = 0) -> None:
        self._body = body
        self.at = at
        self.end = len(body)

    def _take(self, size: int) -> int:
        at = self.at
        if at + size > self.end:
            raise malformed("the packet ends within a field")
        self.at = at + size
        return at

    def u8(self) -> int:
        return self._body[self._take(1)]

    def u16(self) -> int:
        value: int = _U16.unpack_from(self._body, self._take(2))[0]
        return value

    def u32(self) -> int:
        value: int = _U32.unpack_from(self._body, self._take(4))[0]
        return value

    def varint(self) -> int:
        value = 0
        for number in range(_VARINT_BYTES):
            byte = self.u8()
            value |= (byte & 0x7F) << (7 * number)
            if not byte & 0x80:
                if number and not byte:
                    raise malformed("a variable byte integer is longer than it need be")
                return value
        raise malformed("a variable byte integer has more than four bytes")

    def binary(self) -> bytes:
        size = self.u16()
        at = self._take(size)
        return self._body[at : at + size]

    def text(self) -> str:
        return text_of(self.binary())

    def packet_id(self) -> int:
        value = self.u16()
        if not value:
            raise ProtocolError(Reason.PROTOCOL_ERROR, "a packet identifier is 0")
        return value

    def rest(self) -> bytes:
        at, self.at = self.at, self.end
        return self._body[at:]

    def finish(self) -> None:
        if self.at != self.end:
            raise malformed("bytes follow the last field")


def text_of(said: bytes) -> str:
    try:
        text = said.decode("utf-8")
    except UnicodeDecodeError as error:
        raise malformed("a text is not UTF-8") from error
    if "\0" in text:
        raise malformed("a text holds U+0000")
    return text


def u16(value: int) -> bytes:
    return _U16.pack(value)


def u32(value: int) -> bytes:
    return _U32.pack(value)


def varint(value: int) -> bytes:
    if not 0 <= value <= MAX_VARINT:
        raise ValueError(f"{value} does not fit into a variable byte integer")
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def binary(value: bytes) -> bytes:
    return _U16.pack(len(value)) + value


def text(value: str) -> bytes:
    return binary(value.encode("utf-8"))


def _flag(cursor: Cursor) -> int:
    value = cursor.u8()
    if value > 1:
        raise ProtocolError(Reason.PROTOCOL_ERROR, "a flag is neither 0 nor 1")
    return value


def _positive(read: Callable[[Cursor], int]) -> Callable[[Cursor], int]:
    def checked(cursor: Cursor) -> int:
        value = read(cursor)
        if not value:
            raise ProtocolError(Reason.PROTOCOL_ERROR, "a property must not be 0")
        return value

    return checked


def _alias(cursor: Cursor) -> int:
    value = cursor.u16()
    if not value:
        raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, "topic alias 0")
    return value


def _pair(cursor: Cursor) -> tuple[str, str]:
    return cursor.text(), cursor.text()


def _byte(value: int) -> bytes:
    return bytes((value,))


Reader = Callable[[Cursor], Any]
Writer = Callable[[Any], bytes]

_BYTE: tuple[Reader, Writer] = (_flag, _byte)
_SHORT: tuple[Reader, Writer] = (Cursor.u16, u16)
_LONG: tuple[Reader, Writer] = (Cursor.u32, u32)
_TEXT: tuple[Reader, Writer] = (Cursor.text, text)
_BINARY: tuple[Reader, Writer] = (Cursor.binary, binary)

_VALUES: dict[Property, tuple[Reader, Writer]] = {
    Property.PAYLOAD_FORMAT_INDICATOR: _BYTE,
    Property.MESSAGE_EXPIRY_INTERVAL: _LONG,
    Property.CONTENT_TYPE: _TEXT,
    Property.RESPONSE_TOPIC: _TEXT,
    Property.CORRELATION_DATA: _BINARY,
    Property.SUBSCRIPTION_IDENTIFIER: (_positive(Cursor.varint), varint),
    Property.SESSION_EXPIRY_INTERVAL: _LONG,
    Property.ASSIGNED_CLIENT_IDENTIFIER: _TEXT,
    Property.SERVER_KEEP_ALIVE: _SHORT,
    Property.AUTHENTICATION_METHOD: _TEXT,
    Property.AUTHENTICATION_DATA: _BINARY,
    Property.REQUEST_PROBLEM_INFORMATION: _BYTE,
    Property.WILL_DELAY_INTERVAL: _LONG,
    Property.REQUEST_RESPONSE_INFORMATION: _BYTE,
    Property.RESPONSE_INFORMATION: _TEXT,
    Property.SERVER_REFERENCE: _TEXT,
    Property.REASON_STRING: _TEXT,
    Property.RECEIVE_MAXIMUM: (_positive(Cursor.u16), u16),
    Property.TOPIC_ALIAS_MAXIMUM: _SHORT,
    Property.TOPIC_ALIAS: (_alias, u16),
    Property.MAXIMUM_QOS: _BYTE,
    Property.RETAIN_AVAILABLE: _BYTE,
    Property.USER_PROPERTY: (_pair, lambda pair: text(pair[0]) + text(pair[1])),
    Property.MAXIMUM_PACKET_SIZE: (_positive(Cursor.u32), u32),
    Property.WILDCARD_SUBSCRIPTION_AVAILABLE: _BYTE,
    Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE: _BYTE,
    Property.SHARED_SUBSCRIPTION_AVAILABLE: _BYTE,
}

_MESSAGE = (
    "PAYLOAD_FORMAT_INDICATOR MESSAGE_EXPIRY_INTERVAL CONTENT_TYPE RESPONSE_TOPIC CORRELATION_DATA"
)
_ANSWER = "REASON_STRING"
_ALLOWED_WORDS: dict[int, str] = {
    Kind.CONNECT: "SESSION_EXPIRY_INTERVAL AUTHENTICATION_METHOD AUTHENTICATION_DATA REQUEST_PROBLEM_INFORMATION "
    "REQUEST_RESPONSE_INFORMATION RECEIVE_MAXIMUM TOPIC_ALIAS_MAXIMUM MAXIMUM_PACKET_SIZE",
    Kind.CONNACK: "SESSION_EXPIRY_INTERVAL ASSIGNED_CLIENT_IDENTIFIER SERVER_KEEP_ALIVE AUTHENTICATION_METHOD "
    "AUTHENTICATION_DATA RESPONSE_INFORMATION SERVER_REFERENCE REASON_STRING RECEIVE_MAXIMUM TOPIC_ALIAS_MAXIMUM "
    "MAXIMUM_QOS RETAIN_AVAILABLE MAXIMUM_PACKET_SIZE WILDCARD_SUBSCRIPTION_AVAILABLE "
    "SUBSCRIPTION_IDENTIFIER_AVAILABLE SHARED_SUBSCRIPTION_AVAILABLE",
    Kind.PUBLISH: f"{_MESSAGE} SUBSCRIPTION_IDENTIFIER TOPIC_ALIAS",
    WILL: f"{_MESSAGE} WILL_DELAY_INTERVAL",
    **dict.fromkeys((Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP), _ANSWER),
    **dict.fromkeys((Kind.SUBACK, Kind.UNSUBACK), _ANSWER),
    Kind.SUBSCRIBE: "SUBSCRIPTION_IDENTIFIER",
    Kind.UNSUBSCRIBE: "",
    Kind.DISCONNECT: "SESSION_EXPIRY_INTERVAL SERVER_REFERENCE REASON_STRING",
    Kind.AUTH: "AUTHENTICATION_METHOD AUTHENTICATION_DATA REASON_STRING",
}
ALLOWED: dict[int, frozenset[Property]] = {
    kind: frozenset(Property[word] for word in (*words.split(), "USER_PROPERTY"))
    for kind, words in _ALLOWED_WORDS.items()
}
"""By kind of packet, or WILL: the properties it may have."""
_REPEATED = frozenset((Property.USER_PROPERTY, Property.SUBSCRIPTION_IDENTIFIER))


def read_properties(cursor: Cursor, kind: int) -> Properties:
    size = cursor.varint()
    end = cursor.at + size
    if not size:
        return {}
    found: dict[Property, Any] = {}
    while cursor.at < end:
        _read_property(cursor, kind, found)
    if cursor.at != end:
        raise malformed("a property reaches beyond the properties")
    for name in _REPEATED & found.keys():
        found[name] = tuple(found[name])
    return found


def _read_property(cursor: Cursor, kind: int, found: dict[Property, Any]) -> None:
    number = cursor.varint()
    try:
        name = Property(number)
    except ValueError as error:
        raise malformed(f"{number} is no property") from error
    if name not in ALLOWED[kind]:
        raise malformed(f"{name.name} does not belong here")
    value = _VALUES[name][0](cursor)
    is_once = name not in _REPEATED or (
        kind == Kind.SUBSCRIBE and name is not Property.USER_PROPERTY
    )
    if is_once and name in found:
        raise ProtocolError(Reason.PROTOCOL_ERROR, f"{name.name} is there twice")
    if name in _REPEATED:
        found.setdefault(name, []).append(value)
    else:
        found[name] = value


def write_properties(properties: Properties) -> bytes:
    if not properties:
        return b"\0"
    found = bytearray()
    for name, value in properties.items():
        write = _VALUES[name][1]
        for one in value if name in _REPEATED else (value,):
            found.append(name)
            found += write(one)
    return varint(len(found)) + found
