"""What `watch` and `serve` hand out: opened, iterated and closed alike.

How a formal is registered and followed is for the two that build on this, `Watch` and `Device`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine
from itertools import repeat
from typing import Any, Self

from utuple.client.arguments import check_timeout
from utuple.client.parts import Parts
from utuple.client.receiving.delivery import Delivery
from utuple.client.receiving.formal import Formal
from utuple.client.receiving.link import Link
from utuple.errors import Closed, InvalidInput, OutcomeUnknown
from utuple.model.key import key_of
from utuple.model.utuple import UTuple
from utuple.runtime.tasks import Tasks


def check_take(most: object, timeout_s: object) -> None:
    """The arguments of `take`."""
    if type(most) is not int or most < 1:
        raise InvalidInput("most", most, "must be a whole number above 0")
    check_timeout(timeout_s)


class Deliveries(ABC):
    """An async context manager and an async iterator of deliveries. It ends by being closed only; `take` gives the next
    delivery and what else is there already, and nothing if none comes within a time."""

    def __init__(self, parts: Parts, utuple: UTuple, *, named: bool) -> None:
        self._parts = parts
        self._utuple = utuple
        self._named = named
        self._key = key_of(*utuple.family)
        self._begin_anew()
        self._tasks = Tasks()
        self._opening = asyncio.Lock()
        self._opened = False
        self._closed = False
        self._cutting: asyncio.Timeout | None = None
        """While it is being opened: ends that."""
        self._cancels = False
        """Whoever closes it while it is being opened wants it forgotten."""
        self._undoing: asyncio.Task[None] | None = None
        """Of an opening that failed or was cancelled."""
        self._tell_opening: Callable[[Deliveries], object] = _nobody
        self._tell_closed: Callable[[Deliveries], object] = _nobody

    def when_open(
        self, opening: Callable[[Deliveries], object], closed: Callable[[Deliveries], object]
    ) -> None:
        """Whom to tell that it is being opened, and that it is closed or could not be opened."""
        self._tell_opening, self._tell_closed = opening, closed

    def _begin_anew(self) -> None:
        self._formal = Formal(
            self._utuple,
            named=self._named,
            sessions=self._parts.sessions,
            config=self._parts.config,
            unknown_at=self._unknown_at,
        )

    @property
    def settles_each(self) -> bool:
        """Every delivery is settled by itself, and an attempt is counted for those that were taken."""
        return self._utuple.terms is not None and self._utuple.terms.settles

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
            await self._more()
        return Delivery(*taken, self._formal)

    async def take(self, most: int, *, timeout_s: float | None = None) -> list[Delivery]:
        """The next delivery and what else is there already, at most so many: cheaper than one by one.

            for event in await events.take(100, timeout_s=5): ...

        If nothing comes within `timeout_s` it gives an empty list; None waits for as long as it takes.
        """
        check_take(most, timeout_s)
        self._formal.ask()
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                while self._formal.is_empty:
                    await self._more()
        except TimeoutError:
            if not limit.expired():
                raise
            return []
        found: list[Delivery] = []
        while len(found) < most and not self._formal.is_empty:
            chunk, places = self._formal.take_some(most - len(found))
            found += map(Delivery, repeat(chunk), places, repeat(self._formal))
        return found

    def _more(self) -> Awaitable[object]:
        self._parts.own_loop.check()
        return self._formal.arrival() if self._opened else self.open()

    async def open(self, *, retry: bool = False) -> Self:
        """Registered, and streams open. Entering `async with` does it. What fails or is cancelled on the way
        undoes itself, in the background, and may be opened again."""
        self._parts.own_loop.check()
        async with self._opening:
            if not self._opened and not self._closed:
                await self._open(retry=retry)
        if self._closed:
            raise Closed(f"{self!r} cannot be opened again")
        return self

    async def _open(self, *, retry: bool) -> None:
        self._cutting = asyncio.timeout(
            None
        )  # it has as long as its verbs take, unless it is closed
        try:
            async with self._cutting:
                await self._formal.claim()
                self._tell_opening(self)
                await self._begin(retry=retry)
                await self._formal.attached()
                self._opened = True
        except BaseException as error:
            self._undoing = self._leave(cancel=self._cancels or not self._named)
            self._begin_anew()
            if isinstance(error, OutcomeUnknown):
                error.pending = self
            if not self._cutting.expired() or not isinstance(error, TimeoutError):
                raise
        finally:
            self._cutting = None

    async def close(self) -> None:
        """Acknowledgements are flushed, and a reader with a name may come back and go on after them. A server that does
        not answer is waited for two seconds: what was acknowledged there does not come again to this reader in this
        space, but may to another program, or to this one when it is started again."""
        await self._end(cancel=not self._named)

    async def cancel(self) -> None:
        """Close for good: the reader's name and its positions are forgotten by the servers."""
        await self._end(cancel=True)

    async def _end(self, *, cancel: bool) -> None:
        """An opening under way is cut: else it would go on and register what nobody wants any more."""
        self._parts.own_loop.check()
        if not self._closed:
            self._closed = True
            if self._cutting is not None:
                self._cancels = cancel
                self._cutting.reschedule(asyncio.get_running_loop().time())
                async with self._opening:  # whoever opens it has let go of it then
                    pass
            if self._undoing is not None:
                await asyncio.shield(self._undoing)
            await asyncio.shield(self._leave(cancel=cancel))
            await self._tasks.close()

    def _leave(self, *, cancel: bool) -> asyncio.Task[None]:
        """It may be registered where it is not attached: its opening, or the following of its line, was cut short. A
        reader with a name stays so for its lifetime, as it would had it been closed."""
        visited, line = self._cease(), self._parts.lines.known(self._key)
        config, tasks = self._parts.config, list(self._tasks)
        limit_s = config.attempt_s
        if self._opened:  # somebody waits, and has long left those who are not in the line any more
            limit_s = config.detach_s
            visited = [name for name in visited if line is None or line.member(name) is not None]
        for task in tasks:
            task.cancel()

        async def settled() -> set[str]:
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._settled(limit_s)
            return set(visited)

        leaving = self._formal.leave(cancel=cancel, settled=settled if cancel else None)
        leaving.add_done_callback(lambda _: self._tell_closed(self))
        return leaving

    async def _settled(self, limit_s: float) -> None:
        """A goodbye does not overtake registrations that are on their way (see `cut_short`)."""
        await self._parts.batcher.settled(self._utuple.id, limit_s)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._tasks.start(work, f"{self!r}")

    @abstractmethod
    async def _begin(self, *, retry: bool) -> None:
        """Register, and attach."""

    @abstractmethod
    def _unknown_at(self, link: Link) -> None:
        """A server has forgotten the formal."""

    @abstractmethod
    def _cease(self) -> Collection[str]:
        """It is being closed: follow no more changes. The servers that may have it registered."""


def _nobody(_: Deliveries) -> None:
    """To be told."""
