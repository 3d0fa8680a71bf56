"""Messages on their way to one client: packet identifiers, QoS 1 and 2, topic aliases, the client's limits. Pure.

A message is finished, and its event acknowledged in the space, when the client has acknowledged it: with PUBACK, or at QoS 2
with PUBCOMP. Not with PUBREC: most clients hand a message on only when it is released, and a door that dies in between
cannot release it. Another door then delivers it again, under a new packet identifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from utuple.doors.mqtt.codec.packets import V5, Ack, Kind, Property, Publish
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.codec.writing import write
from utuple.doors.mqtt.protocol.greeting import UNLIMITED, Terms

if TYPE_CHECKING:
    from utuple.doors.mqtt.protocol.session import Subscription

_IDS = 65_535
_LATER_BYTES = 5
"""What a packet identifier and an alias add to a packet."""
Handle = object
"""What the shell acknowledges in the space when a message is done with; nobody here looks into it. None: nothing."""


@dataclass(frozen=True, slots=True)
class Message:
    id: UUID
    topic: str
    payload: bytes
    qos: int
    retain: bool
    """As it was published."""
    is_retained: bool
    """It was there before the subscription."""
    handle: Handle
    properties: dict[Property, Any] = field(default_factory=dict)


class _Sent:
    __slots__ = ("message", "packet", "released")

    def __init__(self, packet: Publish, message: Message) -> None:
        self.packet = packet
        self.message = message
        self.released = False


class Outgoing:
    def __init__(self, terms: Terms) -> None:
        self._sent: dict[int, _Sent] = {}
        """By packet identifier, in the order they were sent."""
        self._by_event: dict[UUID, int] = {}
        self._last_id = 0
        self.begin(terms)

    def begin(self, terms: Terms) -> None:
        self._terms = terms
        self._aliases: dict[str, int] = {}

    @property
    def has_room(self) -> bool:
        return len(self._sent) < self._terms.send_maximum

    def unfinished(self) -> Iterator[Publish | Ack]:
        """After a reconnect, in their order (MQTT 5, section 4.4)."""
        for packet_id, sent in self._sent.items():
            if sent.released:
                yield Ack(Kind.PUBREL, packet_id)
            else:
                yield replace(sent.packet, dup=True)

    def send(self, message: Message, by: Sequence[Subscription]) -> Publish | None:
        """The packet for it; None if the client would not take it."""
        qos = min(message.qos, max(one.filter.qos for one in by))
        retain = message.is_retained or (
            message.retain and any(one.filter.retain_as_published for one in by)
        )
        properties: dict[Property, Any] = {}
        if self._terms.version == V5:
            properties = dict(message.properties)
            if identifiers := tuple(sorted({one.identifier for one in by} - {0})):
                properties[Property.SUBSCRIPTION_IDENTIFIER] = identifiers
        packet = Publish(message.topic, message.payload, qos, retain, False, 0, properties)
        if not self._takes(packet):
            return None
        if qos:
            packet = replace(packet, packet_id=self._new_id())
            self._sent[packet.packet_id] = _Sent(packet, message)
            self._by_event[message.id] = packet.packet_id
        return self._with_alias(packet)

    def _takes(self, packet: Publish) -> bool:
        """Whether the client would take a packet of this size, with an identifier and an alias."""
        limit = self._terms.packet_bytes_to_client
        if limit >= UNLIMITED:
            return True
        return len(write(packet, self._terms.version)) + _LATER_BYTES <= limit

    def _new_id(self) -> int:
        while True:
            self._last_id = self._last_id % _IDS + 1
            if self._last_id not in self._sent:
                return self._last_id

    def _with_alias(self, packet: Publish) -> Publish:
        """The first names that come get the aliases that there are."""
        alias = self._aliases.get(packet.topic)
        if alias is not None:
            properties = {**packet.properties, Property.TOPIC_ALIAS: alias}
            return replace(packet, topic="", properties=properties)
        if len(self._aliases) < self._terms.aliases_to_client:
            alias = self._aliases[packet.topic] = len(self._aliases) + 1
            return replace(packet, properties={**packet.properties, Property.TOPIC_ALIAS: alias})
        return packet

    def acknowledged(self, ack: Ack) -> tuple[Ack | None, Message | None]:
        """What to answer, and which message is done with."""
        sent = self._sent.get(ack.packet_id)
        match ack.kind:
            case Kind.PUBREC if ack.reason < Reason.UNSPECIFIED_ERROR:
                if sent is None:
                    return Ack(Kind.PUBREL, ack.packet_id, Reason.PACKET_ID_NOT_FOUND), None
                sent.released = True
                return Ack(Kind.PUBREL, ack.packet_id), None
        if sent is None or (sent.packet.qos == 2) != (ack.kind is not Kind.PUBACK):
            return None, None
        del self._sent[ack.packet_id]
        self._by_event.pop(sent.message.id, None)
        return None, sent.message

    def replaced(self, message: Message) -> bool:
        """A message that is still on its way came again from the space: only its handle is new."""
        packet_id = self._by_event.get(message.id)
        if packet_id is None:
            return False
        self._sent[packet_id].message = message
        return True
