"""Calls to other uTupleServers over gRPC. Connections live as long as a move needs them: in a steady state
servers have nothing to say to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import grpc

from utuple.errors import Unavailable
from utuple.runtime.channels import Channels
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import error_from
from utuple.wire.utuple_pb2_grpc import ServerStub

if TYPE_CHECKING:
    from utuple.wire.utuple_pb2_grpc import ServerAsyncStub

T = TypeVar("T")

_IDLE_S = 10.0
"""A connection unused for so long is closed."""
_CONNECT_S = 2.0


class GrpcOthers:
    def __init__(self) -> None:
        self._channels = Channels(_IDLE_S)

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
        await self._channels.close()

    async def _call(
        self, address: str, call: Callable[[ServerAsyncStub], Awaitable[T]], sent: str
    ) -> T:
        async with self._channels.borrowed(address) as channel:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    await channel.channel_ready()
                return await call(ServerStub(channel))
            except TimeoutError:
                raise Unavailable(f"{address} does not take the connection") from None
            except grpc.aio.AioRpcError as error:
                raise error_from(error, sent=sent) from None
