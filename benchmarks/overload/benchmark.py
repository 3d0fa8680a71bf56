"""`utuple bench overload`: three times what a server can carry, for a minute.

The server works an artificial time on each uTuple, so that two cores can also make three times that. Sensor
programs send whenever it is due, and their SDK waits and tries again as the server asks, within a limit of time;
what ends in an unknown outcome they try again.
Afterwards every call is looked up in the store: what was answered is there, whole; what was refused is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.machine import process_memory_bytes
from benchmarks.overload.recovery import normal_s, recovery_s
from benchmarks.overload.sensors import OK, REFUSED, UNKNOWN
from utuple.runtime.clock import monotonic_s

SERVER = "server-1"
MEGABYTE = 1 << 20
LOOK_AGAIN_S = 0.25
_STORED = "SELECT address, count(*) FROM utuple.events GROUP BY address"


@dataclass(frozen=True, slots=True)
class Size:
    seconds: float = 60.0
    processes: int = 2
    spaces: int = 12
    """Of each process: connections that know nothing of each other."""
    rows: int = 250
    """Of each call."""
    service_us: float = 100.0
    """About 10,000 uTuples a second."""
    calibrate_s: float = 4.0
    times: float = 3.0
    timeout_s: float = 5.0
    """A sensor program gives up after this."""
    probe_every_s: float = 0.05
    calm_s: float = 1.0
    watch_s: float = 12.0
    """After the overload."""


QUICK = Size(6.0, 2, 4, calibrate_s=1.0, calm_s=0.5)


class Overload:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("lost", at_most=0, always=True),
            Target("phantom", at_most=0, always=True),
            Target("unknown", at_most=0, always=True),
            Target("refused", at_least=1),
            Target("recovery_s", at_most=5),
            Target("memory_growth_mb", at_most=512),
        )
        self.notes = {"ours": OURS_ARE_DURABLE}

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with AsyncExitStack() as stack:
            plan = Plan([size.service_us])
            ground = await stack.enter_async_context(open_ground(place, plan, say))
            children = [
                await stack.enter_async_context(self._child(ground, place, f"sensors-{number}"))
                for number in range(size.processes + 1)
            ]
            prober, sensors = children[0], children[1:]
            await prober.ask("open", spaces=1)
            await asyncio.gather(*(child.ask("open", spaces=size.spaces) for child in sensors))
            carried_per_s = await self._calibrated(sensors)
            say(f"carried: {carried_per_s:.0f} EAs/s")
            await prober.ask("probe", every_s=size.probe_every_s)
            await asyncio.sleep(size.calibrate_s)
            found = await self._flooded(ground, sensors, prober, carried_per_s, say)
            outcomes = await asyncio.gather(*(child.ask("outcomes") for child in sensors))
            of = {address: what for one in outcomes for address, what in one["of"].items()}
            stored = await asyncio.to_thread(_stored, ground.database_of(SERVER))
            retried = sum(one["retried"] for one in outcomes)
        found["tried_again"] = retried * size.rows
        return {**_verdict(of, stored, size.rows), "carried_per_s": carried_per_s, **found}

    def _child(self, ground: Ground, place: Path, name: str) -> Child:
        settings = {
            "name": name,
            "managers": ground.managers,
            "rows": self._size.rows,
            "timeout_s": self._size.timeout_s,
        }
        return Child("benchmarks.overload.sensors", settings, place / f"{name}.log")

    async def _calibrated(self, sensors: Sequence[Child]) -> float:
        asked = (child.ask("closed_loop", seconds=self._size.calibrate_s) for child in sensors)
        return float(sum(answer["per_s"] for answer in await asyncio.gather(*asked)))

    async def _flooded(
        self,
        ground: Ground,
        sensors: Sequence[Child],
        prober: Child,
        carried_per_s: float,
        say: Say,
    ) -> dict[str, float]:
        size = self._size
        pid = ground.pid_of(SERVER)
        before_bytes = most_bytes = process_memory_bytes(pid)
        began_s = monotonic_s()
        rate_per_s = size.times * carried_per_s / len(sensors)
        flood = asyncio.gather(
            *(c.ask("flood", rate_per_s=rate_per_s, seconds=size.seconds) for c in sensors)
        )
        while not flood.done():
            most_bytes = max(most_bytes, process_memory_bytes(pid))
            await asyncio.sleep(LOOK_AGAIN_S)
        answers = await flood
        ended_s = max(answer["ended_s"] for answer in answers)
        say(f"offered {sum(a['offered_per_s'] for a in answers):.0f} EAs/s; watching recovery")
        await asyncio.sleep(max(0.0, ended_s + size.watch_s - monotonic_s()))
        probes = (await prober.ask("probes"))["probes"]
        recovered_s = recovery_s(probes, ended_s, normal_s(probes, began_s), OK, size.calm_s)
        if recovered_s is None:
            raise BenchFailed(f"not back to normal {size.watch_s:g} s after the overload")
        return {
            "recovery_s": recovered_s,
            "memory_growth_mb": (most_bytes - before_bytes) / MEGABYTE,
            "offered_per_s": sum(answer["offered_per_s"] for answer in answers),
            "last_answer_s": max(answer["answered_s"] for answer in answers) - ended_s,
        }


def _stored(database: str) -> dict[str, int]:
    with psycopg.connect(database) as connection:
        return dict(connection.execute(_STORED).fetchall())


def _verdict(of: Mapping[str, str], stored: Mapping[str, int], rows: int) -> dict[str, float]:
    """In uTuples."""
    calls = {what: [a for a, seen in of.items() if seen == what] for what in (OK, REFUSED, UNKNOWN)}
    return {
        "lost": sum(rows - stored.get(address, 0) for address in calls[OK]),
        "phantom": sum(stored.get(address, 0) for address in calls[REFUSED]),
        "unknown": rows * len(calls[UNKNOWN]),
        "refused": rows * len(calls[REFUSED]),
        "registered": rows * len(calls[OK]),
    }
