"""CONNECT: whether this client may come in, and on what terms. Pure: a new client id is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from utuple.doors.mqtt.codec.packets import V5, V311, Connack, Connect, Property, Will
from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason
from utuple.doors.mqtt.config import Limits

UNLIMITED = 1 << 28
"""Bytes: no packet can be larger."""
_MAX_CLIENT_ID_BYTES = 512
"""It is part of readers' names."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What this door and a client have agreed on, until the client disconnects."""

    client_id: str
    version: int
    clean_start: bool
    expiry_s: int
    keep_alive_s: int
    will: Will | None
    send_maximum: int
    aliases_to_client: int
    packet_bytes_to_client: int
    answer: dict[Property, Any]
    """Properties of the CONNACK."""

    def connack(self, *, session_present: bool) -> Connack:
        return Connack(Reason.SUCCESS, session_present, self.answer)


def terms_of(connect: Connect, limits: Limits, new_id: str) -> Terms:
    """Raises `ProtocolError` with the reason for the CONNACK if the client must go."""
    said = connect.properties
    if Property.AUTHENTICATION_METHOD in said:
        raise ProtocolError(Reason.BAD_AUTHENTICATION_METHOD, "there is no extended authentication")
    if len(connect.client_id.encode()) > _MAX_CLIENT_ID_BYTES:
        raise ProtocolError(Reason.CLIENT_ID_NOT_VALID, f"more than {_MAX_CLIENT_ID_BYTES} bytes")
    if not connect.client_id and not connect.clean_start and connect.version == V311:
        raise ProtocolError(Reason.CLIENT_ID_NOT_VALID, "a kept session needs a client id")
    expiry_s = _expiry_s(connect, limits)
    keep_alive_s = connect.keep_alive_s
    answer: dict[Property, Any] = {}
    if connect.version == V5:
        keep_alive_s = min(keep_alive_s, limits.keep_alive_most_s)
        answer = _answer(connect, limits, expiry_s, keep_alive_s)
        if not connect.client_id:
            answer[Property.ASSIGNED_CLIENT_IDENTIFIER] = new_id
    return Terms(
        client_id=connect.client_id or new_id,
        version=connect.version,
        clean_start=connect.clean_start,
        expiry_s=expiry_s,
        keep_alive_s=keep_alive_s,
        will=connect.will,
        send_maximum=min(said.get(Property.RECEIVE_MAXIMUM, 65_535), limits.send_maximum),
        aliases_to_client=min(said.get(Property.TOPIC_ALIAS_MAXIMUM, 0), limits.topic_aliases),
        packet_bytes_to_client=said.get(Property.MAXIMUM_PACKET_SIZE, UNLIMITED),
        answer=answer,
    )


def _expiry_s(connect: Connect, limits: Limits) -> int:
    if connect.version == V311:
        return 0 if connect.clean_start else limits.session_expiry_most_s
    asked: int = connect.properties.get(Property.SESSION_EXPIRY_INTERVAL, 0)
    return min(asked, limits.session_expiry_most_s)


def _answer(
    connect: Connect, limits: Limits, expiry_s: int, keep_alive_s: int
) -> dict[Property, Any]:
    answer: dict[Property, Any] = {
        Property.RECEIVE_MAXIMUM: limits.receive_maximum,
        Property.MAXIMUM_PACKET_SIZE: limits.packet_bytes,
        Property.TOPIC_ALIAS_MAXIMUM: limits.topic_aliases,
    }
    if expiry_s != connect.properties.get(Property.SESSION_EXPIRY_INTERVAL, 0):
        answer[Property.SESSION_EXPIRY_INTERVAL] = expiry_s
    if keep_alive_s != connect.keep_alive_s:
        answer[Property.SERVER_KEEP_ALIVE] = keep_alive_s
    return answer
