"""A server's database: it survives its server, and crashes by itself.

One server life holds it at a time. A commit takes time; whoever dies meanwhile does not know whether it was
stored. What was committed is never lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from random import Random
from typing import TypeVar, cast

from tests.virtual.world.world import World
from utuple.cluster.line import Line
from utuple.model.columns import Columns
from utuple.model.section import Section
from utuple.store.contract import (
    Batch,
    Census,
    Known,
    OnSearch,
    Page,
    Recovered,
    RetryKey,
    Search,
    Store,
    StoreStats,
    StoreUnavailable,
    Transaction,
    nobody_asks,
)
from utuple.store.memory import MemoryStore

T = TypeVar("T")

_USUAL_S = (0.002, 0.01, 0.08)
"""What a statement takes at most, by the database: while one is slow, calls gather for its writer."""
_SLOW_S = 0.3
_SLOW = 0.02
_SEARCH_S = (0.0, 0.0, 0.0, 2.0)
"""What a reader's search takes at most beyond that: much is stored."""


class Disk:
    """What outlives the server."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.store: Store = cast(Store, MemoryStore())
        self.is_up = True
        self.dice: Random = world.dice(f"disk {name}")
        self.usual_s = self.dice.choice(_USUAL_S)
        self.searching: Random = world.dice(f"searches of {name}")
        self.search_s = self.searching.choice(_SEARCH_S)
        self.holder: Session | None = None
        self.traps: dict[str, tuple[bool, Callable[[], None]]] = {}
        """What happens "before" or "after" the next commit is stored, or the next that stores EAs."""
        self.when_stored: list[Callable[[Transaction], None]] = []
        self.lines: list[Line] = []
        """Every line it ever held, in order."""
        self.told: dict[str, bytes] = {}
        """The notes of which its server knows that they are durable: it was told so, or has read them."""

    @property
    def notes(self) -> dict[str, bytes]:
        """What a server that starts would find, for observers only."""
        assert isinstance(self.store, MemoryStore)
        return self.store._notes

    def open(self) -> Session:
        """For a new life of its server: the former one is fenced off."""
        self.holder = Session(self)
        return self.holder

    def server_died(self) -> None:
        """A backend may finish the commit its dead server had sent."""
        if self.holder is not None:
            self.holder.settle()
            self.holder = None

    def crash(self) -> None:
        self.is_up = False
        if self.holder is not None:
            self.holder.lose()

    def restart(self) -> None:
        self.is_up = True

    async def commit(self, transaction: Transaction) -> None:
        await self.store.commit(transaction)
        for line in transaction.lines or ():
            if line not in self.lines:
                self.world.trace(self.name, "has", line)
                self.lines.append(line)
                self.world.history.line_seen(self.name, line, self.world.now_us)
        for tell in self.when_stored:
            tell(transaction)


class Session:
    """The store as one life of the server sees it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._breaks = 0
        """How often the connection was lost: who began before must not go on."""
        self._is_open = False
        self._pending: Transaction | None = None
        self.on_search: OnSearch = nobody_asks

    # --- what happens to it --------------------------------------------------------------------------

    def lose(self) -> None:
        self._is_open = False
        self._breaks += 1
        self.settle()

    def settle(self) -> None:
        """Nobody waits any more for what is under way: it is stored, or not."""
        pending, self._pending = self._pending, None
        if pending is not None and self._disk.dice.random() < 0.5:
            _now(self._disk.commit(pending))

    def _check(self, breaks: int | None = None) -> int:
        if self._disk.holder is not self:
            raise StoreUnavailable("another process holds this store")
        if not self._is_open or (breaks is not None and breaks != self._breaks):
            raise StoreUnavailable("the database is gone")
        return self._breaks

    async def _wait(self) -> int:
        """The time a statement takes; the database may be gone after it."""
        before = self._check()
        dice = self._disk.dice.random()
        await asyncio.sleep(_SLOW_S * dice / _SLOW if dice < _SLOW else self._disk.usual_s * dice)
        return self._check(before)

    # --- the store -----------------------------------------------------------------------------------

    async def open(self, name: str, now_us: int) -> Recovered:
        await asyncio.sleep(0.02)
        if self._disk.holder is not self or not self._disk.is_up:
            raise StoreUnavailable("the database does not answer")
        self._is_open = True
        recovered = await self._disk.store.open(name, now_us)
        self._disk.told = dict(self._disk.notes)
        return recovered

    def is_held(self) -> bool:
        return self._is_open and self._disk.holder is self

    def make_ready(self, transaction: Transaction) -> None:
        """There is nothing to make."""

    async def commit(self, transaction: Transaction) -> None:
        self._check()
        self._pending = transaction
        try:
            await self._wait()
            await self._sprung("before", transaction)
            self._check()
            self._pending = None
            await self._disk.commit(transaction)
            await self._sprung("after", transaction)
            await self._wait()
            self._disk.told = dict(self._disk.notes)
        except StoreUnavailable as error:
            raise StoreUnavailable(str(error), maybe_committed=True) from None
        finally:
            self._pending = None

    async def _sprung(self, phase: str, transaction: Transaction) -> None:
        waits_for_events, spring = self._disk.traps.get(phase, (True, None))
        if spring is not None and (transaction.events or not waits_for_events):
            del self._disk.traps[phase]
            spring()
            await asyncio.sleep(0.0)  # who died in it goes no further

    async def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        breaks = await self._wait()
        if self._disk.search_s:
            await asyncio.sleep(self._disk.search_s * self._disk.searching.random())
            self._check(breaks)
        async for batch in self._disk.store.search(search):
            self._check(breaks)
            yield batch
            await self._wait()
            self._check(breaks)

    async def page(self, page: Page) -> AsyncGenerator[Columns, None]:
        breaks = await self._wait()
        async for columns in self._disk.store.page(page):
            self._check(breaks)
            yield columns
            await self._wait()
            self._check(breaks)

    async def count(self, search: Search, most: int) -> int | None:
        await self._wait()
        return await self._disk.store.count(search, most)

    async def known_events(self, keys: Sequence[RetryKey]) -> dict[bytes, Known]:
        await self._wait()
        return await self._disk.store.known_events(keys)

    async def known_devices(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        await self._wait()
        return await self._disk.store.known_devices(ids)

    async def devices(
        self, now_us: int, ids: Sequence[bytes] | None = None
    ) -> AsyncGenerator[Batch, None]:
        breaks = await self._wait()
        async for batch in self._disk.store.devices(now_us, ids):
            self._check(breaks)
            yield batch

    async def section_events(
        self, section: Section, origin: str, after: int, now_us: int
    ) -> AsyncGenerator[Batch, None]:
        breaks = await self._wait()
        async for batch in self._disk.store.section_events(section, origin, after, now_us):
            self._check(breaks)
            yield batch
            await self._wait()

    async def section_devices(self, section: Section, now_us: int) -> AsyncGenerator[Batch, None]:
        breaks = await self._wait()
        async for batch in self._disk.store.section_devices(section, now_us):
            self._check(breaks)
            yield batch

    async def origins(self) -> dict[str, int]:
        await self._wait()
        return await self._disk.store.origins()

    async def shadows(self, move: bytes) -> dict[str, int]:
        await self._wait()
        return await self._disk.store.shadows(move)

    async def census(self, sections: Sequence[Section], now_us: int) -> list[Census]:
        await self._wait()
        return await self._disk.store.census(sections, now_us)

    async def collect(self, now_us: int) -> int:
        await self._wait()
        return await self._disk.store.collect(now_us)

    async def stats(self) -> StoreStats:
        self._check()
        return await self._disk.store.stats()

    async def close(self) -> None:
        self._is_open = False


def _now(work: object) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        return
    raise AssertionError("the memory store waits for nothing")
