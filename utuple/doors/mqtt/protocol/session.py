"""A session: the protocol of one client, apart from bytes, sockets and the space. Pure: `step(event, now_s) -> effects`.

What lasts as long as the session is kept here too, so that a client that comes back to this door goes on where it was:
subscriptions, messages that are on their way to the client, packet identifiers of QoS 2 that it has not released.

The order of acknowledgements is the order of the messages (MQTT 5, section 4.6). The space may answer them in another order,
so each waits until those before it are answered.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.codec.packets import (
    V5,
    Ack,
    Disconnect,
    Filter,
    Kind,
    Packet,
    Ping,
    Property,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
)
from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.protocol.greeting import Terms
from utuple.doors.mqtt.protocol.outgoing import Handle, Message, Outgoing

_KEEP_ALIVE_GRACE = 1.5
_REPEATS_REMEMBERED = 4_096
"""Events that came by one of several subscriptions: the next ones with the same id are the same message."""

_TOPICS_REMEMBERED = 1_000

# --- what happens to a session --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """Packets that came together, in their order: thousands come in a second, and share what a step costs."""

    packets: Sequence[Packet]


@dataclass(frozen=True, slots=True)
class Registered:
    """The space has answered for messages of the client's, by their numbers. None: it is not known, and never will be."""

    answers: Sequence[tuple[int, Reason | None]]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """An answer to a SUBSCRIBE or UNSUBSCRIBE."""

    kind: Kind
    packet_id: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message for the client, by a subscription of it."""

    message: Message
    pattern: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Some time has passed."""


Event = Received | Registered | Subscribed | Delivered | Tick

# --- what is to be done ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    packet: Packet


@dataclass(frozen=True, slots=True)
class Register:
    """Bring these messages to the space, each with its number, then say so with `Registered`. QoS 0 has the number 0."""

    messages: list[tuple[int, Publish]]


@dataclass(frozen=True, slots=True)
class Open:
    """Open these subscriptions, then say so with `Subscribed`."""

    subscribe: Subscribe


@dataclass(frozen=True, slots=True)
class Cancel:
    unsubscribe: Unsubscribe


@dataclass(frozen=True, slots=True)
class Done:
    """The client has this message."""

    handle: Handle


@dataclass(frozen=True, slots=True)
class End:
    """The connection ends. `said`: the client has said goodbye, so nobody is told a reason."""

    reason: Reason
    said: bool = False
    with_will: bool = True
    expiry_s: int | None = None


Effect = Send | Register | Open | Cancel | Done | End


@dataclass(frozen=True, slots=True)
class Subscription:
    filter: Filter
    identifier: int = 0
    """0: none."""
    asks_more: bool = False
    """It has conditions beside its filter, so that only the space knows what it matches."""


class _Pending:
    """A message of the client's that the space has not yet answered, or that waits for one before it."""

    __slots__ = ("publish", "reason")

    def __init__(self, publish: Publish) -> None:
        self.publish = publish
        self.reason: Reason | None = None


