"""`utuple bench ingest`: application A, from `emit_many` in one SDK process to the acknowledgement in a reader
process, every EA durable before its answer; beside it what a user would take instead.

    bare COPY   the same rows into the same form of table, by psycopg alone, as large commits as ours
    nats        JetStream, acknowledged publishes, synced every two minutes (as shipped); nats_always: each synced, as ours are
    redis       pipelined XADD, appendfsync always
    mosquitto   QoS 1, from publish to subscriber

What an EA takes of the processors is told by process (`…_cpu_us`); `cores_used` is their sum while it lasted: with two cores nothing
is left to gain by overlapping when it is near two.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.rivals.catalogue import MOSQUITTO, NATS, NATS_ALWAYS, REDIS, Rival, installed
from benchmarks.rivals.running import RunningRival

RIVALS = (NATS, NATS_ALWAYS, REDIS, MOSQUITTO)
"""Their ratios are reported. The target is bare COPY: no one who stores in PostgreSQL can be faster."""
DELIVERY_LIMIT_S = 60.0
FEWER_SYNCED = 10
"""So many times fewer messages for a rival that syncs each by itself: it takes as long for them."""
COPY_BATCH_ROWS = 16_384
"""A commit of the bare COPY: larger than ours are under this load (a call of the SDK)."""


@dataclass(frozen=True, slots=True)
class Size:
    events: int = 400_000
    efs: int = 1_000
    warm_up: int = 50_000
    rival_messages: int = 20_000


QUICK = Size(20_000, 100, 2_000, 500)


class Ingest:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self._rivals = installed(RIVALS)
        self.targets = (Target("ratio_copy", at_least=0.75),)
        self.notes = {
            "ours": OURS_ARE_DURABLE,
            "copy": f"durable: a commit for every {COPY_BATCH_ROWS} rows, in the same PostgreSQL",
            **{rival.name: rival.note for rival in RIVALS},
        }

    async def run(self, place: Path, say: Say) -> Figures:
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            server = ground.servers[0]
            common = {"managers": ground.managers}
            log = place / "clients.log"
            gateway, reader, bare = [
                await stack.enter_async_context(Child(f"benchmarks.{module}", settings, log))
                for module, settings in (
                    ("gateway", common),
                    ("ingest.reader", {**common, "efs": self._size.efs}),
                    ("ingest.bare_copy", {"database": ground.database_of(server)}),
                )
            ]
            await self._ours(gateway, reader, self._size.warm_up, 0)
            await ground.until_compiled(server)
            before = ground.cpu_s(server), ground.postgres_cpu_s
            ours = await self._ours(gateway, reader, self._size.events, 1)
            after = ground.cpu_s(server), ground.postgres_cpu_s
            for name, began_s, ended_s in zip(("server", "postgres"), before, after, strict=True):
                ours[f"{name}_cpu_us"] = (ended_s - began_s) / self._size.events * 1e6
            cpu_us = sum(value for name, value in ours.items() if name.endswith("_cpu_us"))
            ours["cores_used"] = ours["ours_per_s"] * cpu_us / 1e6
            say(f"ours: {ours['ours_per_s']:.0f} EAs/s")
            copy_per_s, ours["copy_cpu_us"] = await self._copy(bare, ground)
            say(f"bare COPY: {copy_per_s:.0f} rows/s")
        found = {"copy": copy_per_s}
        for rival in self._rivals:
            found[rival.name] = await self._rival(rival, place, say)
            say(f"{rival.name}: {found[rival.name]:.0f} messages/s")
        ratios = {f"ratio_{name}": ours["ours_per_s"] / per_s for name, per_s in found.items()}
        return {**ratios, **ours, **{f"{name}_per_s": per_s for name, per_s in found.items()}}

    async def _rival(self, rival: Rival, place: Path, say: Say) -> float:
        """As the target says: to the subscriber for mosquitto, acknowledged to the publisher for others."""
        subscribed = rival is MOSQUITTO
        async with RunningRival(rival, place, say, subscribed=subscribed) as running:
            count = self._size.rival_messages
            if rival is NATS_ALWAYS:
                count //= FEWER_SYNCED
            if subscribed:
                return await running.delivered_per_s(count)
            return await running.published_per_s(count)

    async def _ours(self, gateway: Child, reader: Child, count: int, seed: int) -> dict[str, float]:
        """EAs a second, until the last one is durable and the last delivery is acknowledged."""
        await gateway.ask("make", count=count, seed=seed)
        await reader.ask("expect", count=count)
        reader_cpu_s = await self._reader_cpu_s(reader)
        emitted = await gateway.ask("emit")
        done = await reader.ask("done", limit_s=DELIVERY_LIMIT_S)
        if emitted["count"] != count:
            raise BenchFailed(f"{emitted['count']} of {count} EAs were registered")
        ended_s = max(emitted["ended_s"], done["done_s"])
        return {
            "ours_per_s": count / (ended_s - emitted["began_s"]),
            "durable_per_s": count / (emitted["ended_s"] - emitted["began_s"]),
            "client_cpu_us": emitted["cpu_s"] / count * 1e6,
            "reader_cpu_us": (done["cpu_s"] - reader_cpu_s) / count * 1e6,
        }

    async def _reader_cpu_s(self, reader: Child) -> float:
        return float((await reader.ask("cpu"))["cpu_s"])

    async def _copy(self, bare: Child, ground: Ground) -> tuple[float, float]:
        """Rows a second, and PostgreSQL's time for each in us."""
        loaded = await bare.ask("load", count=self._size.events, batch_rows=COPY_BATCH_ROWS)
        if loaded["rows"] != self._size.events:
            raise BenchFailed(f"{loaded['rows']} of {self._size.events} EAs are in the store")
        before_s = ground.postgres_cpu_s
        took = await bare.ask("copy")
        cpu_us = (ground.postgres_cpu_s - before_s) / loaded["rows"] * 1e6
        return float(loaded["rows"] / (took["ended_s"] - took["began_s"])), cpu_us
