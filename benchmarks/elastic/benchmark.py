"""`utuple bench elastic`: load up and down in steps, then as a square wave, over the local provisioner, with servers that work
artificially long on each uTuple. Servers follow; the controller is killed with -9 on the way up; nothing is missed, made twice or left."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from utuple.admin import transport
from utuple.admin.programs import Elastic as Seen
from utuple.admin.programs import elastic_of
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import Layout
from utuple.local.ports import claimed
from utuple.local.processes import Process, strays
from utuple.local.supervising.supervisor import Supervisor
from utuple.runtime.clock import monotonic_s

SERVICE_US = 5_000
"""Artificial work a uTuple: 200 of them a second are one busy server."""
_PER_SERVER_S = 1e6 / SERVICE_US
_LOOK_S = 0.5
_FOLLOW_LIMIT_S = 90.0
_EMPTY_LIMIT_S = 120.0

TOML = """
[servers]
min = 1
max = 6
target = 0.5
upper = 0.7
lower = 0.25
cpu = 0.5
memory_mb = 300
cooldown_s = {cooldown_s}
leave_s = {cooldown_s}
calm_s = 6
settle_limit_s = 20

[machines]
pending_s = {pending_s}
empty_s = 8

[area]
cpu = 4
memory_mb = 6144

[provisioner]
ready_s = 2
"""


@dataclass(frozen=True, slots=True)
class Size:
    steps: tuple[tuple[float, int], ...] = ((0.9, 2), (1.7, 3), (0.05, 1))
    """Load in busy servers, and how many servers there are at least (or at most, at the end) when they have followed."""
    wave: int = 3
    """Periods of the square wave."""
    half_s: float = 10.0
    cooldown_s: float = 12.0
    pending_s: float = 20.0


QUICK = Size(((0.9, 2), (0.05, 1)), 1, 4.0, 6.0, 2.0)


class Elastic:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("missed", at_most=0, always=True),
            Target("repeated", at_most=0, always=True),
            Target("duplicates", at_most=0, always=True),
            Target("orphans", at_most=0, always=True),
            Target("decisions_per_cooldown", at_most=1, always=True),
            Target("follow_cooldowns", at_most=1),
        )
        self.notes = {
            "ours": OURS_ARE_DURABLE,
            "servers": f"work artificially for {SERVICE_US / 1e3:g} ms on each uTuple",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        async with _cluster(place, self._size) as folder:
            cluster = folder.read_cluster()
            assert cluster is not None
            trial = _Trial(folder, cluster.layout, self._size, say)
            given = {"managers": cluster.layout.manager_addresses}
            async with Child("benchmarks.elastic.load", given, place / "load.log") as load:
                return await trial.run(load)


@asynccontextmanager
async def _cluster(place: Path, size: Size) -> AsyncIterator[DataFolder]:
    """As `utuple up --elastic` has it, with its supervisor in this process."""
    with claimed() as port:
        folder = DataFolder(place / "cluster")
        folder.make()
        folder.elastic.write_text(TOML.format(cooldown_s=size.cooldown_s, pending_s=size.pending_s))
        policy = (
            f"service_us={SERVICE_US}",
            "stay_on_s=10",
            "stay_off_s=5",
            "settle_s=4",
            "calm_s=5",
        )
        wanted = ClusterFile(Layout(1, 1, port, scas=()), policy=policy, elastic=True)
        folder.write_cluster(wanted)
        stop, ready = asyncio.Event(), asyncio.Event()
        supervisor = Supervisor(folder, wanted, lambda said: None)
        running = asyncio.create_task(supervisor.run(stop, ready.set))
        starting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait({running, starting}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            yield folder
        finally:
            starting.cancel()
            stop.set()
            await running


class _Doubles:
    """What there was more often than it was asked for, at the worst moment."""

    def __init__(self) -> None:
        self._wanted = 1
        """The highest number of servers that was decided on so far: there are never more than that."""
        self.most = 0

    def note(self, seen: Seen, running: Iterable[str]) -> None:
        """`running`: the server's name, for each of their processes."""
        self._wanted = max(self._wanted, seen.wanted)
        surplus = max(0, seen.servers + len(seen.waiting) - self._wanted)
        placed = [name for machine in seen.machines for name in machine.servers]
        machines = [machine.name for machine in seen.machines]
        doubles = sum(map(_named_again, (running, placed, machines)))
        self.most = max(self.most, surplus + doubles)


def _named_again(names: Iterable[str]) -> int:
    return sum(count - 1 for count in Counter(names).values())


def _server_of(process: Process) -> str:
    """The name of the server that this process is; empty if it is none."""
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return ""
    return words[words.index("--name") + 1] if "utuple.server" in words else ""


