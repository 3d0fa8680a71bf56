"""The micro-benchmark of section 4.1.1 on a real uTupleServer, alone in a cluster of its own.

Registered are EAs against EFs that are there, EFs against EAs, CAs against CFs, each matching one; then what the
store takes for EAs, EFs and CFs. Times are those of the caller, with nothing else under way, EAs in the SDK's batches: as
the server works, and with what the network and this machine add.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import utuple
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.outcome import raise_refusals
from utuple.client.routing.route import Target
from utuple.client.space import Space
from utuple.client.transport import GrpcTransport
from utuple.cluster.line import Line
from utuple.local.running import Cluster
from utuple.local.temporary import cluster
from utuple.model.area import Circle
from utuple.model.condition import Equal
from utuple.model.key import key_of
from utuple.model.packed import packed
from utuple.model.utuple import Family, Template, UTuple
from utuple.runtime.clock import monotonic_s, now_us
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.searching.lookup import devices_and_bytes
from utuple.store.postgres.tables import SCHEMA
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire

Say = Callable[[str], None]
_EFS_AT_ONCE = 500
_EF_LIFETIME_S = 3_600.0
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
        say("starting a server")
        running = await stack.enter_async_context(cluster(1, monitor=False, place=place))
        space = await stack.enter_async_context(utuple.connect(*running.managers))
        run = _Run(running, space, size, say)
        await run.cas_against_cfs()  # first: PostgreSQL looks after many new rows for a while
        await run.eas_against_efs()
        await run.efs_against_eas()
        return run.found


class _Run:
    def __init__(self, running: Cluster, space: Space, size: Size, say: Say) -> None:
        self._running, self._space, self._size, self._say = running, space, size, say
        self.found = Measured()

    async def eas_against_efs(self) -> None:
        family = Family("calibration", "meets")
        taken, there = 0.0, 0
        for efs in self._size.efs:
            before = await self._size_bytes()
            await _register_efs(self._running.managers, family, range(there, efs))
            there = efs
            taken += await self._size_bytes() - before
            self.found.ef_bytes.add(there, taken)
            for _ in range(self._size.repeats):
                took_s = await _timed(self._emit(family, range(self._size.batch), there))
                self.found.ea_s.add(there, took_s / self._size.batch)
            self._say(f"EA against {there:,} EFs: {self.found.ea_s.one[-1] * 1e6:.1f} µs")

    async def efs_against_eas(self) -> None:
        """An EF of lifetime 0 is searched in the store and not kept: `read`."""
        family = Family("calibration", "stored")
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
        family = Family("calibration", "commands")
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

    async def _emit(self, family: Family, numbers: range, addresses: int) -> None:
        """In turn to so many addresses: one EF meets each."""
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
        database = self._running.dsn_of(self._running.servers[0])
        there = f"-c search_path={SCHEMA},pg_catalog"
        async with await Connection.connect(database, options=there) as connection:
            return (await devices_and_bytes(connection))[1]


async def _register_efs(managers: list[str], family: Family, numbers: range) -> None:
    """EFs for one address each, many at a time and without streams: their readers are away."""
    parts = put_together(managers, Config(), GrpcTransport(), Random(), now_us)

    def formal(number: int) -> UTuple:
        template, reader = Template(address=Equal(f"device-{number}")), f"reader-{number % 1_000}"
        return UTuple(parts.new_id(), family, template, None, {}, _EF_LIFETIME_S, reader)

    async def register(some: range) -> None:
        halves = [packed(formal(number)) for number in some]

        async def call(target: Target, line: Line, retry: bool) -> None:
            templates = templates_to_wire(halves, epochs={family: line.epoch})
            request = pb.RegisterRequest(templates=templates, retry=retry)
            address = parts.lines.address_of(target.member)
            answer = await parts.transport.register(address, request, parts.config.attempt_s)
            parts.lines.hear(answer.lines, answer.servers)
            raise_refusals(list(answer.refusals))

        fan_out: FanOut[None] = parts.fan_out(formal(some[0]))
        await fan_out.run(key_of(*family), call, parts.tries())

    try:
        for at in range(0, len(numbers), _EFS_AT_ONCE):
            await register(numbers[at : at + _EFS_AT_ONCE])
    finally:
        await parts.close()


async def _timed(work: Awaitable[None]) -> float:
    began_s = monotonic_s()
    await work
    return monotonic_s() - began_s
