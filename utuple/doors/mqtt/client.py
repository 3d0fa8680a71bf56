"""One client: its session, carried out. It outlives its connections as long as its session does.

Everything that takes time (opening and cancelling subscriptions, going away, coming back) happens one after the other, under
one lock: a client that reconnects while it is still being said goodbye to waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import utuple
from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.codec.packets import (
    Kind,
    Packet,
    Property,
    Subscribe,
    Unsubscribe,
)
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.connection import Connection
from utuple.doors.mqtt.last_will import LastWill
from utuple.doors.mqtt.protocol.greeting import Terms
from utuple.doors.mqtt.protocol.outgoing import Message
from utuple.doors.mqtt.protocol.session import (
    Cancel,
    Delivered,
    Done,
    Effect,
    End,
    Event,
    Open,
    Received,
    Register,
    Registered,
    Send,
    Session,
    Subscribed,
    Subscription,
    Tick,
)
from utuple.doors.mqtt.remembering import RENEWED_S, Remembered
from utuple.doors.mqtt.retaining import deliver_retained
from utuple.doors.mqtt.rooms import Room
from utuple.doors.mqtt.subscribing import ASKED, Opened, Subscribing
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks, all_ended

if TYPE_CHECKING:
    from utuple.doors.mqtt.door import Door

_log = Log("utuple.doors.mqtt.client")


class Client:
    def __init__(self, door: Door, terms: Terms, room: Room) -> None:
        self._door = door
        self.quarters = room
        self.id = terms.client_id
        self.session = Session(terms, door.limits)
        self.expiry_s = terms.expiry_s
        self.connection: Connection | None = None
        self.lock = asyncio.Lock()
        self._tasks = Tasks()
        self._room = asyncio.Event()
        self._will = LastWill(self)
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._until_s = 0.0
        self._renewed_s = monotonic_s()
        self._is_over = False
        self._is_here = False
        self.has_names = terms.expiry_s > 0
        """It has been kept at some time: its readers have names, and must be forgotten by them."""
        self.stamp = uuid4().hex
        """By which this door knows what it has kept of the session itself."""
        self.subscribing = Subscribing(
            *(self, room, door.own, door.mapping, door.rooms.families),
            *(door.limits.families, partial(door.rooms.another_space, room)),
        )

    # --- coming and going -----------------------------------------------------------------------

    async def attach(self, terms: Terms, found: Remembered | None) -> None:
        """For a connection. The subscriptions of a session that was there before are open when it returns. If it raises, the
        session is as it was: with all of its subscriptions, and as it is remembered."""
        self._stop_timers()
        self._is_here = True
        self.expiry_s = terms.expiry_s
        self.has_names = self.has_names or terms.expiry_s > 0 or found is not None
        self.session.begin(terms, monotonic_s())
        subscriptions = found.subscriptions if found is not None else ()
        self._until_s = max(self._until_s, found.until_s if found is not None else 0.0)
        for opened in subscriptions:
            self._note(opened)
        await self.subscribing.resume(subscriptions)
        if self.expiry_s:
            await self.remember()
        if self._is_over:
            raise utuple.ReaderReplaced("the same client has come to another door meanwhile")

    async def abandon(self) -> None:
        """It could not begin here: nothing of it stays, and what is remembered of it is for whoever comes next."""
        self._is_over = True
        self._stop_timers()
        await self.subscribing.leave()

    def welcome(self, connection: Connection, terms: Terms, *, present: bool) -> None:
        self.connection, self._will.packet = connection, terms.will
        connection.accept(self)
        connection.send(terms.connack(session_present=present))
        self._carry_out(self.session.resend())
        self.make_room()
        connection.go_on()

    def taken_over(self) -> None:
        """The same client has come again, to this door."""
        self._carry_out([End(Reason.SESSION_TAKEN_OVER)])

    def replaced(self) -> None:
        """The same client has come to another door, which has the session now: it must not be touched here any more."""
        self._is_over = True
        self._stop_timers()
        self._door.over(self)
        self.taken_over()
        self._door.tasks.start(self.subscribing.leave(), "a session is elsewhere")

    def lost(self, connection: Connection) -> None:
        if connection is self.connection:
            self.detach(with_will=True)

    def broken(self, reason: Reason) -> None:
        self._carry_out([End(reason)])

    def _end(self, end: End) -> None:
        connection = self.connection
        if connection is None:
            return
        if end.expiry_s is not None:
            self.expiry_s = end.expiry_s
        if not end.said:
            _log.info("connection ended", client=self.id, reason=end.reason.name)
        connection.close(None if end.said else end.reason)
        self.detach(with_will=end.with_will)

    def detach(self, *, with_will: bool) -> None:
        """The connection is gone."""
        self.connection, self._is_here = None, False
        self._room.clear()
        if with_will:
            self._will.fall_due(self._door)
        else:
            self._will.packet = None
        if self._is_over:
            return
        if self.expiry_s:
            loop = asyncio.get_running_loop()
            self._expiry_timer = loop.call_later(self.expiry_s, self._expired)
            self._door.tasks.start(self._go_away(), "a session pauses")
        else:
            self._door.end(self)

    def _stop_timers(self) -> None:
        self._will.wait_no_more()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None

    async def _go_away(self) -> None:
        async with self.lock:
            if not self._is_here and not self._is_over:
                await self._tasks.close()
                await self.subscribing.pause()
                await self._remembered()

    def _expired(self) -> None:
        self._door.over(self)
        self._door.tasks.start(self._expire(), "a session expires")

    async def _expire(self) -> None:
        if not await self.is_elsewhere():
            await self.end()

    async def is_elsewhere(self) -> bool:
        """Whether its client has come to another door in the meantime, and goes on with this session there."""
        found = await self._door.memory.find(self.id)
        is_alive = found is not None and found.expires_s > now_us() / 1e6
        return found is not None and is_alive and found.stamp != self.stamp

    async def end(self) -> None:
        """The session is over, and nobody waits for that."""
        try:
            await self.discard()
        except utuple.UTupleError as error:
            # Its readers and its record expire by themselves.
            _log.warning("session could not be ended", client=self.id, reason=error)

    async def discard(self) -> None:
        """The session is over: nobody remembers it when it returns. Its will, if it was still to come, comes now."""
        async with self.lock:
            if self._is_over:
                return
            self._is_over = True
            self._stop_timers()
            self._will.publish()
            await self._tasks.close()
            await self.subscribing.end()
            if self._until_s:
                await self._keep(0.0, ())

    async def forget(self, found: Remembered) -> None:
        """Another door's session of this client, which now begins a new one."""
        self.has_names, self._until_s = True, found.until_s
        try:
            await self.subscribing.resume(found.subscriptions)
            await self.discard()
        except BaseException:
            await self.abandon()
            raise

    async def remember(self) -> None:
        """As kept, with what it has subscribed to."""
        grace_s = RENEWED_S if self._is_here else 0.0
        expires_s = now_us() / 1e6 + self.expiry_s + grace_s
        await self._keep(expires_s, tuple(self.subscribing.opened.values()))

    async def _keep(self, expires_s: float, subscriptions: tuple[Opened, ...]) -> None:
        self._until_s = max(self._until_s, expires_s)
        self._renewed_s = monotonic_s()
        remembered = Remembered(self.stamp, expires_s, self._until_s, subscriptions)
        await self._door.memory.keep(self.id, remembered)

    # --- packets and effects --------------------------------------------------------------------

    def received(self, packets: Sequence[Packet]) -> None:
        self._step(Received(packets))
        connection = self.connection
        if connection is not None and self._has_too_much:
            connection.hold()

    @property
    def _has_too_much(self) -> bool:
        most = self._door.limits.receive_maximum
        return self.session.pending >= most or self.quarters.emitter.is_full

    def tick(self) -> None:
        self._step(Tick())
        if self.expiry_s and monotonic_s() - self._renewed_s > RENEWED_S / 2:
            self._renewed_s = monotonic_s()
            self._tasks.start(self._renew(), "renewing a session")

    async def _renew(self) -> None:
        async with self.lock:
            if self.connection is not None:
                await self._remembered()

    def _step(self, event: Event) -> None:
        self._carry_out(self.session.step(event, monotonic_s()))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(packet) if self.connection is not None:
                    self.connection.send(packet)
                case Register(messages):
                    emitter, own = self.quarters.emitter, self.session.note_own
                    for number, publish in messages:
                        emitter.publish(self.id, publish, (self._registered, number), own)
                case Done(handle):
                    if isinstance(handle, utuple.Delivery):
                        with suppress(utuple.Closed):  # then it comes again
                            handle.ack().close()  # noted: the rest is for who can await it
                    self.make_room()
                case Open(subscribe):
                    self._start(self._subscribe(subscribe), "subscribing")
                case Cancel(unsubscribe):
                    self._start(self._unsubscribe(unsubscribe), "unsubscribing")
                case End():
                    self._end(effect)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """What a client waits for: if it fails, the client must not wait for ever."""

        async def run() -> None:
            try:
                await work
            except Exception:
                self.broken(Reason.UNSPECIFIED_ERROR)
                raise

        self._tasks.start(run(), name)

    def _registered(self, answers: Sequence[tuple[int, Reason | None]]) -> None:
        self._step(Registered(answers))
        if self.connection is not None and not self._has_too_much:
            self.connection.go_on()

    # --- subscriptions --------------------------------------------------------------------------

    async def _subscribe(self, packet: Subscribe) -> None:
        async with self.lock:
            began_ms = self.quarters.emitter.id_clock.of_subscription(now_us() // 1000)
            identifier = next(iter(packet.properties.get(Property.SUBSCRIPTION_IDENTIFIER, ())), 0)
            user = packet.properties.get(Property.USER_PROPERTY, ())
            known, fresh = set(self.subscribing.opened), []
            several = [Opened(asked, identifier, user, began_ms) for asked in packet.filters]
            reasons = await self._open_all(several)
            for asked, reason in zip(packet.filters, reasons, strict=True):
                is_new = asked.pattern not in known
                known.add(asked.pattern)
                wants = asked.retain_handling == 0 or (asked.retain_handling == 1 and is_new)
                if not reason.is_failure and wants and not names.is_shared(asked.pattern):
                    fresh.append(asked)
            if self.expiry_s and not await self._remembered():
                reasons = [Reason.UNSPECIFIED_ERROR for _ in reasons]
            self._step(Subscribed(Kind.SUBACK, packet.packet_id, tuple(reasons)))
        await deliver_retained(self, self._door, fresh, began_ms)

    async def _open_all(self, several: Sequence[Opened]) -> list[Reason]:
        """At once: a client may have a thousand. With a filter that is there twice one after the other, as if each had come by itself."""
        if len({opened.filter.pattern for opened in several}) < len(several):
            return [await self._open(opened) for opened in several]
        return await all_ended(*map(self._open, several))

    async def _open(self, opened: Opened) -> Reason:
        asked = opened.filter
        if names.is_shared(asked.pattern) and not opened.group:
            return Reason.TOPIC_FILTER_INVALID
        if not names.is_filter(asked.pattern):
            return Reason.TOPIC_FILTER_INVALID
        if len(self.subscribing.opened) >= self._door.limits.subscriptions:
            return Reason.QUOTA_EXCEEDED
        before = self.session.subscriptions.get(asked.pattern)
        self._note(opened)
        reason = await self.subscribing.open(opened)
        if reason.is_failure:
            self.session.unsubscribe(asked.pattern)
            if before is not None and asked.pattern in self.subscribing.opened:
                self.session.subscribe(before)
        return reason

    def _note(self, opened: Opened) -> None:
        more = bool(opened.group) or any(name in ASKED for name, _ in opened.user)
        self.session.subscribe(Subscription(opened.filter, opened.identifier, more))

    async def _remembered(self) -> bool:
        try:
            if not self.subscribing.opened and await self.is_elsewhere():
                self.replaced()  # with a subscription, its reader would have told
                return False
            await self.remember()
        except utuple.UTupleError as error:
            _log.warning("session could not be kept", client=self.id, reason=error)
            return False
        return True

    async def _unsubscribe(self, packet: Unsubscribe) -> None:
        async with self.lock:
            reasons = []
            for pattern in packet.patterns:
                self.session.unsubscribe(pattern)
                was_there = await self.subscribing.cancel(pattern)
                reasons.append(Reason.SUCCESS if was_there else Reason.NO_SUBSCRIPTION_EXISTED)
            if self.expiry_s:
                await self._remembered()
            self._step(Subscribed(Kind.UNSUBACK, packet.packet_id, tuple(reasons)))

    # --- deliveries -----------------------------------------------------------------------------

    def make_room(self) -> None:
        """Something has changed for which deliveries may wait."""
        self._room.set()

    async def room(self) -> None:
        """Until the client takes one more message."""
        while not (
            self.connection is not None and self.connection.is_writable and self.session.has_room
        ):
            self._room.clear()
            await self._room.wait()

    def deliver(self, message: Message, pattern: str) -> None:
        self._step(Delivered(message, pattern))