class Session:
    def __init__(self, terms: Terms, limits: Limits) -> None:
        self._limits = limits
        self.subscriptions: dict[str, Subscription] = {}
        """By filter; changed by `subscribe` and `unsubscribe` only."""
        self.own: OrderedDict[UUID, None] = OrderedDict()
        """Ids of messages that this client has published."""
        self._unreleased: set[int] = set()
        """QoS 2 messages that are registered, by packet identifier, until the client releases them."""
        self._repeats: OrderedDict[UUID, None] = OrderedDict()
        self._by_topic: dict[str, list[str]] = {}
        """Which filters match the names that came lately: a client may have a thousand."""
        self.outgoing = Outgoing(terms)
        self._last_number = 0
        self.begin(terms, 0.0)

    def begin(self, terms: Terms, now_s: float) -> None:
        """A connection: nothing of the one before is left but what the session is for."""
        self.terms = terms
        self._aliases: dict[int, str] = {}
        self._pending: deque[_Pending] = deque()
        """In the order of their numbers, with none left out."""
        self._pending_ids: set[int] = set()
        self._first_number = self._last_number + 1
        self._heard_s = now_s
        self.outgoing.begin(terms)

    @property
    def pending(self) -> int:
        """Messages of the client's that are not yet acknowledged."""
        return len(self._pending)

    @property
    def takes(self) -> int:
        """How many packets it may be given together: with so many messages the client may have too much under way."""
        return max(1, self._limits.receive_maximum - len(self._pending))

    def resend(self) -> list[Effect]:
        """What the client had not acknowledged when the connection before this one ended."""
        return [Send(packet) for packet in self.outgoing.unfinished()]

    def subscribe(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.filter.pattern] = subscription
        self._by_topic.clear()

    def unsubscribe(self, pattern: str) -> None:
        self.subscriptions.pop(pattern, None)
        self._by_topic.clear()

    def note_own(self, id_: UUID) -> None:
        """Only if somebody asks: for a subscription that is not given its own messages."""
        if self.subscriptions and any(one.filter.no_local for one in self.subscriptions.values()):
            self.own[id_] = None
            if len(self.own) > self._limits.own_remembered:
                self.own.popitem(last=False)

    def step(self, event: Event, now_s: float) -> list[Effect]:
        match event:
            case Received(packets):
                self._heard_s = now_s
                return self._received(packets)
            case Registered(answers):
                return self._registered(answers)
            case Subscribed(kind, packet_id, reasons):
                return [Send(Suback(kind, packet_id, reasons))]
            case Delivered(message, pattern):
                return list(self._delivered(message, pattern))
            case Tick():
                silent_s = now_s - self._heard_s
                limit_s = self.terms.keep_alive_s * _KEEP_ALIVE_GRACE
                return [End(Reason.KEEP_ALIVE_TIMEOUT)] if 0 < limit_s < silent_s else []

    # --- from the client ------------------------------------------------------------------------

    def _received(self, packets: Sequence[Packet]) -> list[Effect]:
        """Messages come first: nothing that came with them is done before, and the end not without them."""
        effects: list[Effect] = []
        messages: list[tuple[int, Publish]] = []
        try:
            for packet in packets:
                if isinstance(packet, Publish):
                    self._publish(packet, messages, effects)
                else:
                    effects += self._other(packet)
                    if effects and isinstance(effects[-1], End):
                        break
        except ProtocolError as error:
            effects.append(End(error.reason))
        return [Register(messages), *effects] if messages else effects

    def _other(self, packet: Packet) -> Iterator[Effect]:
        match packet:
            case Ack(Kind.PUBREL, packet_id):
                yield self._release(packet_id)
            case Ack():
                yield from self._acknowledged(packet)
            case Subscribe():
                if any(one.no_local and names.is_shared(one.pattern) for one in packet.filters):
                    raise ProtocolError(Reason.PROTOCOL_ERROR, "a shared subscription is not local")
                yield Open(packet)
            case Unsubscribe():
                yield Cancel(packet)
            case Ping(Kind.PINGREQ):
                yield Send(Ping(Kind.PINGRESP))
            case Disconnect():
                yield self._goodbye(packet)
            case _:  # a second CONNECT, AUTH that nobody asked for, what only servers say
                yield End(Reason.PROTOCOL_ERROR)

    def _publish(
        self, packet: Publish, messages: list[tuple[int, Publish]], effects: list[Effect]
    ) -> None:
        if packet.properties:
            packet = self._named(packet)
            if Property.SUBSCRIPTION_IDENTIFIER in packet.properties:
                raise ProtocolError(Reason.PROTOCOL_ERROR, "only servers say by which subscription")
        if not packet.qos:
            messages.append((0, packet))
            return
        if packet.qos == 2 and packet.packet_id in self._unreleased:
            effects.append(Send(Ack(Kind.PUBREC, packet.packet_id)))
            return
        if packet.packet_id in self._pending_ids:
            return  # sent again while the space is being asked: the answer comes
        unfinished = len(self._pending) + len(self._unreleased)
        if unfinished >= self._limits.receive_maximum and self.terms.version == V5:
            raise ProtocolError(Reason.RECEIVE_MAXIMUM_EXCEEDED, "too many at once")
        self._last_number += 1
        self._pending.append(_Pending(packet))
        self._pending_ids.add(packet.packet_id)
        messages.append((self._last_number, packet))

    def _named(self, packet: Publish) -> Publish:
        alias = packet.properties.get(Property.TOPIC_ALIAS)
        if alias is None:
            return packet
        if alias > self._limits.topic_aliases:
            raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, f"alias {alias} is beyond the limit")
        if packet.topic:
            self._aliases[alias] = packet.topic
            return packet
        if alias not in self._aliases:
            raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, f"alias {alias} has no name")
        return replace(packet, topic=self._aliases[alias])

    def _registered(self, answers: Sequence[tuple[int, Reason | None]]) -> list[Effect]:
        effects: list[Effect] = []
        for number, reason in answers:
            if number < self._first_number:
                continue  # QoS 0, or of a connection that has ended
            if reason is None:
                return [*effects, End(Reason.SERVER_UNAVAILABLE)]
            self._pending[number - self._first_number].reason = reason
            while self._pending and self._pending[0].reason is not None:
                effects.append(self._answer(self._pending.popleft()))
                self._first_number += 1
        return effects

    def _answer(self, done: _Pending) -> Effect:
        publish, reason = done.publish, done.reason
        assert reason is not None
        self._pending_ids.discard(publish.packet_id)
        if reason.is_failure and self.terms.version != V5:
            # 3.1.1 cannot say no: it is either acknowledged, which would be a lie, or the connection ends.
            return End(reason)
        kind = Kind.PUBACK if publish.qos == 1 else Kind.PUBREC
        if publish.qos == 2 and not reason.is_failure:
            self._unreleased.add(publish.packet_id)
        return Send(Ack(kind, publish.packet_id, reason))

    def _release(self, packet_id: int) -> Effect:
        known = packet_id in self._unreleased
        self._unreleased.discard(packet_id)
        reason = Reason.SUCCESS if known else Reason.PACKET_ID_NOT_FOUND
        return Send(Ack(Kind.PUBCOMP, packet_id, reason))

    def _goodbye(self, packet: Disconnect) -> Effect:
        expiry_s: int | None = packet.properties.get(Property.SESSION_EXPIRY_INTERVAL)
        if expiry_s is not None and expiry_s and not self.terms.expiry_s:
            raise ProtocolError(Reason.PROTOCOL_ERROR, "a session that ends now cannot be kept")
        if expiry_s is not None:
            expiry_s = min(expiry_s, self._limits.session_expiry_most_s)
        with_will = packet.reason != Reason.SUCCESS
        return End(Reason.SUCCESS, said=True, with_will=with_will, expiry_s=expiry_s)

    # --- to the client --------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        return self.outgoing.has_room

    def _delivered(self, message: Message, pattern: str) -> Iterator[Effect]:
        """One message however many subscriptions it came by, with the highest QoS of them and all their identifiers."""
        if self.outgoing.replaced(message):
            return  # the client has yet to acknowledge it
        fitting = self._fitting(message, pattern)
        if not fitting or (message.id in self._repeats and not message.is_retained):
            yield Done(message.handle)
            return
        if len(fitting) > 1:
            self._repeats[message.id] = None
            if len(self._repeats) > _REPEATS_REMEMBERED:
                self._repeats.popitem(last=False)
        packet = self.outgoing.send(message, fitting)
        if packet is None:
            yield Done(message.handle)  # larger than the client takes
            return
        yield Send(packet)
        if not packet.qos:
            yield Done(message.handle)

    def _fitting(self, message: Message, pattern: str) -> list[Subscription]:
        by = self.subscriptions.get(pattern)
        if by is None:
            return []
        fitting = [by]
        if len(self.subscriptions) > 1 and not (message.is_retained or by.asks_more):
            others = (self.subscriptions[one] for one in self._matching(message.topic))
            fitting += [one for one in others if one is not by and not one.asks_more]
        is_own = message.id in self.own
        return [one for one in fitting if not (is_own and one.filter.no_local)]

    def _matching(self, topic: str) -> list[str]:
        found = self._by_topic.get(topic)
        if found is None:
            if len(self._by_topic) >= _TOPICS_REMEMBERED:
                self._by_topic.clear()
            found = [pattern for pattern in self.subscriptions if names.matches(pattern, topic)]
            self._by_topic[topic] = found
        return found

    def _acknowledged(self, ack: Ack) -> Iterator[Effect]:
        packet, message = self.outgoing.acknowledged(ack)
        if packet is not None:
            yield Send(packet)
        if message is not None:
            yield Done(message.handle)
