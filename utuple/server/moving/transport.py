"""Calls to other uTupleServers over gRPC. Connections live as long as a move needs them: in a steady state
servers have nothing to say to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import grpc

from utuple.errors import Unavailable
from utuple.runtime.channel import open_channel
from utuple.runtime.tasks import Tasks
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import error_from
from utuple.wire.utuple_pb2_grpc import ServerStub

if TYPE_CHECKING:
    from utuple.wire.utuple_pb2_grpc import ServerAsyncStub

T = TypeVar("T")

_IDLE_S = 10.0
"""A connection unused for so long is closed."""
_CONNECT_S = 2.0


@dataclass(slots=True, eq=False)
class _Way:
    channel: grpc.aio.Channel
    stub: ServerAsyncStub
    calls: int = 0
    idle: asyncio.TimerHandle | None = None


class GrpcOthers:
    def __init__(self) -> None:
        self._open: dict[str, _Way] = {}
        self._closing = Tasks()

    async def learn(
        self, address: str, request: pb.LearnRequest, timeout_s: float
    ) -> pb.LearnAnswer:
        return await self._call(address, lambda s: s.Learn(request, timeout=timeout_s), "learn")

    async def ready(
        self, address: str, request: pb.ReadyRequest, timeout_s: float
    ) -> pb.ReadyAnswer:
        return await self._call(address, lambda s: s.Ready(request, timeout=timeout_s), "ready")

    async def hear(self, address: str, request: pb.HearRequest, timeout_s: float) -> pb.HearAnswer:
        return await self._call(address, lambda s: s.Hear(request, timeout=timeout_s), "hear")

    async def forget(
        self, address: str, request: pb.ForgetRequest, timeout_s: float
    ) -> pb.ForgetAnswer:
        return await self._call(address, lambda s: s.Forget(request, timeout=timeout_s), "forget")

    async def vacant(
        self, address: str, request: pb.VacantRequest, timeout_s: float
    ) -> pb.VacantAnswer:
        return await self._call(address, lambda s: s.Vacant(request, timeout=timeout_s), "vacant")

    async def ship(self, address: str, request: pb.ShipRequest, timeout_s: float) -> pb.ShipAnswer:
        return await self._call(address, lambda s: s.Ship(request, timeout=timeout_s), "ship")

    async def take(self, address: str, request: pb.TakeRequest, timeout_s: float) -> pb.TakeAnswer:
        return await self._call(address, lambda s: s.Take(request, timeout=timeout_s), "take")

    async def close(self) -> None:
        for way in self._open.values():
            if way.idle is not None:
                way.idle.cancel()
            await way.channel.close()
        self._open.clear()

    async def _call(
        self, address: str, call: Callable[[ServerAsyncStub], Awaitable[T]], sent: str
    ) -> T:
        way = self._way(address)
        way.calls += 1
        try:
            async with asyncio.timeout(_CONNECT_S):
                await way.channel.channel_ready()
            return await call(way.stub)
        except TimeoutError:
            raise Unavailable(f"{address} does not take the connection") from None
        except grpc.aio.AioRpcError as error:
            raise error_from(error, sent=sent) from None
        finally:
            way.calls -= 1
            self._rest(address, way)

    def _way(self, address: str) -> _Way:
        way = self._open.get(address)
        if way is None:
            channel = open_channel(address)
            way = self._open[address] = _Way(channel, ServerStub(channel))
        if way.idle is not None:
            way.idle.cancel()
            way.idle = None
        return way

    def _rest(self, address: str, way: _Way) -> None:
        if way.calls == 0:
            loop = asyncio.get_running_loop()
            way.idle = loop.call_later(_IDLE_S, self._close_idle, address, way)

    def _close_idle(self, address: str, way: _Way) -> None:
        if way.calls == 0 and self._open.get(address) is way:
            del self._open[address]
            self._closing.start(way.channel.close(), f"closing {address}")
