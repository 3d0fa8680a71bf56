"""The programs of a cluster in virtual shells: what `__main__` of each does, on the virtual network.

Only what speaks gRPC is replaced: the announcer, the seams to other servers, managers and the sCA server's
calls (sca.py). Engine, cores and machines are the real ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from google.protobuf.message import Message

from assignment_manager.config import Config as ManagerConfig
from assignment_manager.service import Service as ManagerService
from tests.virtual.programs.trust import Trust
from tests.virtual.world.disk import Disk
from tests.virtual.world.loop import LIFE
from tests.virtual.world.network import Network
from utuple.cluster.line import Line, ServerInfo
from utuple.errors import OutcomeUnknown, Unavailable, UTupleError
from utuple.runtime.clock import now_us
from utuple.runtime.trust.exchange import GrantsExchange
from utuple.security.signed import Signed
from utuple.server.calls.handlers import ServerCalls
from utuple.server.config import ServerConfig
from utuple.server.judging import Judge
from utuple.server.trusting import keep_grants
from utuple.server.writing.engine import Engine
from utuple.store.contract import StoreUnavailable
from utuple.wire import utuple_pb2 as pb
from utuple.wire.announcing import Announcements, told
from utuple.wire.cluster import server_from_wire

ANNOUNCE_S = 6.0
ANSWER_S = 1.0


def address_of(name: str) -> str:
    return f"{name}:1"


def publishing(exchange: GrantsExchange) -> Callable[[pb.SignedGrants], Awaitable[pb.Published]]:
    """As utuple/runtime/trust/service.py."""

    async def publish(message: pb.SignedGrants) -> pb.Published:
        await exchange.hear(Signed(message.content, message.signature))
        return pb.Published(number=exchange.number)

    return publish


class Announcer:
    """As utuple/runtime/announcer.py: to a few managers, again and again, and at once when a line changes; to all of them as long
    as none of the few hears."""

    def __init__(
        self,
        network: Network,
        managers: Iterable[str],
        own: Callable[[], ServerInfo],
        lines: Callable[[], Iterable[Line]],
        grants: GrantsExchange | None = None,
        *,
        others: Callable[[], Iterable[ServerInfo]] = tuple,
    ) -> None:
        self._network = network
        self._managers = list(managers)
        self._grants = grants
        self._numbers: dict[str, int] = {}
        """Of the grants that managers hold."""
        number = (lambda: grants.number) if grants is not None else (lambda: 0)
        self._announcements = Announcements(own, lines, others, number)
        self._wakes = [asyncio.Event() for _ in self._managers]
        self._own = own
        self._told: frozenset[str] = frozenset()
        self._hearing: set[str] = set()
        self.servers: dict[str, ServerInfo] = {}

    def start(self) -> list[asyncio.Task[None]]:
        pairs = zip(self._managers, self._wakes, strict=True)
        return [asyncio.create_task(self._keep_telling(*pair)) for pair in pairs]

    def now(self) -> None:
        for wake in self._wakes:
            wake.set()

    async def _keep_telling(self, manager: str, wake: asyncio.Event) -> None:
        last = pb.Heard()
        while True:
            wake.clear()
            if manager in self._told or not self._told & self._hearing:
                last = await self._tell(manager, last)
            try:
                async with asyncio.timeout(ANNOUNCE_S):
                    await wake.wait()
            except TimeoutError:
                continue

    async def _tell(self, manager: str, last: pb.Heard) -> pb.Heard:
        try:
            opening = self._announcements.opening(last)
            if self._grants is not None:
                offered = self._grants.offer(self._numbers.get(manager, 1 << 62))
                if offered is not None:
                    opening.grants.CopyFrom(offered)
            last = heard = await self._say(manager, opening)
            if heard.wanted:
                for portion in self._announcements.following(heard):
                    last = await self._say(manager, portion)
        except (Unavailable, OutcomeUnknown):
            self._hearing.discard(manager)
        else:
            self._hearing.add(manager)
        return last

    async def _say(self, manager: str, message: pb.Announcement) -> Any:
        heard = await self._network.call(manager, "announce", message, ANSWER_S)
        if self._grants is not None:
            self._numbers[manager] = heard.grants_number
            await self._grants.hear_if_any(heard)
        for server in map(server_from_wire, heard.servers):
            known = self.servers.get(server.name)
            if known is None or server.since_us >= known.since_us:
                self.servers[server.name] = server
        if heard.managers:
            names = told(self._own(), (manager.name for manager in heard.managers))
            self._told = frozenset(map(address_of, names))
        return heard


# --- uTupleServer ----------------------------------------------------------------------------------------


class VirtualServerTransport:
    """The seam to other uTupleServers."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def call(self, address: str, method: str, request: Message, timeout_s: float) -> Any:
        return await self._network.call(address, method, request, timeout_s)


