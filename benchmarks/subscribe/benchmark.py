"""`utuple bench subscribe`: EFs are registered and cancelled in batches, each durable, at a server that has a million
of them already, while EAs flow to watchers. One in ten EFs asks for a place, the others for an address.

A pause is the longest piece of the writer's work, or of garbage collection, in which the server can do nothing else,
as it measures it itself. What watchers notice is compared with as long a time just before.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.machine import process_memory_bytes
from benchmarks.windows import Window
from utuple.runtime.clock import monotonic_s

SERVER = "server-1"
PULSE = {"rate_per_s": 1_000.0, "watchers": 10, "tick_s": 0.02}
PLACE_EVERY = 10
LOOK_S = 1.0
"""A pause is remembered for five seconds."""
FILL_STEP = 50_000
MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    efs: int = 1_000_000
    changed: int = 100_000
    """Registered, and as many cancelled."""
    settle_s: float = 6.0
    without_s: float = 6.0


QUICK = Size(3_000, 2_000, 0.5, 1.0)


class Subscribe:
    targets = (
        Target("registered_per_s", at_least=20_000),
        Target("cancelled_per_s", at_least=20_000),
        Target("longest_pause_ms", at_most=20.0),
        Target("ea_refused", at_most=0, always=True),
        Target("missed", at_most=0, always=True),
    )

    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.notes = {"ours": OURS_ARE_DURABLE}

    async def run(self, place: Path, say: Say) -> Figures:
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            family = ground.family_at(SERVER, "subscribed")

            async def child(module: str, **more: float) -> Child:
                about = {"subject": family.subject, "type": family.type, **more}
                settings = {"managers": ground.managers, **about}
                started = Child(f"benchmarks.help.{module}", settings, place / f"{module}.log")
                return await stack.enter_async_context(started)

            pulse = await child("pulse", **PULSE)
            crowd = await child("crowd", rate_per_s=0, place_every=PLACE_EVERY, may_cancel=True)
            filled_s = await self._fill(crowd, say)
            await pulse.ask("open")
            return {
                **await self._measure(ground, pulse, crowd, say),
                "filled_per_s": self._size.efs / filled_s,
                "server_memory_mb": process_memory_bytes(ground.pid_of(SERVER)) / 2**20,
            }

    async def _fill(self, crowd: Child, say: Say) -> float:
        began_s = monotonic_s()
        for at in range(0, self._size.efs, FILL_STEP):
            await crowd.ask("fill", count=min(FILL_STEP, self._size.efs - at))
            say(f"{min(at + FILL_STEP, self._size.efs):,} of {self._size.efs:,} EFs are registered")
        return monotonic_s() - began_s

    async def _measure(self, ground: Ground, pulse: Child, crowd: Child, say: Say) -> Figures:
        size = self._size
        await pulse.ask("begin")
        await asyncio.sleep(size.settle_s)
        seen: list[Window] = []
        asked = []
        pauses = []
        for what in ("nothing", "fill", "cancel"):
            began_s = monotonic_s()
            watched = asyncio.create_task(_longest_pause_ms(ground))
            if what == "nothing":
                await asyncio.sleep(size.without_s)
            else:
                used_s = ground.cpu_s(SERVER)
                asked.append(await crowd.ask(what, count=size.changed))
                asked[-1]["cpu_us"] = (ground.cpu_s(SERVER) - used_s) / size.changed * 1e6
            seen.append(Window(began_s, monotonic_s()))
            watched.cancel()
            pauses.append(max([*await watched, await ground.pause_ms(SERVER)]))
            say(f"{what}: {pauses[-1]:.1f} ms at a time" + _rate(asked))
            await asyncio.sleep(size.settle_s)
        noticed = await pulse.ask("end", windows=[[w.start_s, w.end_s] for w in seen])
        without, *during = noticed["windows"]
        return {
            "registered_per_s": asked[0]["per_s"],
            "cancelled_per_s": asked[1]["per_s"],
            "register_cpu_us": asked[0]["cpu_us"],
            "cancel_cpu_us": asked[1]["cpu_us"],
            "longest_pause_ms": max(pauses[1:]),
            "pause_without_ms": pauses[0],
            "ea_refused": noticed["refused"],
            "missed": noticed["missed"],
            "eas_per_s": noticed["rate_per_s"],
            "p99_delay_ms": max(one["delay_p99_s"] for one in during) * MILLISECONDS,
            "p99_delay_without_ms": without["delay_p99_s"] * MILLISECONDS,
            "longest_delay_ms": max(one["delay_longest_s"] for one in during) * MILLISECONDS,
            "longest_delay_without_ms": without["delay_longest_s"] * MILLISECONDS,
        }


async def _longest_pause_ms(ground: Ground) -> list[float]:
    """Until it is cancelled."""
    seen: list[float] = []
    try:
        while True:
            await asyncio.sleep(LOOK_S)
            seen.append(await ground.pause_ms(SERVER))
    except asyncio.CancelledError:
        return seen


def _rate(asked: list[Answer]) -> str:
    return f", {asked[-1]['per_s']:,.0f} EFs/s" if asked else ""
