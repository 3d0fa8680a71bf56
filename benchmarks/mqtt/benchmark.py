"""`utuple bench mqtt`: QoS 1 publishes acknowledged per second through 50 connections to one door, every one durable, beside
mosquitto's, which are not; and from one paho client's publish to another's handler at a steady rate. Then many connections that say nothing: what
each takes of the door's memory, and what all of them take of a processor."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from benchmarks.machine import process_cpu_s, process_memory_bytes
from benchmarks.rivals.catalogue import MOSQUITTO
from utuple.local.layout import HOST
from utuple.local.ports import claimed
from utuple.local.processes import Process, end, spawn, start_of
from utuple.runtime.clock import monotonic_s

_READY_LIMIT_S = 30.0
_LOOK_AGAIN_S = 0.05
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Size:
    seconds: float = 8.0
    connections: int = 50
    window: int = 20
    """Publishes of one connection that wait for their acknowledgement, as a client's inflight window."""
    rate_per_s: int = 1_000
    idle: int = 5_000
    idle_s: float = 10.0


QUICK = Size(1.0, 10, 10, 200, 200, 1.0)


@dataclass(frozen=True, slots=True)
class Side:
    port: int
    pid: int


class Mqtt:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_publish", at_least=0.8, rival=MOSQUITTO.name),
            Target("ratio_latency", at_most=6.0, rival=MOSQUITTO.name),
        )
        self.notes = {"ours": OURS_ARE_DURABLE, MOSQUITTO.name: MOSQUITTO.note}

    async def run(self, place: Path, say: Say) -> Figures:
        found = await self._ours(place, say)
        if MOSQUITTO.is_installed:
            found |= await self._theirs(place, say)
            found["ratio_publish"] = found["ours_per_s"] / found["mosquitto_per_s"]
            found["ratio_latency"] = found["ours_p50_ms"] / found["mosquitto_p50_ms"]
        return found

    async def _ours(self, place: Path, say: Say) -> dict[str, float]:
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))

            def door(port: int) -> list[str]:
                at = ",".join(ground.managers)
                module = ("-P", "-m", "utuple.doors.mqtt")
                return [sys.executable, *module, "--at", at, "--listen", f"{HOST}:{port}"]

            side = await stack.enter_async_context(started("door", door, place))
            found = await self._loaded("ours", side, place, say)
            return found | await self._idle(side, place, say)

    async def _theirs(self, place: Path, say: Say) -> dict[str, float]:
        program, folder = MOSQUITTO.path, place / "mosquitto"
        assert program is not None
        folder.mkdir()
        async with started(
            "mosquitto", lambda port: MOSQUITTO.command(program, port, folder), place
        ) as side:
            return await self._loaded(MOSQUITTO.name, side, place, say)

    async def _loaded(self, name: str, side: Side, place: Path, say: Say) -> dict[str, float]:
        size = self._size
        delays = await self._delays(side, place)  # before the store has much to write
        async with Child("benchmarks.mqtt.load", {"port": side.port}, place / "load.log") as load:
            cpu_s = process_cpu_s(side.pid)
            published = await load.ask(
                "publish", connections=size.connections, window=size.window, seconds=size.seconds
            )
            cpu_us = (process_cpu_s(side.pid) - cpu_s) * 1e6 / published["count"]
        say(f"{name}: {published['per_s']:,.0f}/s, p50 {delays['p50_s'] * 1e3:.2f} ms")
        return {
            f"{name}_per_s": published["per_s"],
            f"{name}_cpu_us": cpu_us,
            f"{name}_p50_ms": delays["p50_s"] * 1e3,
            f"{name}_p99_ms": delays["p99_s"] * 1e3,
        }

    async def _delays(self, side: Side, place: Path) -> Answer:
        """From one paho client to another. Of the second half, when caches are warm."""
        size = self._size
        count = int(size.rate_per_s * size.seconds)
        given = {"rival": MOSQUITTO.name, "port": side.port}
        async with AsyncExitStack() as stack:
            publisher, subscriber = [
                await stack.enter_async_context(
                    Child("benchmarks.rivals.program", given, place / "paho.log")
                )
                for _ in range(2)
            ]
            await subscriber.ask("open", subscribed=True)
            await publisher.ask("open", subscribed=False)
            await publisher.ask("make", count=count, seed=1)
            await publisher.ask("pace", rate_per_s=size.rate_per_s)
            seen = await subscriber.ask("received", count=count, skipped=count // 2)
        if seen["missed"]:
            raise BenchFailed(f"{seen['missed']} of {count} messages did not come")
        return seen

    async def _idle(self, side: Side, place: Path, say: Say) -> dict[str, float]:
        size = self._size
        before = process_memory_bytes(side.pid)
        async with Child("benchmarks.mqtt.load", {"port": side.port}, place / "load.log") as load:
            await load.ask("idle", connections=size.idle)
            each = (process_memory_bytes(side.pid) - before) / size.idle
            cpu_s = process_cpu_s(side.pid)
            await asyncio.sleep(size.idle_s)
            busy = (process_cpu_s(side.pid) - cpu_s) / size.idle_s
        say(f"{size.idle:,} idle connections: {each / _KIB:.1f} KiB each, {busy:.1%} of a core")
        return {"idle_connections": size.idle, "idle_kib": each / _KIB, "idle_cores": busy}


@asynccontextmanager
async def started(
    name: str, command: Callable[[int], list[str]], place: Path
) -> AsyncIterator[Side]:
    """A server that listens; ended when it is left."""
    log = place / f"{name}.log"
    with claimed() as port:
        server = spawn(command(port), log, place, {})
        process = Process(server.pid, start_of(server.pid) or "")
        try:
            give_up_s = monotonic_s() + _READY_LIMIT_S
            while not _answers(port):
                if server.poll() is not None or monotonic_s() > give_up_s:
                    raise BenchFailed(f"{name} does not start:\n{log.read_text(errors='replace')}")
                await asyncio.sleep(_LOOK_AGAIN_S)
            yield Side(port, server.pid)
        finally:
            await asyncio.to_thread(end, [process])
            server.poll()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
