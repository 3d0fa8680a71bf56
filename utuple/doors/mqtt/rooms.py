"""Where clients do what they do: a space, and what is registered in it. Without security one for all, with its messages in common batches; on
a secured cluster one for each who comes in, since what is registered is judged as his.

What doors remember for their clients (sessions, groups, which families there are) is the doors' own, and is registered as theirs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import utuple
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.emitting import Emitter
from utuple.doors.mqtt.families import Families
from utuple.doors.mqtt.mapped.mapping import Mapping
from utuple.doors.spaces import Spaces
from utuple.doors.visitors import Visitor
from utuple.runtime.tasks import Tasks

IDLE_S = 60.0
"""A room without a client is kept so long: what clients leave behind when they go is done by then."""


@dataclass
class Room:
    visitor: Visitor | None
    space: utuple.Space
    emitter: Emitter
    users: int = 0
    closing: asyncio.TimerHandle | None = None

    def owned(self, name: str) -> str:
        """Of a client, or of a group: others' of the same name are not the same."""
        return name if self.visitor is None else f"{self.visitor.identity.name}/{name}"


class Rooms:
    def __init__(self, spaces: Spaces, own: utuple.Space, mapping: Mapping, limits: Limits) -> None:
        """`own` is the doors' space."""
        self._spaces = spaces
        self._mapping = mapping
        self._limits = limits
        self._tasks = Tasks()
        self._rooms: dict[tuple[tuple[str, str], ...] | None, Room] = {}
        self.families = Families(own, mapping)

    async def enter(self, visitor: Visitor | None) -> Room:
        """To be left. Raises what the cluster says of him when it first meets him."""
        key = visitor.shown if visitor is not None else None
        room = self._rooms.get(key)
        if room is None:
            space = await self._spaces.take(visitor)
            room = self._rooms.get(key)
            if room is not None:  # another of his connections was quicker
                self._spaces.give_back(visitor)
            else:
                announces = self.families.announce if visitor is not None else None
                emitter = Emitter(space, self._mapping, self.families, self._limits, announces)
                room = self._rooms[key] = Room(visitor, space, emitter)
        room.users += 1
        if room.closing is not None:
            room.closing.cancel()
            room.closing = None
        return room

    def leave(self, room: Room) -> None:
        room.users -= 1
        if not room.users and room.visitor is not None:
            loop = asyncio.get_running_loop()
            room.closing = loop.call_later(IDLE_S, self._close_later, room)

    def _close_later(self, room: Room) -> None:
        if room.visitor is not None and self._rooms.pop(room.visitor.shown, None) is not None:
            self._tasks.start(self._close(room), "a room is given up")

    async def _close(self, room: Room) -> None:
        await room.emitter.close()
        self._spaces.give_back(room.visitor)

    def another_space(self, room: Room) -> utuple.Space:
        """For those that share a reader: of one program, one takes part."""
        return self._spaces.another(room.visitor)

    async def drained(self) -> None:
        for room in list(self._rooms.values()):
            await room.emitter.drained()

    async def close(self) -> None:
        for room in list(self._rooms.values()):
            if room.closing is not None:
                room.closing.cancel()
            await room.emitter.close()
        await self._tasks.close()
        await self.families.close()
