"""The calls an sCA server makes: what answers comes as values, what does not as an error of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import grpc

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.shares import Shares
from utuple.errors import Unavailable
from utuple.model.columns import Columns
from utuple.runtime.channel import open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, server_from_wire, server_to_wire
from utuple.wire.codec import columns_from_wire
from utuple.wire.status import error_from
from utuple.wire.utuple_pb2_grpc import AssignmentStub, ScaStub, ServerStub


async def fetch_table(manager: str, limit_s: float) -> tuple[list[Line], list[ServerInfo]]:
    async with open_channel(manager) as channel:
        try:
            answer = await AssignmentStub(channel).Table(pb.TableRequest(), timeout=limit_s)
        except grpc.aio.AioRpcError as error:
            raise error_from(error, sent=f"Table to {manager}") from None
    lines = [line_from_wire(line) for line in answer.lines]
    return lines, [server_from_wire(server) for server in answer.servers]


async def meet(
    peer: ServerInfo, own: str, infos: Iterable[ServerInfo], limit_s: float
) -> list[ServerInfo]:
    """Tell another sCA server what is known of all of them, and be told."""
    request = pb.ScaServers(name=own, servers=map(server_to_wire, infos))
    async with open_channel(peer.address) as channel:
        try:
            answer = await ScaStub(channel).Meet(request, timeout=limit_s)
        except grpc.aio.AioRpcError as error:
            raise error_from(error, sent=f"Meet to {peer.name}") from None
    if answer.name != peer.name:
        raise Unavailable(f"{peer.address} is {answer.name}, not {peer.name}")
    return [server_from_wire(server) for server in answer.servers]


class ServerCalls:
    """A uTupleServer, for as long as it is read."""

    def __init__(self, server: ServerInfo, channel: grpc.aio.Channel, idle_s: float) -> None:
        self._server = server
        self._stub = ServerStub(channel)
        self._idle_s = idle_s

    async def lines(self) -> Sequence[Line]:
        """Its own lines. Another server by now at that address must not be taken for this one."""
        try:
            status = await self._stub.Status(pb.StatusRequest(), timeout=self._idle_s)
        except grpc.aio.AioRpcError as error:
            raise error_from(error, sent=f"Status to {self._server.name}") from None
        if status.name != self._server.name:
            raise Unavailable(f"{self._server.address} is {status.name}, not {self._server.name}")
        return [line_from_wire(line) for line in status.lines]

    async def devices(self, shares: Shares, own: str) -> AsyncIterator[Columns]:
        """Every CF it has that belongs to this sCA server, to the end, or an error."""
        call = self._stub.Devices(pb.DevicesRequest(scas=shares.names, share_of=own))
        try:
            while True:
                async with asyncio.timeout(self._idle_s):
                    message = await call.read()
                if not isinstance(message, pb.Columns):
                    return  # an end with an error is raised by `read`
                yield columns_from_wire(message)[0]
        except grpc.aio.AioRpcError as error:
            raise error_from(error, sent=f"Devices to {self._server.name}") from None
        except TimeoutError:
            raise Unavailable(
                f"Devices of {self._server.name}: nothing for {self._idle_s:g} s"
            ) from None
        finally:
            call.cancel()


@asynccontextmanager
async def calls_to(server: ServerInfo, idle_s: float) -> AsyncIterator[ServerCalls]:
    async with open_channel(server.address) as channel:
        yield ServerCalls(server, channel, idle_s)
