"""Ids of events that came in through MQTT. Pure: time and tag are given.

An id is the one part of a uTuple that a gateway may choose, and every delivery has it. So it carries what MQTT knows of a
message and a uTuple does not: its QoS, whether it was published as retained, and in which form its payload came. And it
carries a *tag*, a hash of who sent what under which packet identifier: a message that is sent again (DUP), to this door or
to another one, has the same tag, and is found again by it.

    48 bits  milliseconds           4 bits   version 8 (RFC 9562: the rest is ours)
     6 bits  the mark of this door  2 bits   QoS   1 bit retained   3 bits form
     2 bits  variant               62 bits   tag
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

_DOOR = 0b101101
_TAG_BITS = 62
_LOW = (1 << _TAG_BITS) - 1


class Form(IntEnum):
    """How a payload became data, so that the same bytes come out again."""

    OBJECT = 0
    """The data, as compact JSON."""
    SPACED_OBJECT = 1
    """The data, as JSON with a blank behind each comma and colon, as Python's json module writes it."""
    JSON = 2
    """JSON, but no object: the value of `fields.value`, as compact JSON."""
    SPACED_JSON = 3
    """The same with blanks."""
    RAW = 4
    """JSON written in yet another way: the text is kept beside the data."""
    VALUE = 5
    """No JSON: text or bytes, the value of `fields.value`."""


class Marks(NamedTuple):
    qos: int
    retain: bool
    form: Form


class IdClock:
    """Milliseconds of a door's ids, such that a subscription's beginning lies between what was published before and after it.

    A whole publish, with its commit and its acknowledgement, may take less than a millisecond. If the client then subscribes
    within that millisecond, the bare time could not tell that the message is older than the subscription.
    """

    def __init__(self) -> None:
        self._begun_ms = 0
        self._made_ms = 0

    def of_event(self, now_ms: int) -> int:
        """Not before any subscription that has begun."""
        self._made_ms = max(now_ms, self._begun_ms, self._made_ms)
        return self._made_ms

    def of_subscription(self, now_ms: int) -> int:
        """After every event so far."""
        self._begun_ms = max(now_ms, self._begun_ms, self._made_ms + 1)
        return self._begun_ms


def event_id(now_ms: int, marks: Marks, tag: int) -> UUID:
    own = _DOOR << 6 | marks.qos << 4 | marks.retain << 3 | marks.form
    high = (now_ms & ((1 << 48) - 1)) << 16 | 0x8 << 12 | own
    return UUID(int=high << 64 | 0b10 << _TAG_BITS | tag & _LOW)


def marks_of(id_: UUID) -> Marks | None:
    """None: the event did not come in through MQTT."""
    own = id_.int >> 64 & 0xFFFF
    if own >> 6 != 0x8 << 6 | _DOOR or own & 7 > Form.VALUE:
        return None
    return Marks(own >> 4 & 3, bool(own >> 3 & 1), Form(own & 7))


def made_ms(id_: UUID) -> int:
    """When an id was made: this door's ids, and those of the SDK, begin with the time."""
    return id_.int >> 80


def tag_of_id(id_: UUID) -> int:
    return id_.int & _LOW


def tag_of(client_id: str, packet_id: int, qos: int, topic: str, payload: bytes) -> int:
    who, name = client_id.encode(), topic.encode()
    # With the lengths before it, no two messages are the same bytes.
    said = b"%d %d %d %d " % (packet_id, qos, len(who), len(name)) + who + name + payload
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big") & _LOW
