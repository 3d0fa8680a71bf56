"""`utuple bench secure`: the same work on two clusters that differ in one thing: TLS 1.3 with certificates on both ends, and grants that
are asked for every batch. They take turns.

    ingest    `emit_many` in one SDK process, until the last EA is durable
    single    64 coroutines that await `emit`
    latency   from emit to a live watcher at 1,000 EAs/s
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import trucks
from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from utuple.model.condition import Prefix
from utuple.security.credentials import write_credentials
from utuple.security.grants import Action, FamilyPattern, Grant
from utuple.security.identity import Role

AT_ONCE = 64
_NAME = "bench"


@dataclass(frozen=True, slots=True)
class Size:
    turns: int = 5
    events: int = 150_000
    singles: int = 6_000
    rate_per_s: int = 1_000
    seconds: float = 4.0


QUICK = Size(1, 5_000, 500, 300, 1.0)


class Side:
    """One of the two clusters, with its programs."""

    def __init__(self, ground: Ground, place: Path, secured: bool) -> None:
        self.name = "secured" if secured else "plain"
        environment = {}
        if secured:
            environment["UTUPLE_CREDENTIALS"] = str(place / f"{_NAME}.creds")
        given, log = {"managers": ground.managers}, place / "clients.log"

        def child(module: str, **more: object) -> Child:
            return Child(f"benchmarks.{module}", {**given, **more}, log, environment)

        self.gateway, self.sensors = child("gateway"), child("single.sensors")
        self.watcher = child("latency.programs", watching=True)
        self.emitter = child("latency.programs", watching=False)
        self.ingest_per_s: list[float] = []
        self.single_per_s: list[float] = []
        self.p50_s: list[float] = []

    @property
    def children(self) -> tuple[Child, ...]:
        return self.gateway, self.sensors

    async def ingest(self, size: Size, turn: int) -> None:
        await self.gateway.ask("make", count=size.events, seed=turn)
        done = await self.gateway.ask("emit")
        if done["count"] != size.events:
            raise BenchFailed(f"{done['count']} of {size.events} EAs were registered")
        self.ingest_per_s.append(size.events / (done["ended_s"] - done["began_s"]))

    async def single(self, size: Size, turn: int) -> None:
        done = await self.sensors.ask("emit", count=size.singles, at_once=AT_ONCE, seed=turn)
        self.single_per_s.append(size.singles / done["took_s"])

    async def latency(self, size: Size, turn: int) -> None:
        """With programs of their own for each turn: what one has received is counted anew."""
        count = int(size.rate_per_s * size.seconds)
        async with self.watcher as watcher, self.emitter as emitter:
            await watcher.ask("received", count=0, skipped=0)  # it is open
            await emitter.ask("emit", count=count, rate_per_s=size.rate_per_s, seed=turn)
            seen = await watcher.ask("received", count=count, skipped=count // 2)
        if seen["missed"]:
            raise BenchFailed(f"{seen['missed']} of {count} EAs were not delivered")
        self.p50_s.append(seen["p50_s"])


class Secure:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_ingest", at_least=0.85),
            Target("ratio_single", at_least=0.75),
            Target("latency_ratio", at_most=1.35),
        )
        self.notes = {
            "ours": f"{OURS_ARE_DURABLE}; TLS 1.3, and every batch judged by its family and addresses",
            "plain": "the same without TLS and grants",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with AsyncExitStack() as stack:
            sides = [await self._side(stack, place, say, secured=one) for one in (False, True)]
            for turn in range(1, size.turns + 1):  # first: a watch begins with what is stored
                for side in sides if turn % 2 else sides[::-1]:
                    await side.latency(size, turn)
            for side in sides:  # warm
                await side.ingest(Size(events=max(2_000, size.events // 10)), 0)
                await side.single(Size(singles=640), 0)
                side.ingest_per_s.clear()
                side.single_per_s.clear()
            for turn in range(1, size.turns + 1):
                for side in sides if turn % 2 else sides[::-1]:
                    await side.ingest(size, turn)
                    await side.single(size, turn)
            plain, secured = sides
        found = {
            f"{side.name}_{what}": median(values)
            for side in sides
            for what, values in (
                ("ingest_per_s", side.ingest_per_s),
                ("single_per_s", side.single_per_s),
                ("p50_ms", [one * 1e3 for one in side.p50_s]),
            )
        }
        return {
            "ratio_ingest": _ratio(secured.ingest_per_s, plain.ingest_per_s),
            "ratio_single": _ratio(secured.single_per_s, plain.single_per_s),
            "latency_ratio": _ratio(secured.p50_s, plain.p50_s),
            **found,
        }

    async def _side(self, stack: AsyncExitStack, place: Path, say: Say, *, secured: bool) -> Side:
        own = place / ("secured" if secured else "plain")
        own.mkdir()
        own.chmod(0o755)
        ground = await stack.enter_async_context(open_ground(own, Plan([0.0], secure=secured), say))
        if secured:
            await granted(ground, own)
        side = Side(ground, own, secured)
        for child in side.children:
            await stack.enter_async_context(child)
        return side


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """Of neighbours in time: what else the machine does meets both."""
    return median(one / other for one, other in zip(ours, theirs, strict=True))


async def granted(
    ground: Ground, place: Path, name: str = _NAME, more: Sequence[Action] = ()
) -> Path:
    """Credentials that may emit and watch what benchmarks do, and do what else is asked for."""
    families = (FamilyPattern(trucks.SUBJECT, trucks.TYPE),)
    actions = dict.fromkeys((Action.EMIT, Action.WATCH, *more), families)
    grant = Grant(name, Role.APPLICATION, actions, Prefix(""))
    credentials, _ = ground.cluster.folder.trust.authority.grant(grant, 1)
    path = place / f"{name}.creds"
    write_credentials(path, credentials)
    await ground.cluster.publish_grants()
    return path