class _Trial:
    def __init__(self, folder: DataFolder, layout: Layout, size: Size, say: Say) -> None:
        self._folder = folder
        self._monitor = next(p.address for p in layout.programs if p.name == "monitor-1")
        self._size = size
        self._say = say
        self._decided_s: list[float] = []
        self._doubles = _Doubles()
        self._wanted = 1
        self._most = self._now = 0
        self._began_us, self._began_s = 0, 0.0
        """The controller: one that has just begun waits for the cool-down, too."""

    async def run(self, load: Child) -> Figures:
        await load.ask("open")
        await self._look()
        follows_s = [await self._step(load, *step) for step in self._size.steps[:1]]
        self._kill_controller()
        follows_s += [await self._step(load, *step) for step in self._size.steps[1:-1]]
        for _ in range(self._size.wave):
            for rate in (1.6, 0.1):
                await load.ask("rate", per_s=rate * _PER_SERVER_S)
                await self._watch(self._size.half_s)
        last = self._size.steps[-1]
        await load.ask("rate", per_s=last[0] * _PER_SERVER_S)
        await self._until_empty()
        came = await load.ask("end")
        gaps = [b - a for a, b in zip(self._decided_s, self._decided_s[1:], strict=False)]
        cooldown_s = self._size.cooldown_s
        close = sum(gap < cooldown_s - 2 * _LOOK_S for gap in gaps)
        self._say(
            f"{came['sent']:,} events, up to {self._most} servers, {len(self._decided_s)} decisions"
        )
        return {
            "sent": came["sent"],
            "failed": came["failed"],
            "missed": came["missed"],
            "repeated": came["repeated"],
            "servers_most": self._most,
            "decisions": len(self._decided_s),
            "decisions_per_cooldown": 1 + close if gaps else 1,
            "duplicates": self._doubles.most,
            "orphans": await self._orphans(),
            "follow_s": max(follows_s),
            "follow_cooldowns": max(follows_s) / cooldown_s,
        }

    # --- what happens ------------------------------------------------------------------------------------

    async def _step(self, load: Child, busy: float, servers: int) -> float:
        """Seconds from the change of the load until it was decided on, without what the last decision made it wait; the new
        servers then come."""
        began_s = monotonic_s()
        await load.ask("rate", per_s=busy * _PER_SERVER_S)
        decided = len(self._decided_s)
        while len(self._decided_s) == decided:
            await self._limited(began_s, f"no decision at a load of {busy:g} servers")
        last_s = max(self._began_s, self._decided_s[-2] if decided else 0.0)
        follow_s = self._decided_s[-1] - max(began_s, last_s + self._size.cooldown_s)
        while self._now < servers:
            await self._limited(began_s, f"not {servers} servers at a load of {busy:g}")
        self._say(f"load {busy:g}: decided after {follow_s:.1f} s, {self._now} servers")
        return follow_s

    async def _limited(self, began_s: float, what: str) -> None:
        if monotonic_s() - began_s > _FOLLOW_LIMIT_S:
            raise BenchFailed(
                f"{what} within {_FOLLOW_LIMIT_S:g} s: see {self._folder.log('monitor-1')}"
            )
        await self._watch(_LOOK_S)

    async def _watch(self, for_s: float) -> None:
        until_s = monotonic_s() + for_s
        while monotonic_s() < until_s:
            await asyncio.sleep(min(_LOOK_S, max(0.0, until_s - monotonic_s())))
            await self._look()

    async def _look(self) -> None:
        status = await transport.monitor_status(self._monitor)
        if status is None or not status.HasField("elastic"):
            return  # killed, and not back yet
        if status.since_us != self._began_us:
            self._began_us, self._began_s = status.since_us, monotonic_s()
        seen = elastic_of(status.elastic)
        self._now, self._most = seen.servers, max(self._most, seen.servers)
        self._note_decision(seen)
        running = map(_server_of, strays(self._folder.path))
        self._doubles.note(seen, [name for name in running if name])

    def _note_decision(self, seen: Seen) -> None:
        """The number that is aimed at: what serves or comes, with what waits for a place."""
        cluster = self._folder.read_cluster()
        assert cluster is not None
        names = set(cluster.layout.server_names)
        leaving = {
            done.what.removeprefix("drain ") for done in seen.done if done.what.startswith("drain")
        }
        aimed = len((names | set(seen.waiting)) - leaving)
        if aimed != self._wanted:
            self._wanted = aimed
            self._decided_s.append(monotonic_s())

    def _kill_controller(self) -> None:
        started = self._folder.started("monitor-1")
        if started is None:
            raise BenchFailed("the monitor does not run")
        os.kill(started.process.pid, signal.SIGKILL)
        self._say("the controller is killed with -9")

    # --- what is left ------------------------------------------------------------------------------------

    async def _until_empty(self) -> None:
        """One server on one machine again."""
        began_s = monotonic_s()
        while monotonic_s() - began_s < _EMPTY_LIMIT_S:
            await self._watch(_LOOK_S)
            status = await transport.monitor_status(self._monitor)
            if status is not None and (status.elastic.servers, len(status.elastic.machines)) == (
                1,
                1,
            ):
                return

    async def _orphans(self) -> int:
        """Machines without servers, and servers that nobody has."""
        status = await transport.monitor_status(self._monitor)
        if status is None:
            raise BenchFailed("the monitor does not answer at the end")
        cluster = self._folder.read_cluster()
        assert cluster is not None
        empty = [machine for machine in status.elastic.machines if not machine.servers]
        known = {started.process for started in self._folder.all_started().values()}
        unknown = [process for process in strays(self._folder.path) if process not in known]
        homeless = set(cluster.layout.server_names) - {
            name for machine in status.elastic.machines for name in machine.servers
        }
        return len(empty) + len(unknown) + len(homeless)
