"""Reason codes, by the names that MQTT 5 gives them (section 2.4), and what 3.1.1 has instead."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_ID_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_ID_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    QUOTA_EXCEEDED = 0x97
    PAYLOAD_FORMAT_INVALID = 0x99
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E

    @property
    def is_failure(self) -> bool:
        return self >= Reason.UNSPECIFIED_ERROR


SUBACK_FAILURE_311 = 0x80
"""The only way in which 3.1.1 refuses a subscription."""

CONNACK_311 = {
    Reason.SUCCESS: 0,
    Reason.UNSUPPORTED_PROTOCOL_VERSION: 1,
    Reason.CLIENT_ID_NOT_VALID: 2,
    Reason.SERVER_UNAVAILABLE: 3,
    Reason.SERVER_BUSY: 3,
    Reason.BAD_USER_NAME_OR_PASSWORD: 4,
    Reason.NOT_AUTHORIZED: 5,
}
"""Return codes of a 3.1.1 CONNACK. For other reasons the connection is closed without one."""


class ProtocolError(Exception):
    """The other side broke a rule of MQTT: the connection ends, with this reason where the version can say it."""

    def __init__(self, reason: Reason, said: str) -> None:
        super().__init__(said)
        self.reason = reason


def malformed(said: str) -> ProtocolError:
    return ProtocolError(Reason.MALFORMED_PACKET, said)
