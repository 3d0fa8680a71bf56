"""One seed: plan, storm, healing, probes, verdict."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from benchmarks.chaos.checker import Verdict, check
from tests.virtual.coverage import ended
from tests.virtual.plan import BEGIN_S, Commanding, Emission, Plan, Planner, Reading
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import FARTHEST_S, Cluster
from tests.virtual.programs.monitor import Monitors
from tests.virtual.programs.sca import sca_servers_call_by
from tests.virtual.programs.trust import VISITORS, Guest
from tests.virtual.scenes.cancelled_elsewhere import cancelled_elsewhere
from tests.virtual.scenes.coming_and_going import coming_and_going
from tests.virtual.scenes.commands_again import commands_again
from tests.virtual.scenes.directories import directories_agree, managers_start_again
from tests.virtual.scenes.fleeting import fleeting
from tests.virtual.scenes.fleeting_commands import fleeting_commands
from tests.virtual.scenes.held_up import held_up
from tests.virtual.scenes.newcomers import newcomers
from tests.virtual.scenes.order import one_by_one
from tests.virtual.scenes.partitioned import partitioned
from tests.virtual.scenes.passed_by import passed_by
from tests.virtual.scenes.pruned import pruned
from tests.virtual.scenes.shared_out import shared_out
from tests.virtual.scenes.sharing import sharing
from tests.virtual.scenes.short_lived import short_lived
from tests.virtual.scenes.waiting_commands import waiting_commands
from tests.virtual.storm.aims import Aims
from tests.virtual.storm.around_moves import Scenes
from tests.virtual.storm.faults import Faults
from tests.virtual.storm.moves import Moves
from tests.virtual.storm.readers import Readers
from tests.virtual.world.loop import Life, Stuck
from tests.virtual.world.world import World
from utuple.cluster.move import MoveKind
from utuple.model.condition import prefix
from utuple.model.utuple import Family, datetime_of

HEAL_S = 35.0
"""From the last fault until everything must work again."""

SETTLE_S = 20.0
"""In the calm, by then a delivery must have come."""

LATE_S = 60.0
"""`late_s` of servers."""
_BRINGING = (MoveKind.DRAIN, MoveKind.RELEASE, MoveKind.SUSPEND, MoveKind.RETURN)

OPERATOR = "operator"

AFTER_S = 3.0
"""From the last probe to the verdict."""

_PLAYED = 0.12
"""The share of the scenes in the calm that a seed plays: all of them cost twice what the faults before them do. Of 2,000 seeds
240 play each; a mutant plays all."""


@dataclass
class Result:
    seed: int
    verdict: Verdict = field(default_factory=Verdict)
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    digest: str = ""
    steps: int = 0
    cpu_s: float = 0.0

    @property
    def history(self) -> str:
        """The same in every run of this seed."""
        return f"digest {self.digest}, {self.steps} steps"

    @property
    def violations(self) -> list[str]:
        found = [f"{kind}: {one}" for kind, all_ in self.verdict.findings.items() for one in all_]
        return found + self.wrong


def run_seed(
    seed: int, tell: Callable[[str], None] | None = None, *, every_scene: bool = False
) -> Result:
    """Of the scenes in the calm at the end the seed picks some, unless every one is wanted."""
    began_s = time.process_time()
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    _forget_tasks()
    gc.disable()  # nothing is collected, and no `finally` runs, at an instant the seed does not know
    try:
        with warnings.catch_warnings():
            result = _run(seed, tell, every_scene)
            gc.freeze()  # thousands of coroutines in mid-air, none of which matters: they go with the process
    finally:
        gc.enable()
        sys.unraisablehook = hook
    result.cpu_s = time.process_time() - began_s
    return result


def _forget_tasks() -> None:
    """asyncio notes every task in a set of weak references, for `all_tasks`; nobody asks here, and it is a
    twentieth of the time. (From Python 3.12 on it does so in C, at no cost.)"""
    noted = getattr(asyncio.tasks, "_all_tasks", None)
    if noted is not None:
        noted.add = lambda _: None


def _run(seed: int, tell: Callable[[str], None] | None, every_scene: bool) -> Result:
    world = World(seed, tell)
    trial = Trial(world, every_scene)
    verdict = Verdict()
    try:
        with sca_servers_call_by(trial.cluster.network):
            verdict = world.loop.run_world(trial.run())
    except Stuck as error:
        world.wrong.append(f"stuck: {error}")
    world.end()
    warnings.simplefilter("ignore", RuntimeWarning)  # what was never awaited never will be
    trial.cluster.bury()
    world.loop.close()
    return Result(seed, verdict, world.wrong, world.counts, world.digest, world.loop.steps)


class Trial:
    def __init__(self, world: World, every_scene: bool) -> None:
        self.world = world
        self._every_scene = every_scene
        self._dice = world.dice("which scenes")
        self.plan: Plan = Planner(world.dice("plan")).plan()
        self.cluster = Cluster(world, self.plan.shape)
        self.clients = [Client(self.cluster, plan) for plan in self.plan.clients]
        world.clients.extend(self.clients)
        self.cluster.add(OPERATOR, _idle)
        self.trust = self.cluster.trust
        if self.trust is not None:
            Guest(self.cluster)
        self.faults = Faults(self.cluster)
        scenes = Scenes(self.cluster, self.clients, self.plan.families)
        aims = Aims(self.cluster, self.faults)
        self.moves = Moves(self.cluster, self.plan.families, scenes, aims)
        self.readers = Readers(self.cluster, self.clients, self.plan.families)
        self.monitors = Monitors(self.cluster, self.moves.expect, self.plan.monitors)

    async def run(self) -> Verdict:
        cluster = self.cluster
        for name in (*cluster.managers, *cluster.servers, *cluster.serving_scas):
            cluster.start(name)
        await asyncio.sleep(0.5)
        cluster.start(OPERATOR)
        life = cluster.processes[OPERATOR].life
        assert life is not None
        await self.world.loop.start(life, cluster.adopt())
        if self.trust is not None:
            await self.world.loop.start(life, self.trust.found())
            self.world.loop.start(life, self.trust.operate())
            for name in VISITORS:
                cluster.start(name)
        for client in self.clients:
            cluster.start(client.process.name)
        await asyncio.sleep(BEGIN_S - self.world.now_s)
        for name in self.monitors.names:
            cluster.start(name)
        self.readers.begin()
        planned = bool(self.monitors.names)
        self.world.loop.start(life, self.monitors.ask_to_leave())
        operator = self.world.loop.start(life, self.moves.run(planned=planned))
        await self.faults.run()
        self.monitors.settle()
        if self.trust is not None:
            self.trust.settle()
        self.faults.heal()
        self.readers.settle()
        await operator
        await self.world.loop.start(life, self.moves.finish())
        calm_us = self.world.now_us
        await asyncio.sleep(HEAL_S)
        await self._probe()
        await asyncio.sleep(AFTER_S)
        for client in self.clients:
            client.end_calls()
        return check(
            self.world.history,
            self.world.now_us,
            calm_us=calm_us,
            settle_s=SETTLE_S,
            drift_s=2 * FARTHEST_S + 1.0,
            late_s=self._late_s,
        )

    @property
    def _late_s(self) -> float:
        """An event that met an EF reaches its reader though it expires meanwhile, unless it was at a server that left or
        was suspended in between: what is expired is not brought elsewhere, and who returns learns EFs anew."""
        moved = sum(self.world.counts[ended(kind, completed=True)] for kind in _BRINGING)
        return 0.0 if moved else LATE_S

    # --- progress ------------------------------------------------------------------------------------

    async def _probe(self) -> None:
        """Every call of every client succeeds now. The first that does not is enough: the others would only
        wait in vain, too."""
        probes = [
            self._probed(client, family) for client in self.clients for family in self.plan.families
        ]
        await asyncio.gather(*probes)
        client = self.clients[0]
        life = client.process.life
        other, families = self.clients[1], self.plan.families
        pair = (self.cluster, client, other, families[-1])
        if not self.world.wrong and life is not None:
            await self._play(life, newcomers, self.cluster, client, families[0])
            scenes = (
                *(short_lived, passed_by, held_up, coming_and_going, sharing),
                *(fleeting_commands, waiting_commands, cancelled_elsewhere),
            )
            for scene in scenes:
                await self._play(life, scene, *pair)
            await self._play(life, commands_again, self.cluster, client, families[-1])
            await self._play(life, shared_out, *pair)
        if not self.world.wrong and life is not None:
            await self._play(life, self.readers.probe)
        for family in self.plan.families:
            await self._called(client, "reads", family, lambda f=family: self._read(client, f))  # type: ignore[misc]
        if not self.world.wrong and life is not None:
            await self._play(life, one_by_one, self.cluster, client, other, families)
            await self._play(life, fleeting, self.cluster, client, other, families[0])
            await self.world.loop.start(life, directories_agree(self.cluster))
            await self._play(life, managers_start_again, self.cluster)
        if not self.world.wrong and life is not None:
            # The last one: a monitor may send off whom it has brought on.
            await self._play(life, partitioned, *pair)
        if not self.world.wrong and life is not None:
            await self._play(life, pruned, self.cluster, client, other, self.plan.families)

    async def _play(
        self, life: Life, scene: Callable[..., Coroutine[Any, Any, None]], *actors: Any
    ) -> None:
        if self._every_scene or self._dice.random() < _PLAYED:
            await self.world.loop.start(life, scene(*actors))
            await self.cluster.at_rest()

    async def _probed(self, client: Client, family: Family) -> None:
        event = {
            "subject": family.subject,
            "type": family.type,
            "address": "north-1",
            "position": None,
            "data": {"kg": 5},
            "time": datetime_of(self.world.now_us),
            "lifetime_s": 3600.0,
        }
        emission = Emission(0.0, (event,), many=False)
        command = Commanding(0.0, family, {"address": prefix("room")}, {"on": True}, 0.0)
        assert client.space is not None
        space = client.space
        await self._called(client, "emits", family, lambda: client.emit(space, emission))
        await self._called(client, "commands", family, lambda: client.command(space, command))

    async def _read(self, client: Client, family: Family) -> bool:
        assert client.space is not None
        for newest_first in (False, True):
            reading = Reading(0.0, family, newest_first)
            if not await client.read(client.space, reading, complete=True):
                return False
        return True

    async def _called(
        self,
        client: Client,
        what: str,
        family: Family,
        act: Callable[[], Coroutine[Any, Any, bool]],
    ) -> None:
        if self.world.wrong:
            return
        life = client.process.life
        assert life is not None
        done = await self.world.loop.start(life, act())
        if not done:
            self.world.bug(f"{life} {what} {family.subject} in vain, though all is healed")


async def _idle(life: Life) -> None:
    """The operator: somebody who calls now and then."""
    await asyncio.Event().wait()
