"""The sCA server in a virtual shell: its service and its refilling, without gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sca_server.config import Config
from sca_server.core import Core
from sca_server.filling import refilling
from sca_server.filling.refill import Refill, Refills
from sca_server.filling.refilling import Refilling
from sca_server.judging import ScaJudge
from sca_server.service import ScaService
from sca_server.shares import ScaShares
from sca_server.sharing import meeting
from sca_server.sharing.awake import Awake
from sca_server.sharing.meeting import Sharing
from sca_server.sharing.membership import Membership
from sca_server.sharing.tenure import Tenure
from tests.virtual.programs.servers import Announcer, publishing
from tests.virtual.world.loop import LIFE
from tests.virtual.world.network import Network
from tests.virtual.world.streams import streamed
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.shares import Shares
from utuple.errors import UTupleError
from utuple.model.columns import Columns
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.trust.guard import Caller
from utuple.security.identity import Identity
from utuple.transport.duplex import MessageSink
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, server_from_wire, server_to_wire
from utuple.wire.codec import columns_from_wire


class _Aborted(Exception):
    """gRPC ends a call so; what it was for is its context."""


class _Context:
    """What the sCA server's shell knows of gRPC."""

    def __init__(self, sink: MessageSink, caller: Identity | None = None) -> None:
        self._sink = sink
        self.identity = None if caller is None else Caller(caller, 0, "")

    def send(self, raw: bytes) -> None:
        self._sink.send(pb.ToReader.FromString(raw))

    @property
    def is_writable(self) -> bool:
        return self._sink.is_writable

    def when_writable(self, resume: Callable[[], None]) -> None:
        self._sink.when_writable(resume)

    async def drained(self) -> bool:
        return await self._sink.drained()

    async def abort(self, *_: object) -> None:
        raise _Aborted


class _ScaCalls:
    """The calls of the sCA server, as messages."""

    def __init__(self, service: ScaService) -> None:
        self._service = service

    async def sca_register(
        self, request: pb.ScaRegisterRequest, caller: Identity | None = None
    ) -> pb.ScaRegisterAnswer:
        return await self._service._register(request.SerializeToString(), caller)

    async def sca_command(
        self, request: pb.SimpleCommands, caller: Identity | None = None
    ) -> pb.SimpleReceipts:
        return await self._service._command(request.SerializeToString(), caller)

    async def meet(self, request: pb.ScaServers, caller: Identity | None = None) -> pb.ScaServers:
        return await self._service._meet(request.SerializeToString(), caller)

    async def deliver(
        self,
        messages: AsyncIterator[pb.FromReader],
        sink: MessageSink,
        caller: Identity | None = None,
    ) -> None:
        async def said() -> AsyncIterator[bytes]:
            async for message in messages:
                yield message.SerializeToString()

        try:
            await self._service._deliver(said(), _Context(sink, caller))  # type: ignore[arg-type]
        except _Aborted as aborted:
            if isinstance(aborted.__context__, UTupleError):
                raise aborted.__context__ from None
            raise


class _ScaTransport:
    """The calls an sCA server makes; takes the place of sca_server/transport.py."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def fetch_table(
        self, manager: str, limit_s: float
    ) -> tuple[list[Line], list[ServerInfo]]:
        answer = await self._network.call(manager, "table", pb.TableRequest(), limit_s)
        lines = [line_from_wire(line) for line in answer.lines]
        return lines, [server_from_wire(server) for server in answer.servers]

    async def meet(
        self, peer: ServerInfo, own: str, infos: Iterable[ServerInfo], limit_s: float
    ) -> list[ServerInfo]:
        request = pb.ScaServers(name=own, servers=map(server_to_wire, infos))
        answer = await self._network.call(peer.address, "meet", request, limit_s)
        return [server_from_wire(server) for server in answer.servers]

    @asynccontextmanager
    async def calls_to(self, server: ServerInfo, idle_s: float) -> AsyncIterator[_ServerRead]:
        yield _ServerRead(self._network, server, idle_s)


class _ServerRead:
    def __init__(self, network: Network, server: ServerInfo, idle_s: float) -> None:
        self._network = network
        self._server = server
        self._idle_s = idle_s

    async def lines(self) -> Sequence[Line]:
        address = self._server.address
        status = await self._network.call(address, "status", pb.StatusRequest(), self._idle_s)
        return [line_from_wire(line) for line in status.lines]

    async def devices(self, shares: Shares, own: str) -> AsyncIterator[Columns]:
        request = pb.DevicesRequest(scas=shares.names, share_of=own)
        address = self._server.address
        async for message in streamed(self._network, address, "devices", request, self._idle_s):
            yield columns_from_wire(message)[0]


@contextmanager
def sca_servers_call_by(network: Network) -> Iterator[None]:
    """The one seam that is a module: what it holds is replaced for as long as a trial takes."""
    users = [vars(module) for module in (refilling, meeting)]
    kept = [names["transport"] for names in users]
    for names in users:
        names["transport"] = _ScaTransport(network)
    try:
        yield
    finally:
        for names, transport in zip(users, kept, strict=True):
            names["transport"] = transport


class ScaProgram:
    """Everything of one life of an sCA server."""

    def __init__(self, network: Network, config: Config) -> None:
        self._network = network
        self._config = config
        own = ServerInfo(config.name, config.listen, "sca", now_us())
        self.core = Core(
            config.limits,
            Tenure(config.name, config.tenure, monotonic_s()),
            Awake(2 * config.meet_every_s, monotonic_s(), late_s=config.silent_s),
        )
        refill = Refill(first_retry_s=config.first_retry_s, longest_retry_s=config.longest_retry_s)
        self._refills = Refills(refill)
        judge, exchange, guard = None, None, None
        if network.trust is not None:
            life = LIFE.get()
            assert life is not None
            guard, exchange = network.trust.guarded(life)
            shares = ScaShares(config.shares, self.core.index.kept_by)
            judge = ScaJudge(guard, guard.audit.refused, shares)
        self._service = ScaService(config, self.core, self._refills, own, judge)
        calls: Any = _ScaCalls(self._service)
        self._calls = calls
        if exchange is not None and guard is not None:
            guard.when_changed.append(self._service.judge_again)
            calls.publish = publishing(exchange)
        self._membership = membership = Membership(own, silent_s=config.silent_s)
        self._announcer = Announcer(
            *(network, config.managers, lambda: membership.own, tuple, exchange),
            others=lambda: membership.gone,
        )
        self._sharing = Sharing(
            *(config, self.core, membership, self._refills),
            wake=self._service.wake,
            announce=self._announcer.now,
        )
        self._service.when_met(self._sharing.met)

    async def run(self) -> None:
        config = self._config
        self._network.listen(config.listen, self._calls)
        refilling_ = Refilling(
            *(config, self.core, self._refills, self._sharing), lambda: config.managers
        )
        done, _ = await asyncio.wait(
            (
                asyncio.create_task(refilling_.run()),
                asyncio.create_task(self._sharing.run()),
                asyncio.create_task(self._service.keep_up()),
                *self._announcer.start(),
            ),
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in done:
            task.result()

    async def leave(self) -> None:
        """As `__main__` does when it is asked to stop."""
        await self._sharing.leave()
        self._service.stop()
