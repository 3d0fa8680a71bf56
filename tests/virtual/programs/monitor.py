"""Load monitors on the virtual network: the live poller with its planner, bold and fast, one or two of them.

What they see is what the servers say, but for the load: a few registrations are none, so how busy and how full
a server is comes from the dice, and changes every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

from google.protobuf.message import Message

from load_monitor.config import Config
from load_monitor.elasticity import Elasticity, View
from load_monitor.observing import Report
from load_monitor.planning.policy import LIVE
from load_monitor.poller import Poller
from load_monitor.transport import KnownCluster, OrderAnswer
from load_monitor.wire import report_from_wire
from tests.virtual.coverage import planned
from tests.virtual.plan import STORM_S
from tests.virtual.programs.cluster import Cluster
from tests.virtual.programs.elastic import Cloud, ElasticCalls, VirtualProvisioner
from tests.virtual.programs.servers import address_of
from tests.virtual.world.loop import Life
from utuple.cluster.move import Move
from utuple.errors import UTupleError
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, move_to_wire, server_from_wire

POLICY = replace(
    LIVE,
    smoothing_s=0.5,
    hold_s=0.0,
    calm_s=2.0,
    silent_s=7.0,
    settle_s=2.0,
    stay_on_s=4.0,
    stay_off_s=3.0,
    moves_at_once=4,
)
_POLL_S = 2.0
_CHANGES_S = 7.0
"""How long a load stays as it is."""
_BUSY = (0.1, 0.3, 0.95)
_FULL = (0.1, 0.1, 0.1, 0.95)
_CALM = 0.2
_ARRIVALS_PER_S = 100.0
_ELASTIC = 0.5
"""The share of the monitors that also make and remove servers."""


class Monitors:
    def __init__(self, cluster: Cluster, expect: Callable[[Move], None], number: int) -> None:
        """`expect` is told of each order before it is sent."""
        self.cluster = cluster
        self.expect = expect
        self.is_calm = False
        self.names = [f"monitor-{at}" for at in range(1, number + 1)]
        for name in self.names:
            cluster.add(name, self._begin)
        is_elastic = bool(self.names) and cluster.world.dice("elastic").random() < _ELASTIC
        self.cloud = Cloud(cluster) if is_elastic else None

    async def ask_to_leave(self) -> None:
        """In half of the seeds an operator wants one of the servers drained, at some time."""
        dice, world = self.cluster.world.dice("leaving"), self.cluster.world
        await asyncio.sleep(dice.uniform(0.0, STORM_S))
        if not self.names or dice.random() < 0.5:
            return
        name = dice.choice(self.cluster.servers)
        world.trace(name, "is asked to leave")
        try:
            await self.cluster.network.call(address_of(name), "leave", pb.LeaveRequest(), 3.0)
        except UTupleError as error:
            world.trace("it does not answer", error)

    def settle(self) -> None:
        """The storm is over, and so is the load. In half of the seeds there is nobody to see it: a monitor
        that died changes nothing but that no new move starts."""
        self.is_calm = True
        if self.cluster.world.dice("monitors").random() < 0.5:
            for name in self.names:
                self.cluster.processes[name].wanted = False
                self.cluster.crash(name)

    async def _begin(self, life: Life) -> None:
        managers = self.cluster.manager_addresses
        config = Config(life.name, address_of(life.name), managers, policy=POLICY, poll_s=_POLL_S)
        poller = Poller(config, _Calls(self, config), lambda: managers)
        work = [poller.run()]
        if self.cloud is not None:
            provisioner = VirtualProvisioner(self.cloud, life)
            calls, settings = ElasticCalls(self.cluster), self.cloud.settings
            elasticity = Elasticity(life.name, settings, provisioner, calls, POLICY)
            work.append(elasticity.run(lambda: _view(poller), _POLL_S))
        await asyncio.gather(*work)

    def as_loaded(self, report: Report) -> Report:
        """Full or busy as the dice have it, in a part of its sections."""
        world, sample = self.cluster.world, report.sample
        busy = full = _CALM
        dice = Random(f"{world.seed}/load {sample.name} {world.now_s // _CHANGES_S}")
        if not self.is_calm:
            busy, full = dice.choice(_BUSY), dice.choice(_FULL)
        arrivals = {
            section: _ARRIVALS_PER_S * dice.choice((0.05, 1.0)) for section in sample.arrivals_per_s
        }
        loaded = replace(
            sample,
            busy=busy,
            searches=busy * dice.choice((0.0, 0.0, 0.2, 1.0)),
            queue_wait_s=0.0,
            size_bytes=int(sample.capacity_bytes * full),
            arrivals_per_s=arrivals,
        )
        return replace(report, sample=loaded)


def _view(poller: Poller) -> View | None:
    snapshot = poller.state.snapshot
    return View(snapshot, poller.places) if snapshot is not None else None


class _Calls:
    """The poller's seam to the cluster."""

    def __init__(self, monitors: Monitors, config: Config) -> None:
        self._monitors = monitors
        self._config = config

    async def table(self, manager: str) -> KnownCluster | None:
        answer = await self._call(manager, "table", pb.TableRequest(), self._config.call_limit_s)
        if answer is None:
            return None
        servers = tuple(map(server_from_wire, answer.servers))
        return KnownCluster(tuple(map(line_from_wire, answer.lines)), servers)

    async def report(self, address: str) -> Report | None:
        request = pb.StatusRequest(brief=True)
        status = await self._call(address, "status", request, self._config.call_limit_s)
        if status is None or status.state != "serving":
            return None
        return self._monitors.as_loaded(report_from_wire(status))

    async def move(self, address: str, move: Move) -> OrderAnswer | None:
        world = self._monitors.cluster.world
        world.trace("planned", move, move.why)
        self._monitors.expect(move)
        request = move_to_wire(move)
        answer = await self._call(address, "move", request, self._config.order_limit_s)
        if answer is None:
            return None
        if answer.accepted:
            world.count(planned(move.kind))
        world.trace("planned order", "accepted" if answer.accepted else answer.reason)
        return OrderAnswer(answer.accepted, answer.reason, answer.id)

    async def keep_only(self, addresses: Iterable[str]) -> None:
        return

    async def _call(self, address: str, method: str, request: Message, limit_s: float) -> Any:
        try:
            network = self._monitors.cluster.network
            return await network.call(address, method, request, limit_s)
        except UTupleError:
            return None
