"""Messages of clients, registered in the space: events in batches, commands one by one.

Whatever has come while the last calls were on their way is the next batch. A message is answered for only when the space has
answered; while the space cannot, the door asks again and again with the same ids, and its clients wait, held back by the
limits on what they may have under way.

A message that is sent again (DUP) may have been registered before: by this door, which then knows it, or by one that has
died since. The event's id tells (`identity.tag_of`): it is looked for among the newest events of its address. If it is
there once, it is this message. If it is there more than once, then this client sends the same payload under the same packet
identifier again and again, and nobody can tell whether this one is new: it is registered, since at least once is the promise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import utuple
from utuple.doors.mqtt.codec.packets import Property, Publish
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.families import Families
from utuple.doors.mqtt.mapped.identity import (
    Form,
    IdClock,
    Marks,
    event_id,
    made_ms,
    marks_of,
    tag_of,
)
from utuple.doors.mqtt.mapped.mapping import Command, Event, Mapping
from utuple.doors.mqtt.mapped.payload import (
    as_raw,
    content_of,
    position_of,
    time_of,
    with_form,
    with_properties,
)
from utuple.doors.mqtt.retaining import retained_event
from utuple.doors.mqtt.sent_again import SentAgain
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("utuple.doors.mqtt.emitting")

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0

_PLACES_REMEMBERED = 50_000
_OVERHEAD_BYTES = 500
"""What a message takes in memory beside its payload."""

Announce = Callable[[dict[str, Any]], Awaitable[None]]
Own = Callable[[UUID], None]
Answers = Callable[[Sequence[tuple[int, Reason | None]]], None]
"""Is told the reasons of several messages at once. None: the door stops before the space has answered."""
Answer = tuple[Answers, int]
"""Who is told, and the number that this message has there."""


@dataclass(slots=True)
class _Item:
    events: list[dict[str, Any]]
    """One; with one that says that its family is new before it, and one that says that it is retained behind it."""
    packet: Publish
    tag: int
    size_bytes: int
    answers: list[Answer]
    reason: Reason | None = Reason.SUCCESS


class Emitter:
    def __init__(
        self,
        space: utuple.Space,
        mapping: Mapping,
        families: Families,
        limits: Limits,
        announce: Announce | None = None,
    ) -> None:
        """`announce`: makes a family known afterwards, where the space is not the door's own; else it is done with the event."""
        self._space = space
        self._announce = announce
        self._mapping = mapping
        self._families = families
        self._limits = limits
        self._tasks = Tasks()
        self._waiting: list[_Item] = []
        self._waiting_bytes = 0
        self._calls = 0
        self._under_way: dict[int, _Item] = {}
        """By tag: QoS 1 and 2, until they are answered."""
        self._sent_again = SentAgain(space, limits.readings)
        self._dice = Random()
        self.id_clock = IdClock()
        self._places: dict[str, Event | Command | None] = {}

    @property
    def is_full(self) -> bool:
        return self._waiting_bytes > self._limits.waiting_bytes

    async def drained(self) -> None:
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def close(self) -> None:
        await self._tasks.close()
        await self._sent_again.close()

    # --- one message ----------------------------------------------------------------------------

    def publish(self, client_id: str, packet: Publish, answer: Answer, own: Own) -> None:
        """`own` is told the id that the event will have."""
        place = self._place(packet.topic)
        if isinstance(place, Event):
            said = packet.properties.get(Property.PAYLOAD_FORMAT_INDICATOR)
            if said and not _is_text(packet.payload):
                _tell(answer, Reason.PAYLOAD_FORMAT_INVALID)
            else:
                self._event(client_id, place, packet, answer, own)
        elif place is not None:
            self._tasks.start(self._command(place, packet, answer), "commanding")
        else:
            _tell(answer, Reason.TOPIC_NAME_INVALID)

    def _place(self, topic: str) -> Event | Command | None:
        """Devices say the same names again and again."""
        try:
            return self._places[topic]
        except KeyError:
            if len(self._places) >= _PLACES_REMEMBERED:
                self._places.clear()
            place = self._places[topic] = self._mapping.place(topic)
            return place

    def _event(
        self, client_id: str, place: Event, packet: Publish, answer: Answer, own: Own
    ) -> None:
        if packet.qos:
            tag = tag_of(client_id, packet.packet_id, packet.qos, packet.topic, packet.payload)
            if packet.dup and (under_way := self._under_way.get(tag)) is not None:
                under_way.answers.append(answer)
                return
        else:
            tag = self._dice.getrandbits(62)
        item = self._item(place, packet, tag, answer)
        own(item.events[0]["id"])
        if packet.dup:
            self._tasks.start(self._unless_there(place, item), "looking for a message sent again")
            return
        self._add(item)

    def _item(self, place: Event, packet: Publish, tag: int, answer: Answer) -> _Item:
        now_ms = self.id_clock.of_event(now_us() // 1000)
        expires_s: float | None = None
        lifetime_s = self._mapping.lifetime_s(place)
        if (expiry_s := packet.properties.get(Property.MESSAGE_EXPIRY_INTERVAL)) is not None:
            lifetime_s, expires_s = expiry_s, now_ms / 1000 + expiry_s
        content = content_of(packet.payload, self._mapping, as_json=not place.is_message)
        data, said = content.data, packet.properties
        event: dict[str, Any] = {
            "subject": place.family.subject,
            "type": place.family.type,
            "address": place.address,
            "data": with_properties(data, said, expires_s) if said else data,
            "position": None,
            "time": None,
            "lifetime_s": lifetime_s if packet.qos else 0,
            "id": event_id(now_ms, Marks(packet.qos, packet.retain, content.form), tag),
        }
        if not place.is_message:
            event["position"] = position_of(data, said, self._mapping)
            event["time"] = time_of(data, said, self._mapping)
        events = [event]
        if packet.retain:
            events.append(retained_event(self._mapping, packet, expires_s, now_ms, tag))
        return _Item(events, packet, tag, len(packet.payload) + _OVERHEAD_BYTES, [answer])

    def _raw(self, item: _Item) -> dict[str, Any] | None:
        """The same event with its payload as it came: JSON may say what a uTuple cannot carry. None: it was so before."""
        packet, event = item.packet, next(e for e in item.events if e.get("id") is not None)
        marks = marks_of(event["id"])
        if marks is None or marks.form is Form.VALUE:
            return None
        event["data"] = as_raw(packet.payload, event["data"], self._mapping)
        own = Marks(packet.qos, packet.retain, Form.VALUE)
        event["id"] = event_id(made_ms(event["id"]), own, item.tag)
        return event

    async def _unless_there(self, event: Event, item: _Item) -> None:
        """Registered unless it is there already."""
        self._under_way.setdefault(item.tag, item)
        if await self._sent_again.times_there(event, item.tag) == 1:
            self._answer([item])
        else:
            self._add(item)

    # --- batches --------------------------------------------------------------------------------

    def _add(self, item: _Item) -> None:
        self._under_way.setdefault(item.tag, item)
        new = self._families.announcement(item.events[0]) if self._announce is None else None
        if new is not None:
            item.events.insert(0, new)
        self._waiting.append(item)
        self._waiting_bytes += item.size_bytes
        if len(self._waiting) == 1 and self._calls < self._limits.calls:
            self._calls += 1
            self._tasks.start(self._send(), "registering")

    async def _send(self) -> None:
        """Batch after batch while there is something: it was made in one turn of the loop, and leaves in the next."""
        try:
            while self._waiting:
                items = self._waiting[: self._limits.batch_events]
                del self._waiting[: self._limits.batch_events]
                if self._waiting and self._calls < self._limits.calls:
                    self._calls += 1
                    self._tasks.start(self._send(), "registering")
                size_bytes = sum(item.size_bytes for item in items)
                try:
                    await self._register(items)
                finally:
                    self._waiting_bytes -= size_bytes
                    self._answer(items)
                if self._announce is not None:
                    for item in items:
                        if item.reason is Reason.SUCCESS:
                            await self._announce(item.events[0])
        finally:
            self._calls -= 1

    def _answer(self, items: Sequence[_Item]) -> None:
        """Who has several among them hears of all at once."""
        told: dict[Answers, list[tuple[int, Reason | None]]] = {}
        for item in items:
            if self._under_way.get(item.tag) is item:
                del self._under_way[item.tag]
            for answers, number in item.answers:
                told.setdefault(answers, []).append((number, item.reason))
            item.answers = []
        for answers, reasons in told.items():
            answers(reasons)

    async def _register(self, items: list[_Item]) -> None:
        """Until the space has answered for each of them."""
        rows = [(item, event) for item in items for event in item.events]
        wait_s = _FIRST_WAIT_S
        try:
            while rows:
                rows, is_stuck = await self._try(rows)
                if is_stuck:
                    await asyncio.sleep(wait_s)
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        except BaseException:
            for item in items:
                item.reason = None
            raise

    async def _try(
        self, rows: list[tuple[_Item, dict[str, Any]]]
    ) -> tuple[list[tuple[_Item, dict[str, Any]]], bool]:
        """What is left to do, and whether to wait before."""
        try:
            await self._space.emit_many([event for _, event in rows])
            return [], False
        except utuple.SomeRefused as refused:
            return self._refused(rows, refused), False
        except utuple.NotAllowed as error:
            return self._refused(
                rows, utuple.SomeRefused(dict.fromkeys(range(len(rows)), error), 0)
            ), False
        except utuple.OutcomeUnknown as error:
            left = []
            if isinstance(error.__cause__, utuple.SomeRefused):
                left = self._refused(rows, error.__cause__)
            reached = error.reached if error.reached is not None else len(rows)
            await self._until_known(error)
            return [*left, *rows[reached:]], False
        except utuple.NotRegistered as error:
            _log.warning("space does not take events yet", events=len(rows), reason=error)
            return rows, True

    async def _until_known(self, error: utuple.OutcomeUnknown) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            _log.warning("outcome not known yet", reason=error)
            try:
                await self._space.retry(error)
                return
            except utuple.OutcomeUnknown as again:
                error = again
            except utuple.NotRegistered:
                """The same is asked again."""
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _refused(
        self, rows: list[tuple[_Item, dict[str, Any]]], refused: utuple.SomeRefused
    ) -> list[tuple[_Item, dict[str, Any]]]:
        """Those whose payload is tried once more, as it came."""
        again = []
        for number, error in refused.refused.items():
            item, event = rows[number]
            if isinstance(error, utuple.NotAllowed):
                self._not_allowed(item, event, error)
                continue
            field = error.field if isinstance(error, utuple.InvalidInput) else ""
            if ".data" in field and (raw := self._raw(item)) is not None:
                again.append((item, raw))
                continue
            _log.info("message refused", reason=error)
            item.reason = (
                Reason.TOPIC_NAME_INVALID
                if field.endswith((".address", ".subject", ".type"))
                else Reason.IMPLEMENTATION_SPECIFIC_ERROR
            )
        return again

    def _not_allowed(self, item: _Item, event: dict[str, Any], error: utuple.NotAllowed) -> None:
        """Whoever may emit something, and not keep it as retained under its whole name, has emitted it: the newest event of a name
        is what is retained of it."""
        if event is item.events[0]:
            _log.info("message not allowed", reason=error)
            item.reason = Reason.NOT_AUTHORIZED

    # --- commands -------------------------------------------------------------------------------

    async def _command(self, command: Command, packet: Publish, answer: Answer) -> None:
        content = content_of(packet.payload, self._mapping, as_json=True)
        reason: Reason | None = None
        try:
            receipt = await self._space.command(
                subject=command.family.subject,
                type=command.family.type,
                address=command.address,
                data=with_form(
                    with_properties(content.data, packet.properties, None), content.form
                ),
                lifetime_s=packet.properties.get(Property.MESSAGE_EXPIRY_INTERVAL, 0),
            )
            reason = Reason.SUCCESS if receipt else Reason.NO_MATCHING_SUBSCRIBERS
        except utuple.NotAllowed as error:
            _log.info("command not allowed", reason=error)
            reason = Reason.NOT_AUTHORIZED
        except utuple.Refused as error:
            _log.info("command refused", reason=error)
            reason = Reason.IMPLEMENTATION_SPECIFIC_ERROR
        except (utuple.NotRegistered, utuple.OutcomeUnknown, utuple.Closed) as error:
            _log.warning("command not registered", reason=error)
        finally:
            _tell(answer, reason)


def _tell(answer: Answer, reason: Reason | None) -> None:
    answers, number = answer
    answers([(number, reason)])


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
