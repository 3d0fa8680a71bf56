"""`utuple bench latency`: how long an event takes from `emit` in one process to the handler of a live watcher in
another, at a steady 1,000 EAs/s, every EA durable before it is delivered; beside it mosquitto QoS 1 from publish to
the subscriber's handler at the same rate, which keeps nothing on disk. Of both the second half is counted."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from benchmarks.rivals.catalogue import MOSQUITTO
from benchmarks.rivals.running import Delays, RunningRival


@dataclass(frozen=True, slots=True)
class Size:
    rate_per_s: int = 1_000
    seconds: float = 8.0


QUICK = Size(500, 1.0)


class Latency:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (Target("ratio_mosquitto", at_most=4.0, rival=MOSQUITTO.name),)
        self.notes = {
            "ours": f"{OURS_ARE_DURABLE}, and before its delivery",
            MOSQUITTO.name: MOSQUITTO.note,
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        ours, per_s = await self._ours(place, say)
        found = {"rate_per_s": per_s, **delay_figures("ours", ours)}
        say(f"ours: p50 {ours.p50_s * 1e3:.2f} ms")
        if MOSQUITTO.is_installed:
            async with RunningRival(MOSQUITTO, place, say, subscribed=True) as running:
                theirs = await running.delays(size.rate_per_s, size.seconds)
            say(f"mosquitto: p50 {theirs.p50_s * 1e3:.2f} ms")
            found |= delay_figures(MOSQUITTO.name, theirs)
            found["ratio_mosquitto"] = ours.p50_s / theirs.p50_s
        return found

    async def _ours(self, place: Path, say: Say) -> tuple[Delays, float]:
        size = self._size
        count = int(size.rate_per_s * size.seconds)
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            watcher, sensors = [
                await stack.enter_async_context(
                    Child(
                        "benchmarks.latency.programs",
                        {"managers": ground.managers, "watching": watching},
                        place / "clients.log",
                    )
                )
                for watching in (True, False)
            ]
            await watcher.ask("received", count=0, skipped=0)  # it is open
            sent = await sensors.ask("emit", count=count, rate_per_s=size.rate_per_s, seed=1)
            seen = await watcher.ask("received", count=count, skipped=count // 2)
        if seen["missed"]:
            raise BenchFailed(f"{seen['missed']} of {count} EAs were not delivered")
        return Delays(seen["p50_s"], seen["p99_s"], seen["p999_s"]), sent["per_s"]


def delay_figures(name: str, delays: Delays) -> dict[str, float]:
    return {
        f"{name}_p50_ms": delays.p50_s * 1e3,
        f"{name}_p99_ms": delays.p99_s * 1e3,
        f"{name}_p999_ms": delays.p999_s * 1e3,
    }
