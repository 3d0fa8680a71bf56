"""Which families there are, for subscriptions over several of them (`#`, `+/load/#`).

The space has no list of families. So the first event of a family that comes in through a door is announced, in a family of
the doors' own, and is registered after its announcement. Doors with such a subscription watch the announcements and open an
EF for each family as it comes; what was published in between is found in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import utuple
from utuple.doors.mqtt.mapped.mapping import Family, Mapping
from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("utuple.doors.mqtt.families")

TYPE = "family"
_LIFETIME_S = 60 * 86_400
_AGAIN_S = 86_400
"""A family is announced again so often, so that one in use is always known."""
_REMEMBERED = 100_000

Listener = Callable[[Family], None]


class Families:
    def __init__(self, space: utuple.Space, mapping: Mapping) -> None:
        self._space = space
        self._mapping = mapping
        self._announced: dict[tuple[str, str], float] = {}
        """Until when an announcement counts."""
        self._known: set[Family] = set(mapping.known)
        self._listeners: dict[Listener, None] = {}
        self._watch: utuple.Watch | None = None
        self._opening = asyncio.Lock()
        self._tasks = Tasks()

    def announcement(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """The event that makes this one's family known, if it is not yet."""
        family = event["subject"], event["type"]
        now_s = monotonic_s()
        if now_s < self._announced.get(family, 0.0):
            return None
        if family == self._mapping.messages or self._mapping.events_families:
            return None
        if len(self._announced) >= _REMEMBERED:
            self._announced.clear()
        self._announced[family] = now_s + _AGAIN_S
        return {
            "subject": self._mapping.messages_subject,
            "type": TYPE,
            "address": "/".join(family),
            "data": {},
            "lifetime_s": _LIFETIME_S,
        }

    async def announce(self, event: dict[str, Any]) -> None:
        """As the door itself, after an event of this family was accepted: so that whoever may not emit makes none known. What was
        published before is found in the store."""
        announcement = self.announcement(event)
        if announcement is None:
            return
        try:
            await self._space.emit(**announcement)
        except utuple.UTupleError as error:
            self._announced.pop((event["subject"], event["type"]), None)
            _log.warning("family not announced", family=announcement["address"], reason=error)

    async def known(self) -> frozenset[Family]:
        """All that are known now; later ones are told to the listeners."""
        async with self._opening:  # by one: of two watches nobody would read the first
            if self._watch is None and not self._mapping.events_families:
                watch = self._space.watch(subject=self._mapping.messages_subject, type=TYPE)
                await watch.open()
                self._watch = watch
                self._tasks.keep(self._follow, "following families")
        async for one in self._space.read(subject=self._mapping.messages_subject, type=TYPE):
            self._learn(one.address)
        return frozenset(self._known)

    def listen(self, listener: Listener) -> None:
        self._listeners[listener] = None

    def unlisten(self, listener: Listener) -> None:
        self._listeners.pop(listener, None)

    async def close(self) -> None:
        await self._tasks.close()
        if self._watch is not None:
            await self._watch.close()

    async def _follow(self) -> None:
        assert self._watch is not None
        async for one in self._watch:
            self._learn(one.address)

    def _learn(self, address: str) -> None:
        subject, _, type_ = address.partition("/")
        family = Family(subject, type_)
        if family not in self._known and self._mapping.is_event_family(*family):
            self._known.add(family)
            for listener in list(self._listeners):
                listener(family)
