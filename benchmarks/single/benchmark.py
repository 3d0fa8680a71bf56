"""`utuple bench single`: 64 coroutines of one SDK process, each awaiting `emit` of one event after the other; beside
it 64 connections of one process that each commit a row with an INSERT, in the same PostgreSQL and in the same form of
table. They take turns."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground

AT_ONCE = 64
WARM_UP = 640
"""Of each; after it there is a table to make one like."""


@dataclass(frozen=True, slots=True)
class Size:
    turns: int = 3
    ours: int = 10_000
    """Events a turn."""
    inserts: int = 5_000
    """Rows a turn: they are slower, and a turn should take as long."""


QUICK = Size(1, 1_000, 500)


class Single:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (Target("ratio_insert", at_least=2.0),)
        self.notes = {
            "ours": OURS_ARE_DURABLE,
            "insert": "durable: each row is a commit of its own, in the same PostgreSQL",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            server = ground.servers[0]
            log = place / "clients.log"
            sensors, inserts = [
                await stack.enter_async_context(Child(f"benchmarks.single.{module}", given, log))
                for module, given in (
                    ("sensors", {"managers": ground.managers}),
                    ("inserts", {"database": ground.database_of(server)}),
                )
            ]
            await sensors.ask("emit", count=WARM_UP, at_once=AT_ONCE, seed=0)
            await inserts.ask("open", at_once=AT_ONCE)
            await inserts.ask("insert", count=WARM_UP, seed=0)
            server_cpu_s = ground.cpu_s(server)
            size, ours, theirs = self._size, [], []
            for turn in range(1, size.turns + 1):
                ours.append(await sensors.ask("emit", count=size.ours, at_once=AT_ONCE, seed=turn))
                theirs.append(await inserts.ask("insert", count=size.inserts, seed=turn))
            server_cpu_s = ground.cpu_s(server) - server_cpu_s
        emitted, inserted = size.turns * size.ours, size.turns * size.inserts
        ours_per_s = emitted / sum(turn["took_s"] for turn in ours)
        insert_per_s = inserted / sum(turn["took_s"] for turn in theirs)
        say(f"ours: {ours_per_s:.0f} events/s; INSERT: {insert_per_s:.0f} rows/s")
        return {
            "ratio_insert": ours_per_s / insert_per_s,
            "ours_per_s": ours_per_s,
            "insert_per_s": insert_per_s,
            "client_cpu_us": sum(turn["cpu_s"] for turn in ours) / emitted * 1e6,
            "server_cpu_us": server_cpu_s / emitted * 1e6,
            "insert_client_cpu_us": sum(turn["cpu_s"] for turn in theirs) / inserted * 1e6,
        }
