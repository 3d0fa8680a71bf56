"""`utuple bench growth`: what an EA costs when 10^5, 10^6 and 10^7 are stored, and with 0, 10^3 and 10^5 EFs.

Three families share the store, and each has a third of it:

    0 EFs         nobody watches
    1,000 EFs     districts, as in `ingest`: every EA is delivered to one reader and acknowledged
    100,000 EFs   one for each truck, their readers away: every EA matches one, which finds it later

The store is filled by COPY before its server starts: the largest once for all runs, the smaller ones anew in each. At
each size some of every family are measured: the time until all are durable (and delivered, where somebody reads), and
the processor time of the server and PostgreSQL. `time_ratio` and `cpu_ratio` compare the most and the fewest stored,
over all three families.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks import trucks
from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.filling import filler
from benchmarks.ground import Ground, Plan, open_ground
from utuple.model.utuple import Family

DELIVERY_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Size:
    stored: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    few_efs: int = 1_000
    many_efs: int = trucks.TRUCKS
    events: int = 100_000
    """In one call of `emit_many`: so many of each family are measured at each size."""
    warm_up: int = 10_000


QUICK = Size((10_000, 30_000), 100, 2_000, 5_000, 1_000)
SERVER = "server-1"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one EA."""

    time_us: float
    cpu_us: float


class _Family:
    """EAs of one type: who emits them, and who reads them, if anybody does."""

    def __init__(self, efs: int, gateway: Child, reader: Child | None) -> None:
        self.efs = efs
        self._gateway = gateway
        self._reader = reader
        self._ready = 0

    async def make(self, count: int) -> None:
        self._ready = count
        await self._gateway.ask("make", count=count, seed=self.efs)

    async def emit(self) -> float:
        """Seconds until all that lie ready are durable and delivered. They may be emitted again."""
        count = self._ready
        if self._reader is not None:
            await self._reader.ask("expect", count=count)
        emitted = await self._gateway.ask("emit")
        if emitted["count"] != count:
            raise BenchFailed(f"{emitted['count']} of {count} EAs were registered")
        ended_s: float = emitted["ended_s"]
        if self._reader is not None:
            done = await self._reader.ask("done", limit_s=DELIVERY_LIMIT_S)
            ended_s = max(ended_s, done["done_s"])
        return ended_s - float(emitted["began_s"])


@dataclass(frozen=True, slots=True)
class _Store:
    """A server over so many stored EAs."""

    ground: Ground
    families: list[_Family]


class Growth:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (Target("time_ratio", at_most=1.25), Target("cpu_ratio", at_most=1.25))
        self.notes = {"ours": OURS_ARE_DURABLE}
        self._largest: _Store | None = None

    @asynccontextmanager
    async def prepared(self, place: Path, say: Say) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            self._largest = await self._open(stack, self._size.stored[-1], place, say)
            yield

    async def run(self, place: Path, say: Say) -> Figures:
        assert self._largest is not None
        found: dict[str, float] = {}
        means: list[Cost] = []
        for stored in self._size.stored[:-1]:
            async with AsyncExitStack() as stack:
                own = place / f"{stored}"
                own.mkdir()
                store = await self._open(stack, stored, own, say)
                means.append(await self._measure(store, stored, found, say))
        means.append(await self._measure(self._largest, self._size.stored[-1], found, say))
        least, most = means[0], means[-1]
        ratios = {
            "time_ratio": most.time_us / least.time_us,
            "cpu_ratio": most.cpu_us / least.cpu_us,
        }
        return {**ratios, **found}

    async def _open(self, stack: AsyncExitStack, stored: int, place: Path, say: Say) -> _Store:
        kinds = [Family(trucks.SUBJECT, _type(number)) for number in range(3)]
        fill = filler(SERVER, kinds, stored, place / "filling.log", say)
        plan = Plan([0.0], prepare=fill)
        ground = await stack.enter_async_context(open_ground(place, plan, say))
        return _Store(ground, await self._families(stack, ground, place, say))

    async def _measure(self, store: _Store, stored: int, found: dict[str, float], say: Say) -> Cost:
        costs = [await self._cost(store.ground, family) for family in store.families]
        name = f"{stored:.0e}".replace("e+0", "e")
        for family, cost in zip(store.families, costs, strict=True):
            found[f"time_us_{name}_stored_{family.efs}_efs"] = cost.time_us
            found[f"cpu_us_{name}_stored_{family.efs}_efs"] = cost.cpu_us
            say(
                f"{stored} stored, {family.efs} EFs: {cost.time_us:.1f} µs, "
                f"{cost.cpu_us:.1f} µs of processors an EA"
            )
        return Cost(fmean(cost.time_us for cost in costs), fmean(c.cpu_us for c in costs))

    async def _families(
        self, stack: AsyncExitStack, ground: Ground, place: Path, say: Say
    ) -> list[_Family]:
        size, log = self._size, place / "clients.log"
        common = {"managers": ground.managers, "subject": trucks.SUBJECT}
        families = []
        for number, efs in enumerate((0, size.few_efs, size.many_efs)):
            given = {**common, "type": _type(number), "efs": efs, "only_new": True}
            gateway = Child("benchmarks.gateway", given, log)
            await stack.enter_async_context(gateway)
            reader = None
            if efs == size.few_efs:
                reader = await stack.enter_async_context(
                    Child("benchmarks.ingest.reader", given, log)
                )
                await reader.ask("cpu")  # its watches are open
            elif efs:
                say(f"registering {efs} EFs")
                crowd = Child(
                    "benchmarks.help.crowd", {**given, "rate_per_s": 0, "device": "truck"}, log
                )
                async with crowd:
                    await crowd.ask("fill", count=efs)
            families.append(_Family(efs, gateway, reader))
        for family in families:  # to warm up
            await family.make(size.warm_up)
            await family.emit()
        await ground.until_compiled(SERVER)
        for family in families:
            await family.make(size.events)
        return families

    async def _cost(self, ground: Ground, family: _Family) -> Cost:
        count, before_s = self._size.events, _cpu_s(ground)
        took_s = await family.emit()
        return Cost(took_s / count * 1e6, (_cpu_s(ground) - before_s) / count * 1e6)


def _cpu_s(ground: Ground) -> float:
    return ground.cpu_s(ground.servers[0]) + ground.postgres_cpu_s


def _type(number: int) -> str:
    return f"{trucks.TYPE}-{number}"
