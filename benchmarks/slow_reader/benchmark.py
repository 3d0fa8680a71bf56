"""`utuple bench slow-reader`: one reader that watches everything is stopped (SIGSTOP) beside a hundred others, each with a connection of its own.

Before, while and after it is stopped, events flow at a fixed rate, of which the others' delays are taken, and then as many as the
writer takes. Then it goes on, and must get everything. At last a reader of a thousand EFs on one stream, ten for each event, is stopped
and goes on: `catch_up_postgres_us` is what PostgreSQL takes an event for it, where a search for each EF would take a hundred.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.machine import process_memory_bytes
from utuple.runtime.clock import monotonic_s

SERVER = "server-1"
MIB = 2**20
SPARE = 100
"""Connections beside those of the readers: the harness's, and other programs'."""
MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    others: int = 100
    efs: int = 1_000
    """Of the reader with many."""
    rate_per_s: float = 1_000.0
    without_s: float = 8.0
    stopped_s: float = 20.0
    full_s: float = 4.0
    idle: int = 10_000
    idle_s: float = 20.0
    idle_processes: int = 4


QUICK = Size(10, 100, 200.0, 1.0, 2.0, 0.5, 20, 1.0, 2)


@dataclass
class Flow:
    """Sensors and the others, and what is seen of them."""

    sensors: Child
    others: Child
    size: Size
    emitted: int = 0
    missed: int = 0
    repeated: int = 0

    async def measure(self, seconds: float) -> tuple[float, float]:
        """The others' p99 at the fixed rate, and the most the writer takes."""
        paced = await self.sensors.ask("pace", rate_per_s=self.size.rate_per_s, seconds=seconds)
        seen = await self.others.ask("received", count=paced["count"])
        full = await self.sensors.ask("full", seconds=self.size.full_s)
        rest = await self.others.ask("received", count=full["count"])
        self.emitted += paced["count"] + full["count"]
        self.missed += seen["missed"] + rest["missed"]
        self.repeated += seen["repeated"] + rest["repeated"]
        return seen["p99_s"] * MILLISECONDS, full["per_s"]

    async def caught_up(self, reader: Child, count: int) -> None:
        """Everything that it missed has come."""
        seen = await reader.ask("received", count=count)
        self.missed += seen["missed"]
        self.repeated += seen["repeated"]


class SlowReader:
    targets = (
        Target("writer_ratio", at_least=0.95),
        Target("p99_ratio", at_most=1.05),
        Target("memory_growth_mb", at_most=10.0),
        Target("missed", at_most=0, always=True),
        Target("repeated", at_most=0, always=True),
    )

    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.notes = {"ours": OURS_ARE_DURABLE}

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            programs = _Programs(ground, place, size)
            sensors = await stack.enter_async_context(programs.started("sensors", emits=True))
            others = await stack.enter_async_context(programs.started("others"))
            slow = await stack.enter_async_context(programs.started("slow"))
            await others.ask("come", watches=size.others, connections=True)
            flow = Flow(sensors, others, size)
            await flow.measure(1.0)  # everything has been used once
            without = [await flow.measure(size.without_s)]
            say(f"without it: p99 {without[0][0]:.2f} ms, at most {without[0][1]:,.0f} events/s")
            await slow.ask("come", watches=1, connections=False, everything=True)
            flow.emitted = 0
            memory = process_memory_bytes(ground.pid_of(SERVER))
            with stopped(slow):
                p99_ms, per_s = await flow.measure(size.stopped_s)
                grown = process_memory_bytes(ground.pid_of(SERVER)) - memory
            say(f"beside it: p99 {p99_ms:.2f} ms, at most {per_s:,.0f} events/s")
            await flow.caught_up(slow, flow.emitted)
            await slow.ask("leave")
            without.append(await flow.measure(size.without_s))
            say(f"without it: p99 {without[1][0]:.2f} ms, at most {without[1][1]:,.0f} events/s")
            found = await self._many(ground, flow, slow)
            say(
                f"a thousand EFs catch up: PostgreSQL {found['catch_up_postgres_us']:.1f} µs an event"
            )
            return {
                "writer_ratio": per_s / mean(rate for _, rate in without),
                "p99_ratio": p99_ms / mean(delay for delay, _ in without),
                "memory_growth_mb": grown / MIB,
                "missed": flow.missed,
                "repeated": flow.repeated,
                "writer_per_s": per_s,
                "p99_ms": p99_ms,
                **found,
            }

    async def _many(self, ground: Ground, flow: Flow, slow: Child) -> dict[str, float]:
        """A reader of many EFs is stopped and goes on: everything comes, and what that costs PostgreSQL."""
        size, more = self._size, {"type": "many"}
        each = size.efs // size.others
        await slow.ask("come", watches=size.efs, connections=False, more=more)
        with stopped(slow):
            events = (await flow.sensors.ask("full", seconds=size.full_s, more=more))["count"]
        began_s, used_s = monotonic_s(), ground.postgres_cpu_s
        await flow.caught_up(slow, events * each)
        took_s, used_s = monotonic_s() - began_s, ground.postgres_cpu_s - used_s
        return {
            "catch_up_per_s": events * each / took_s,
            "catch_up_postgres_us": used_s / events * 1e6,
        }


class IdleReaders:
    """`utuple bench idle-readers`: readers that are connected to one server and get nothing: with a connection each, and then
    those of a program on one connection."""

    targets = ()

    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.notes = {"ours": "each reader has one EF"}

    async def run(self, place: Path, say: Say) -> Figures:
        room = str(self._size.idle + SPARE)
        let_in = ["--connections", room, "--connections-per-address", room]
        plan = Plan([0.0], options={SERVER: let_in, "manager-1": let_in})
        found = {"readers": float(self._size.idle)}
        for name, alone in (("", True), ("shared_", False)):
            async with open_ground(place / (name or "alone"), plan, say) as ground:
                seen = await self._seen(ground, place, say, alone=alone)
            found |= {f"{name}{figure}": value for figure, value in seen.items()}
        return found

    async def _seen(self, ground: Ground, place: Path, say: Say, *, alone: bool) -> Figures:
        size, each = self._size, self._size.idle // self._size.idle_processes
        pid, programs = ground.pid_of(SERVER), _Programs(ground, place, size)
        async with AsyncExitStack() as stack:
            memory, began_s = process_memory_bytes(pid), monotonic_s()
            for number in range(size.idle_processes):
                readers = await stack.enter_async_context(programs.started(f"idle-{number}"))
                await readers.ask("come", watches=each, connections=alone)
                say(f"{(number + 1) * each:,} readers are connected")
            opening_s = monotonic_s() - began_s
            await asyncio.sleep(size.idle_s / 4)
            used_s = ground.cpu_s(SERVER)
            await asyncio.sleep(size.idle_s)
            return {
                "kib_each": (process_memory_bytes(pid) - memory) / size.idle / 1024,
                "idle_cores": (ground.cpu_s(SERVER) - used_s) / size.idle_s,
                "opened_per_s": size.idle / opening_s,
            }


@dataclass(frozen=True, slots=True)
class _Programs:
    ground: Ground
    place: Path
    size: Size

    def started(self, name: str, *, emits: bool = False) -> Child:
        family = self.ground.family_at(SERVER, "slow")
        about = {"subject": family.subject, "type": family.type, "addresses": self.size.others}
        given = {"managers": self.ground.managers, "emits": emits, **about}
        return Child("benchmarks.slow_reader.programs", given, self.place / f"{name}.log")


@contextmanager
def stopped(child: Child) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end, however it comes."""
    os.kill(child.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(child.pid, signal.SIGCONT)
