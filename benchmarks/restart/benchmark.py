"""`utuple bench restart`: a server with a million EFs and ten million EAs is killed (kill -9), started again, and
asked to register something until it does; then the same with its PostgreSQL killed as well.

The time is from the start of the new process (and of PostgreSQL, where that was killed) to the first registration
that is accepted, and so durable.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.filling import filler
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.machine import process_memory_bytes
from benchmarks.trucks import FAMILY
from utuple.client.transport import GrpcTransport
from utuple.errors import UTupleError
from utuple.model.columns import columns_of
from utuple.model.identity import uuid7
from utuple.model.utuple import Exact, Family, UTuple
from utuple.runtime.clock import monotonic_s, now_us
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire

SERVER = "server-1"
EF_STEP = 50_000
ASK_AGAIN_S = 0.05
ATTEMPT_S = 2.0
LIMIT_S = 300.0
SETTLE_S = 6.0
"""Between two restarts: a server is killed at its work, not while it starts, and
has counted what it has."""


@dataclass(frozen=True, slots=True)
class Size:
    efs: int = 1_000_000
    eas: int = 10_000_000
    restarts: int = 5
    with_postgres: int = 3


QUICK = Size(3_000, 5_000, 1, 1)


class Restart:
    targets = (Target("restart_s", at_most=15.0), Target("lost_efs", at_most=0, always=True))

    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.notes = {"ours": OURS_ARE_DURABLE}

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with AsyncExitStack() as stack:
            fill = filler(SERVER, [FAMILY], size.eas, place / "filling.log", say)
            ground = await stack.enter_async_context(
                open_ground(place, Plan([0.0], prepare=fill), say)
            )
            await self._register(ground, place, say)
            plain: list[float] = []
            harder: list[float] = []
            for number in range(size.restarts + size.with_postgres):
                with_postgres = number >= size.restarts
                await ground.kill(SERVER, with_postgres=with_postgres)
                began_s = monotonic_s()
                await ground.start_again(SERVER)
                await _until_accepted(ground, FAMILY)
                took_s = monotonic_s() - began_s
                (harder if with_postgres else plain).append(took_s)
                say(f"serves again after {took_s:.2f} s{', PostgreSQL too' * with_postgres}")
                await asyncio.sleep(SETTLE_S)
            status = await ground.status_of(SERVER)
            return {
                "restart_s": median(plain),
                "longest_restart_s": max(plain),
                "restart_with_postgres_s": median(harder),
                "efs": status.event_templates,
                "lost_efs": size.efs - status.event_templates,
                "eas": size.eas,
                "server_memory_mb": process_memory_bytes(ground.pid_of(SERVER)) / 2**20,
                "store_gb": status.size_bytes / 1e9,
            }

    async def _register(self, ground: Ground, place: Path, say: Say) -> None:
        size = self._size
        about = {"managers": ground.managers, "subject": FAMILY.subject, "type": FAMILY.type}
        given = {**about, "rate_per_s": 0, "place_every": 10}
        async with Child("benchmarks.help.crowd", given, place / "crowd.log") as crowd:
            for at in range(0, size.efs, EF_STEP):
                await crowd.ask("fill", count=min(EF_STEP, size.efs - at))
                say(f"{min(at + EF_STEP, size.efs):,} of {size.efs:,} EFs")


async def _until_accepted(ground: Ground, family: Family) -> None:
    """One EA, asked for again and again."""
    dice = Random(0)
    give_up_s = monotonic_s() + LIMIT_S
    line = await ground.line_of(family)
    transport = GrpcTransport()
    try:
        while monotonic_s() < give_up_s:
            event = UTuple(
                uuid7(now_us(), dice.getrandbits(74)),
                *(family, Exact("first", now_us()), {}, None, 60.0),
            )
            events = columns_to_wire(columns_of([event]), {family: line.epoch})
            try:
                request = pb.RegisterRequest(events=events)
                answer = await transport.register(ground.address_of(SERVER), request, ATTEMPT_S)
            except UTupleError:
                await asyncio.sleep(ASK_AGAIN_S)
                continue
            if answer.refusals:
                raise BenchFailed(f"it refuses: {answer.refusals[0]}")
            return
    finally:
        await transport.close()
    raise BenchFailed(f"{SERVER} does not serve after {LIMIT_S:g} s")
