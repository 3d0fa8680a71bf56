"""A rival at work: its server and its two client programs, one that publishes and one that is subscribed.

async with RunningRival(MOSQUITTO, place, say) as rival:
    per_s = await rival.delivered_per_s(20_000, payload)
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Say
from benchmarks.child import Child
from benchmarks.rivals.catalogue import Rival
from utuple.local.layout import HOST
from utuple.local.ports import claimed
from utuple.local.processes import Process, end, spawn, start_of
from utuple.runtime.clock import monotonic_s

_READY_LIMIT_S = 30.0
_LOOK_AGAIN_S = 0.05
_LOG_TAIL = 5


@dataclass(frozen=True, slots=True)
class Delays:
    """From publishing to the subscriber's handler, which has the message as an object."""

    p50_s: float
    p99_s: float
    p999_s: float


class RunningRival:
    def __init__(self, rival: Rival, place: Path, say: Say, *, subscribed: bool) -> None:
        """`subscribed`: whether somebody reads what is published."""
        self._rival = rival
        self._folder = place / f"rival-{rival.name}"
        self._say = say
        self._subscribed = subscribed
        self._stack = AsyncExitStack()
        self._clients: list[Child] = []
        self._made = 0

    async def __aenter__(self) -> RunningRival:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def published_per_s(self, count: int) -> float:
        """Acknowledged to the publisher."""
        await self._make(count)
        answer = await self._clients[0].ask("publish")
        return count / float(answer["ended_s"] - answer["began_s"])

    async def delivered_per_s(self, count: int) -> float:
        """Acknowledged, and in the subscriber's handler."""
        publisher, subscriber = self._clients
        await self._make(count)
        published = await publisher.ask("publish")
        received = await subscriber.ask("received", count=count, skipped=0)
        self._check_none_missed(received["missed"])
        last_s = max(published["ended_s"], received["last_s"])
        return count / float(last_s - published["began_s"])

    async def delays(self, rate_per_s: float, seconds: float) -> Delays:
        """At a fixed rate; of the second half, when caches are warm."""
        publisher, subscriber = self._clients
        count = int(rate_per_s * seconds)
        await self._make(count)
        await publisher.ask("pace", rate_per_s=rate_per_s)
        seen = await subscriber.ask("received", count=count, skipped=count // 2)
        self._check_none_missed(seen["missed"])
        return Delays(seen["p50_s"], seen["p99_s"], seen["p999_s"])

    async def _make(self, count: int) -> None:
        self._made += 1
        await self._clients[0].ask("make", count=count, seed=self._made)

    def _check_none_missed(self, missed: int) -> None:
        if missed:
            raise BenchFailed(f"{self._rival.name} did not deliver {missed} messages")

    async def _start(self) -> None:
        program = self._rival.path
        if program is None:
            raise BenchFailed(f"{self._rival.program} is not installed: make bench-peers")
        self._say(f"starting {self._rival.name}")
        self._folder.mkdir(parents=True)
        port = self._stack.enter_context(claimed())
        log = self._folder / "server.log"
        server = spawn(self._rival.command(program, port, self._folder), log, self._folder, {})
        process = Process(server.pid, start_of(server.pid) or "")
        self._stack.callback(server.poll)
        self._stack.push_async_callback(asyncio.to_thread, end, [process])
        give_up_s = monotonic_s() + _READY_LIMIT_S
        while not _answers(port):
            if server.poll() is not None or monotonic_s() > give_up_s:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL:])
                raise BenchFailed(f"{self._rival.name} does not start:\n{tail}")
            await asyncio.sleep(_LOOK_AGAIN_S)
        for subscribed in (False, True) if self._subscribed else (False,):
            await self._start_client(port, subscribed=subscribed)

    async def _start_client(self, port: int, *, subscribed: bool) -> None:
        client = Child(
            "benchmarks.rivals.program",
            {"rival": self._rival.name, "port": port},
            self._folder / f"client-{len(self._clients)}.log",
        )
        await self._stack.enter_async_context(client)
        await client.ask("open", subscribed=subscribed)
        self._clients.append(client)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
