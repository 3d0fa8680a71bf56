"""`utuple bench fleeting`: events of lifetime 0, matched and gone.

How long one takes from `emit` in one process to the handler of a live watcher in another, at a steady 1,000 EAs/s;
beside it mosquitto QoS 1 and QoS 0 and NATS core from publish to the subscriber's handler at the same rate. Of all the
second half is counted. And how many EAs a second `emit_many` registers with 1,000 districts watched, of lifetime 0 and
of a week, in turns.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.latency.benchmark import delay_figures
from benchmarks.rivals.catalogue import MOSQUITTO, MOSQUITTO_QOS0, NATS_CORE, installed
from benchmarks.rivals.running import Delays, RunningRival
from benchmarks.trucks import LIFETIME_S

RIVALS = (MOSQUITTO, MOSQUITTO_QOS0, NATS_CORE)
DELIVERY_LIMIT_S = 60.0
QUIET_S = 1.0
"""Without a delivery: what has not come by then was more than its reader could take, and is gone."""


@dataclass(frozen=True, slots=True)
class Size:
    rate_per_s: int = 1_000
    seconds: float = 8.0
    events: int = 200_000
    efs: int = 1_000
    warm_up: int = 50_000
    turns: int = 3


QUICK = Size(500, 1.0, 20_000, 100, 2_000, 1)


class Fleeting:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self._rivals = installed(RIVALS)
        self.targets = (
            Target("ratio_mosquitto", at_most=2.0, rival=MOSQUITTO.name),
            Target("ratio_durable", at_least=2.0),
        )
        self.notes = {
            "ours": "lifetime 0: answered when it was matched and is on its way; nothing is stored",
            **{rival.name: rival.note for rival in RIVALS},
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with open_ground(place, Plan([0.0]), say) as ground:
            delays = await self._delays(ground, place)
            say(f"ours: p50 {delays.p50_s * 1e3:.2f} ms")
            found = await self._throughput(ground, place) | delay_figures("ours", delays)
            passed, durable = found["fleeting_per_s"], found["durable_per_s"]
            say(f"ours: {passed:.0f} EAs/s of lifetime 0, {durable:.0f} durable")
        for rival in self._rivals:
            async with RunningRival(rival, place, say, subscribed=True) as running:
                theirs = await running.delays(size.rate_per_s, size.seconds)
            say(f"{rival.name}: p50 {theirs.p50_s * 1e3:.2f} ms")
            found |= delay_figures(rival.name, theirs)
            found[f"ratio_{rival.name}"] = delays.p50_s / theirs.p50_s
        return found

    async def _delays(self, ground: Ground, place: Path) -> Delays:
        size = self._size
        count = int(size.rate_per_s * size.seconds)
        settings = {"managers": ground.managers, "lifetime_s": 0.0, "reader": None}
        async with AsyncExitStack() as stack:
            watcher, sensors = [
                await stack.enter_async_context(
                    Child(
                        "benchmarks.latency.programs",
                        {**settings, "watching": watching},
                        place / "clients.log",
                    )
                )
                for watching in (True, False)
            ]
            await watcher.ask("received", count=0, skipped=0)  # it is open
            await sensors.ask("emit", count=count, rate_per_s=size.rate_per_s, seed=1)
            seen = await watcher.ask("received", count=count, skipped=count // 2)
        if seen["missed"]:
            raise BenchFailed(f"{seen['missed']} of {count} EAs were not delivered")
        return Delays(seen["p50_s"], seen["p99_s"], seen["p999_s"])

    async def _throughput(self, ground: Ground, place: Path) -> dict[str, float]:
        """EAs a second of lifetime 0, and of a week, until `emit_many` returns."""
        size, log = self._size, place / "clients.log"
        common = {"managers": ground.managers}
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(Child("benchmarks.gateway", common, log))
            districts = {**common, "efs": size.efs, "only_new": True}
            reader = Child("benchmarks.ingest.reader", districts, log)
            await stack.enter_async_context(reader)
            await _emit(gateway, reader, size.warm_up, LIFETIME_S)
            emitted = {0.0: _Emitted(), float(LIFETIME_S): _Emitted()}
            for lifetime_s in [*emitted] * size.turns:
                emitted[lifetime_s] += await _emit(gateway, reader, size.events, lifetime_s)
        passed, durable = emitted.values()
        return {
            "ratio_durable": passed.per_s / durable.per_s,
            "fleeting_per_s": passed.per_s,
            "durable_per_s": durable.per_s,
            "fleeting_delivered": passed.delivered / passed.count,
            "durable_delivered": durable.delivered / durable.count,
        }


@dataclass(frozen=True, slots=True)
class _Emitted:
    count: int = 0
    took_s: float = 0.0
    delivered: int = 0

    def __add__(self, other: _Emitted) -> _Emitted:
        took_s = self.took_s + other.took_s
        return _Emitted(self.count + other.count, took_s, self.delivered + other.delivered)

    @property
    def per_s(self) -> float:
        return self.count / self.took_s


async def _emit(gateway: Child, reader: Child, count: int, lifetime_s: float) -> _Emitted:
    """The next turn begins when readers have had what they get of this one."""
    await gateway.ask("make", count=count, seed=1, lifetime_s=lifetime_s)
    await reader.ask("expect", count=count)
    emitted = await gateway.ask("emit")
    if emitted["count"] != count:
        raise BenchFailed(f"{emitted['count']} of {count} EAs were registered")
    missing = (await reader.ask("rest", quiet_s=QUIET_S, limit_s=DELIVERY_LIMIT_S))["missing"]
    if missing and lifetime_s:
        raise BenchFailed(f"{missing} of {count} EAs were not delivered")
    return _Emitted(count, emitted["ended_s"] - emitted["began_s"], count - missing)
