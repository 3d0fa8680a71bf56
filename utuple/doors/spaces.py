"""A space for each who comes in: calls are made for him, and answered as to him. Without security there is one, for all.

Spaces of several visitors share connections: HTTP/2 carries a limited number of calls on one, and a server takes a limited number
of connections from one machine. A space that nobody uses any longer is kept for a moment, for the next request, then closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import utuple
from utuple.client.connecting import connect_for
from utuple.client.connections import Connections
from utuple.doors.visitors import Visitor
from utuple.runtime.tasks import Tasks
from utuple.security.own import OwnCredentials

_TOGETHER = 24
"""Spaces on one set of connections: two lasting calls each to every server, and room for others below a connection's 256."""
IDLE_S = 30.0
_MOST = 20_000
"""Visitors at a time, those included whose space is just kept."""


@dataclass
class _Set:
    """Connections, and how many spaces are on them."""

    connections: Connections
    spaces: int = 0


@dataclass
class _Held:
    on: _Set
    space: utuple.Space
    users: int = 0
    closing: asyncio.TimerHandle | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_open: bool = False


class Spaces:
    def __init__(
        self, managers: Sequence[str], own: OwnCredentials | None, idle_s: float = IDLE_S
    ) -> None:
        self._managers = tuple(managers)
        self._own = own
        self._idle_s = idle_s
        self._sets: list[_Set] = []
        self._held: dict[tuple[tuple[str, str], ...], _Held] = {}
        self._tasks = Tasks()

    def __len__(self) -> int:
        return len(self._held)

    @asynccontextmanager
    async def lent(self, visitor: Visitor | None) -> AsyncIterator[utuple.Space]:
        """For as long as it is used. Raises what the cluster says of him when it first meets him."""
        space = await self.take(visitor)
        try:
            yield space
        finally:
            self.give_back(visitor)

    async def take(self, visitor: Visitor | None) -> utuple.Space:
        """To be given back."""
        shown = _shown(visitor)
        held = self._held.get(shown) or self._new(visitor)
        held.users += 1
        if held.closing is not None:
            held.closing.cancel()
            held.closing = None
        async with held.opening:
            if held.is_open:
                return held.space
            if self._held.get(shown) is held:
                try:
                    await held.space.open()
                except BaseException:
                    self._forget(shown, held)
                    raise
                held.is_open = True
                return held.space
        # Who was opening it while we waited has failed, or was cancelled, and it is closed: begin again with a new one.
        return await self.take(visitor)

    def another(self, visitor: Visitor | None) -> utuple.Space:
        """One more, of whoever asks for it: he opens and closes it. On connections that are there already."""
        held = self._held.get(_shown(visitor))
        assert held is not None, "one who has none needs no second"
        return self._new_space(visitor, held.on.connections)

    def give_back(self, visitor: Visitor | None) -> None:
        shown = _shown(visitor)
        held = self._held.get(shown)
        if held is None:
            return
        held.users -= 1
        if not held.users and shown:
            loop = asyncio.get_running_loop()
            held.closing = loop.call_later(self._idle_s, self._forget, shown, held)

    def _new(self, visitor: Visitor | None) -> _Held:
        if len(self._held) >= _MOST:
            raise utuple.Overloaded(f"{_MOST} visitors are here, which is the limit")
        on = next((one for one in self._sets if one.spaces < _TOGETHER), None)
        if on is None:
            on = _Set(Connections(self._own))
            self._sets.append(on)
        on.spaces += 1
        held = self._held[_shown(visitor)] = _Held(on, self._new_space(visitor, on.connections))
        return held

    def _new_space(self, visitor: Visitor | None, connections: Connections) -> utuple.Space:
        """Of nobody in particular it is the door's own, or nobody's where nothing is secured."""
        known = visitor or self._own
        owner = "" if known is None else known.identity.name
        return connect_for(self._managers, connections, _shown(visitor), owner)

    def _forget(self, shown: tuple[tuple[str, str], ...], held: _Held) -> None:
        if self._held.get(shown) is not held:
            return
        del self._held[shown]
        held.on.spaces -= 1
        self._tasks.start(self._close(held), "closing a space")

    async def _close(self, held: _Held) -> None:
        await held.space.close()
        if not held.on.spaces and held.on in self._sets:
            self._sets.remove(held.on)
            await held.on.connections.close()

    async def close(self) -> None:
        held, self._held = list(self._held.values()), {}
        for one in held:
            if one.closing is not None:
                one.closing.cancel()
        await asyncio.gather(*(one.space.close() for one in held))
        while self._tasks:
            await asyncio.wait(list(self._tasks))
        for on in self._sets:
            await on.connections.close()
        self._sets.clear()


def _shown(visitor: Visitor | None) -> tuple[tuple[str, str], ...]:
    return visitor.shown if visitor is not None else ()
