"""What `watch` and `serve` hand out: opened, iterated and closed alike.

How a formal is registered and followed is for the two that build on this, `Watch` and `Device`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from itertools import repeat
from typing import Any, Self

from utuple.client.delivery import Delivery
from utuple.client.formal import Formal
from utuple.client.link import Link
from utuple.client.parts import Parts
from utuple.errors import Closed, OutcomeUnknown
from utuple.model.key import key_of
from utuple.model.utuple import UTuple
from utuple.runtime.tasks import Tasks


class Deliveries(ABC):
    """An async context manager and an async iterator of deliveries."""

    def __init__(self, parts: Parts, utuple: UTuple, *, named: bool) -> None:
        self._parts = parts
        self._utuple = utuple
        self._named = named
        self._key = key_of(*utuple.family)
        self._formal = Formal(
            utuple,
            named=named,
            sessions=parts.sessions,
            config=parts.config,
            unknown_at=self._unknown_at,
        )
        self._acknowledge = self._formal.acknowledge
        self._tasks = Tasks()
        self._opening = asyncio.Lock()
        self._opened = False
        self._closed = False
        self._when_closed: Callable[[Deliveries], object] | None = None

    def when_closed(self, tell: Callable[[Deliveries], object]) -> None:
        self._when_closed = tell

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._opened else "not open yet"
        reader = f" as {self._utuple.reader!r}" if self._named else ""
        kind = type(self).__name__.lower()
        return f"<{kind} of {'/'.join(self._utuple.family)}{reader}, {state}>"

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        while (taken := self._formal.take()) is None:
            await (self._formal.arrival() if self._opened else self.open())
        return Delivery(*taken, self._acknowledge)

    async def take(self, most: int) -> list[Delivery]:
        """The next delivery and what else is there already, at most so many: cheaper than one by one."""
        while self._formal.is_empty:
            await (self._formal.arrival() if self._opened else self.open())
        found: list[Delivery] = []
        while len(found) < most and not self._formal.is_empty:
            chunk, places = self._formal.take_some(most - len(found))
            found += map(Delivery, repeat(chunk), places, repeat(self._acknowledge))
        return found

    async def open(self, *, retry: bool = False) -> Self:
        """Registered, and streams open. Entering `async with` does it."""
        async with self._opening:
            if not self._opened and not self._closed:
                try:
                    await self._begin(retry=retry)
                except OutcomeUnknown as error:
                    error.pending = self
                    raise
                self._opened = True
                await self._formal.attached()
        if self._closed:
            await self._leave(cancel=not self._named)  # closed while it was being opened
            raise Closed(f"{self!r} cannot be opened again")
        return self

    async def close(self) -> None:
        """Acknowledgements are flushed. A reader with a name may come back and go on after them."""
        await self._end(cancel=not self._named)

    async def cancel(self) -> None:
        """Close for good: the reader's name and its positions are forgotten by the servers."""
        await self._end(cancel=True)

    async def _end(self, *, cancel: bool) -> None:
        if self._closed:
            return
        self._closed = True
        await self._leave(cancel=cancel)
        if self._when_closed is not None:
            self._when_closed(self)

    async def _leave(self, *, cancel: bool) -> None:
        self._cease()
        await self._tasks.close()
        await self._formal.leave(cancel=cancel)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._tasks.start(work, f"{self!r}")

    @abstractmethod
    async def _begin(self, *, retry: bool) -> None:
        """Register, and attach."""

    @abstractmethod
    def _unknown_at(self, link: Link) -> None:
        """A server has forgotten the formal."""

    @abstractmethod
    def _cease(self) -> None:
        """It is being closed: follow no more changes."""
