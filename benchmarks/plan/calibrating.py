"""The micro-benchmark of section 4.1.1 on a real uTupleServer, alone in a cluster of its own.

Registered are EAs against EFs that are there, EFs against EAs, CAs against CFs, each matching one; then what the
store takes for EAs, EFs and CFs. Times are those of the caller, with nothing else under way, EAs in the SDK's batches: as
the server works, and with what the network and this machine add.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import utuple
from benchmarks.benchmark import Say
from benchmarks.child import Child
from benchmarks.ground import Ground, Plan, open_ground
from utuple.client.space import Space
from utuple.model.area import Circle
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.searching.lookup import devices_and_bytes
from utuple.store.postgres.tables import SCHEMA

_ROW_STEP = 0.01
"""Degrees between devices: more than a kilometre."""
_CIRCLE_M = 100.0


@dataclass(frozen=True, slots=True)
class Size:
    efs: tuple[int, ...] = (1_000, 5_000, 10_000, 20_000)
    """There before EAs are registered; each step adds what is missing."""
    eas: tuple[int, ...] = (0, 50_000, 100_000, 200_000)
    cfs: tuple[int, ...] = (200, 500, 1_000, 2_000)
    batch: int = 20_000
    """EAs registered for one point."""
    calls: int = 50
    """EFs or CAs registered for one point."""
    repeats: int = 4


QUICK = Size((10, 50, 100), (0, 500, 1_000), (50, 100, 200), 500, 5, 1)


@dataclass(slots=True)
class Series:
    """Points of one line: what was there, and seconds (or bytes) of one."""

    there: list[float] = field(default_factory=list)
    one: list[float] = field(default_factory=list)

    def add(self, there: float, one: float) -> None:
        self.there.append(there)
        self.one.append(one)


@dataclass(slots=True)
class Measured:
    ea_s: Series = field(default_factory=Series)
    ef_s: Series = field(default_factory=Series)
    ca_s: Series = field(default_factory=Series)
    cf_s: Series = field(default_factory=Series)
    ea_bytes: Series = field(default_factory=Series)
    """Here `one` is the size of the store with so many."""
    ef_bytes: Series = field(default_factory=Series)
    cf_bytes: Series = field(default_factory=Series)


async def measure(place: Path, size: Size, say: Say) -> Measured:
    async with AsyncExitStack() as stack:
        ground = await stack.enter_async_context(open_ground(place, Plan([0.0], sca=True), say))
        space = await stack.enter_async_context(utuple.connect(*ground.managers))
        run = _Run(ground, space, size, say)
        await run.cas_against_cfs()  # first: PostgreSQL looks after many new rows for a while
        await run.eas_against_efs(place)
        await run.efs_against_eas()
        return run.found


class _Run:
    def __init__(self, ground: Ground, space: Space, size: Size, say: Say) -> None:
        self._ground, self._space, self._size, self._say = ground, space, size, say
        self.found = Measured()

    async def eas_against_efs(self, place: Path) -> None:
        family = self._family("meets")
        settings = {"managers": self._ground.managers, "rate_per_s": 0.0, **family._asdict()}
        taken = 0.0
        async with Child("benchmarks.help.crowd", settings, place / "crowd.log") as crowd:
            there = 0
            for efs in self._size.efs:
                before = await self._size_bytes()
                await crowd.ask("fill", count=efs - there)
                there = efs
                taken += await self._size_bytes() - before
                self.found.ef_bytes.add(there, taken)
                for _ in range(self._size.repeats):
                    took_s = await _timed(self._emit(family, range(self._size.batch), there))
                    self.found.ea_s.add(there, took_s / self._size.batch)
                self._say(f"EA against {there:,} EFs: {self.found.ea_s.one[-1] * 1e6:.1f} µs")

    async def efs_against_eas(self) -> None:
        """An EF of lifetime 0 is searched in the store and not kept: `read`."""
        family = self._family("stored")
        there, empty = 0, await self._size_bytes()
        for eas in self._size.eas:
            await self._emit(family, range(there, eas), max(1, eas))
            there = eas
            self.found.ea_bytes.add(there, await self._size_bytes() - empty)
            if not eas:
                await self._read(family)  # the first ones take longer, whatever is there
            for _ in range(self._size.repeats):
                took_s = await _timed(self._read(family))
                self.found.ef_s.add(there, took_s / self._size.calls)
            self._say(f"EF against {there:,} EAs: {self.found.ef_s.one[-1] * 1e3:.2f} ms")

    async def cas_against_cfs(self) -> None:
        family = self._family("commands")
        async with AsyncExitStack() as devices:
            there, empty = 0, await self._size_bytes()
            for cfs in self._size.cfs:
                took_s = await _timed(self._serve(family, range(there, cfs), devices))
                self.found.cf_s.add(there, took_s / (cfs - there))
                there = cfs
                self.found.cf_bytes.add(there, await self._size_bytes() - empty)
                if cfs == self._size.cfs[0]:
                    await self._command(family)  # the first ones take longer, whatever is there
                for _ in range(self._size.repeats):
                    took_s = await _timed(self._command(family))
                    self.found.ca_s.add(there, took_s / self._size.calls)
                self._say(f"CA against {there:,} CFs: {self.found.ca_s.one[-1] * 1e3:.2f} ms")

    def _family(self, type_: str) -> Family:
        return self._ground.family_at(self._ground.servers[0], type_)

    async def _emit(self, family: Family, numbers: range, addresses: int) -> None:
        """In turn to so many addresses: one EF of the crowd meets each."""
        await self._space.emit_many(
            {**family._asdict(), "address": f"device-{n % addresses}", "data": {"kg": n}}
            for n in numbers
        )

    async def _serve(self, family: Family, numbers: range, devices: AsyncExitStack) -> None:
        for number in numbers:
            position = (number * _ROW_STEP % 80, 0.0)
            device = self._space.serve(
                **family._asdict(), address=f"device-{number}", position=position
            )
            await devices.enter_async_context(device)

    async def _read(self, family: Family) -> None:
        for number in range(self._size.calls):
            async for _ in self._space.read(**family._asdict(), address=f"device-{number}"):
                pass

    async def _command(self, family: Family) -> None:
        for _ in range(self._size.calls):
            here = Circle(0.0, 0.0, _CIRCLE_M)
            await self._space.command(**family._asdict(), area=here, data={"on": True})

    async def _size_bytes(self) -> int:
        """Of the store as it is now: the server itself looks every few seconds."""
        database = self._ground.database_of(self._ground.servers[0])
        there = f"-c search_path={SCHEMA},pg_catalog"
        async with await Connection.connect(database, options=there) as connection:
            return (await devices_and_bytes(connection))[1]


async def _timed(work: Awaitable[None]) -> float:
    began_s = monotonic_s()
    await work
    return monotonic_s() - began_s
