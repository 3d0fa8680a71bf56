"""Retained messages: the last one of each name, for who subscribes later.

A message that is published as retained is registered twice: as what it is, and in a family of the doors' own under its whole
name, because only there a filter over several families finds it. The newest one of a name counts; an empty payload ends it.
For one name that is an event, the newest event of its address counts too if it came from elsewhere than MQTT.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import utuple
from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.codec.packets import Filter, Publish
from utuple.doors.mqtt.mapped.identity import Form, Marks, event_id, made_ms, marks_of
from utuple.doors.mqtt.mapped.mapping import Event, Mapping
from utuple.doors.mqtt.mapped.payload import (
    is_expired,
    payload_of,
    properties_of,
    raw_content,
    with_properties,
)
from utuple.doors.mqtt.protocol.outgoing import Message
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import all_ended

if TYPE_CHECKING:
    from utuple.doors.mqtt.client import Client
    from utuple.doors.mqtt.door import Door

_log = Log("utuple.doors.mqtt.retaining")
TYPE = "retained"
_LIFETIME_S = 366 * 86_400
"""Unless the message says when it expires."""


def retained_event(
    mapping: Mapping,
    packet: Publish,
    expires_s: float | None,
    now_ms: int,
    tag: int,
) -> dict[str, Any]:
    data = raw_content(packet.payload, mapping).data
    lifetime_s = _LIFETIME_S if expires_s is None else max(expires_s - now_ms / 1000, 0)
    return {
        "subject": mapping.messages_subject,
        "type": TYPE,
        "address": packet.topic,
        "data": with_properties(data, packet.properties, expires_s),
        "position": None,
        "time": None,
        "lifetime_s": lifetime_s,
        "id": event_id(now_ms, Marks(packet.qos, True, Form.VALUE), tag ^ 1),
    }


async def retained_messages(
    space: utuple.Space,
    mapping: Mapping,
    pattern: str,
    before_ms: int,
    now_s: float,
    most: int,
    *,
    by_event: bool = False,
) -> AsyncIterator[Message]:
    """Those that the filter matches. What was published since `before_ms` comes by the subscription itself. `by_event`: of one name
    its newest event counts if it was published as retained, since whoever published it may not have been allowed more."""
    newest: dict[str, utuple.Delivery] = {}
    exact = not names.has_wildcard(pattern)
    begin = names.fixed_prefix(pattern)
    address: Any = pattern if exact else utuple.prefix(begin) if begin else None
    order: dict[str, Any] = {"newest_first": True, "limit": 1} if exact else {}
    async for one in _kept(space, mapping, address, order):
        held = newest.get(one.address)
        is_newer = held is None or (one.time, one.id) > (held.time, held.id)
        if is_newer and names.matches(pattern, one.address) and made_ms(one.id) < before_ms:
            newest[one.address] = one
            if len(newest) > most:
                break
    found = newest.get(pattern)
    foreign = await _foreign(space, mapping, pattern, by_event=by_event) if exact else None
    is_newer = foreign is not None and (found is None or foreign.time > found.time)
    if foreign is not None and is_newer and made_ms(foreign.id) < before_ms:
        newest.pop(pattern, None)
        marks = marks_of(foreign.id)
        payload = payload_of(foreign.data, None if marks is None else marks.form, mapping)
        yield Message(foreign.id, pattern, payload, 2, True, True, None)
    for topic, one in newest.items():
        payload = payload_of(one.data, Form.VALUE, mapping)
        if payload and not is_expired(one.data, now_s):
            marks = marks_of(one.id)
            qos = marks.qos if marks is not None else 2
            said = properties_of(one.data, now_s)
            yield Message(one.id, topic, payload, qos, True, True, None, said)


async def deliver_retained(
    client: Client, door: Door, fresh: Sequence[Filter], before_ms: int
) -> None:
    """Those of the filters that a client has just subscribed to, some of them at once."""
    most = door.limits.readings
    for at in range(0, len(fresh), most):
        some = fresh[at : at + most]
        await all_ended(*(_deliver(client, door, asked.pattern, before_ms) for asked in some))


async def _deliver(client: Client, door: Door, pattern: str, before_ms: int) -> None:
    room = client.quarters
    given = (door.mapping, pattern, before_ms, now_us() / 1e6, door.limits.retained_most)
    try:
        async for message in retained_messages(
            room.space, *given, by_event=room.visitor is not None
        ):
            await client.room()
            client.deliver(message, pattern)
    except utuple.UTupleError as error:
        _log.warning("retained messages could not be read", client=client.id, reason=error)


async def _kept(
    space: utuple.Space, mapping: Mapping, address: Any, order: dict[str, Any]
) -> AsyncIterator[utuple.Delivery]:
    """Those of the doors' family; none to who may not read there."""
    found = space.read(subject=mapping.messages_subject, type=TYPE, address=address, **order)
    try:
        async for one in found:
            yield one
    except utuple.NotAllowed:
        return


async def _foreign(
    space: utuple.Space, mapping: Mapping, topic: str, *, by_event: bool
) -> utuple.Delivery | None:
    """The newest event of this name, if it did not come in through MQTT."""
    place = mapping.place(topic)
    if not isinstance(place, Event) or place.is_message:
        return None
    async for one in space.read(
        subject=place.family.subject,
        type=place.family.type,
        address=place.address,
        newest_first=True,
        limit=1,
    ):
        marks = marks_of(one.id)
        return one if marks is None or (by_event and marks.retain) else None
    return None
