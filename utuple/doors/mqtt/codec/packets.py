"""Packets, the same for both versions: what 3.1.1 does not have is absent or has its default.

They are values of the codec; whether a packet makes sense now is the session's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from utuple.doors.mqtt.codec.reasons import Reason

V311, V5 = 4, 5
"""Protocol levels, as a CONNECT says them."""


class Kind(IntEnum):
    """The first half of a packet's first byte."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class Property(IntEnum):
    """MQTT 5, section 2.2.2.2."""

    PAYLOAD_FORMAT_INDICATOR = 1
    MESSAGE_EXPIRY_INTERVAL = 2
    CONTENT_TYPE = 3
    RESPONSE_TOPIC = 8
    CORRELATION_DATA = 9
    SUBSCRIPTION_IDENTIFIER = 11
    SESSION_EXPIRY_INTERVAL = 17
    ASSIGNED_CLIENT_IDENTIFIER = 18
    SERVER_KEEP_ALIVE = 19
    AUTHENTICATION_METHOD = 21
    AUTHENTICATION_DATA = 22
    REQUEST_PROBLEM_INFORMATION = 23
    WILL_DELAY_INTERVAL = 24
    REQUEST_RESPONSE_INFORMATION = 25
    RESPONSE_INFORMATION = 26
    SERVER_REFERENCE = 28
    REASON_STRING = 31
    RECEIVE_MAXIMUM = 33
    TOPIC_ALIAS_MAXIMUM = 34
    TOPIC_ALIAS = 35
    MAXIMUM_QOS = 36
    RETAIN_AVAILABLE = 37
    USER_PROPERTY = 38
    MAXIMUM_PACKET_SIZE = 39
    WILDCARD_SUBSCRIPTION_AVAILABLE = 40
    SUBSCRIPTION_IDENTIFIER_AVAILABLE = 41
    SHARED_SUBSCRIPTION_AVAILABLE = 42


Properties = Mapping[Property, Any]
"""A user property is a tuple of (name, value) pairs, a subscription identifier a tuple of numbers: they may repeat."""


@dataclass(frozen=True, slots=True)
class Will:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=dict)

    @property
    def delay_s(self) -> int:
        """From the end of the connection on."""
        return int(self.properties.get(Property.WILL_DELAY_INTERVAL, 0))


@dataclass(frozen=True, slots=True)
class Connect:
    client_id: str
    version: int = V5
    clean_start: bool = True
    keep_alive_s: int = 0
    will: Will | None = None
    user_name: str | None = None
    password: bytes | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connack:
    reason: Reason = Reason.SUCCESS
    session_present: bool = False
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Publish:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    """0 with QoS 0, which has none."""
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ack:
    """PUBACK, PUBREC, PUBREL, PUBCOMP: they look alike."""

    kind: Kind
    packet_id: int
    reason: int = Reason.SUCCESS
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filter:
    """One line of a SUBSCRIBE."""

    pattern: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(frozen=True, slots=True)
class Subscribe:
    packet_id: int
    filters: tuple[Filter, ...]
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    packet_id: int
    patterns: tuple[str, ...]
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suback:
    """SUBACK, or UNSUBACK: one reason for each line that was asked for."""

    kind: Kind
    packet_id: int
    reasons: tuple[int, ...]
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ping:
    kind: Kind


@dataclass(frozen=True, slots=True)
class Disconnect:
    reason: int = Reason.SUCCESS
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Auth:
    reason: int = Reason.SUCCESS
    properties: Properties = field(default_factory=dict)


Packet = (
    Connect | Connack | Publish | Ack | Subscribe | Unsubscribe | Suback | Ping | Disconnect | Auth
)