class ServerProgram:
    """Everything of one life of a uTupleServer."""

    def __init__(self, network: Network, disk: Disk, config: ServerConfig, dice: Random) -> None:
        self.engine = Engine(config, disk.open(), VirtualServerTransport(network))
        self.engine.random_bits = lambda: dice.getrandbits(74)
        self.calls: Any = ServerCalls(self.engine, config.listen)
        self._network = network
        self._config = config
        self._grants: GrantsExchange | None = None
        if network.trust is not None:
            self._grants = self._secured(network.trust)

    def _secured(self, trust: Trust) -> GrantsExchange:
        """As utuple/server/trusting.py."""
        engine, life = self.engine, LIFE.get()
        assert life is not None
        guard, exchange = trust.guarded(life, partial(keep_grants, engine))
        engine.judge = Judge(guard, guard.audit.refused, guard.restore)
        guard.when_changed.append(engine.delivering.judge_again)
        self.calls.publish = publishing(exchange)
        return exchange

    async def run(self) -> None:
        config, engine = self._config, self.engine
        own = ServerInfo(config.name, config.listen, "server", now_us())
        lines = lambda: engine.lines  # noqa: E731
        announcer = Announcer(self._network, config.managers, lambda: own, lines, self._grants)
        engine.heard = announcer.servers
        engine.on_change = announcer.now
        while True:
            try:
                await engine.start()
                break
            except StoreUnavailable:
                await asyncio.sleep(engine.config.reopen_s * 5)
        self._network.listen(config.listen, self.calls)
        telling = announcer.start()
        done, _ = await asyncio.wait((*engine.loops, *telling), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        raise AssertionError("a loop of the server ended")


# --- assignment manager ----------------------------------------------------------------------------------


class VirtualManagers:
    """Calls to other managers: None or False means no good answer in time."""

    def __init__(self, network: Network, config: ManagerConfig) -> None:
        self._network = network
        self._config = config

    async def gossip(self, address: str, rumour: pb.Rumour) -> Any:
        return await self._call(address, "gossip", rumour, self._config.gossip_timeout_s)

    async def lookup(self, address: str, keys: list[int]) -> Any:
        request = pb.LookupRequest(keys=keys, forwarded=True)
        return await self._call(address, "lookup", request, self._config.ask_s)

    async def pass_on(self, address: str, announcement: pb.Announcement) -> bool:
        heard = await self._call(address, "announce", announcement, self._config.pass_on_s)
        return heard is not None

    async def keep_only(self, addresses: Iterable[str]) -> None:
        return

    async def close(self) -> None:
        return

    async def _call(self, address: str, method: str, request: Message, limit_s: float) -> Any:
        try:
            return await self._network.call(address, method, request, limit_s)
        except UTupleError:
            return None


async def run_manager(network: Network, config: ManagerConfig, dice: Random) -> None:
    own = ServerInfo(config.name, config.listen, "manager", now_us())
    exchange = None
    if network.trust is not None:
        life = LIFE.get()
        assert life is not None
        _, exchange = network.trust.guarded(life)
    service: Any = ManagerService(config, own, dice, exchange)
    if exchange is not None:
        service.publish = publishing(exchange)
    service._managers = VirtualManagers(network, config)
    network.listen(config.listen, service)
    await service.run()
