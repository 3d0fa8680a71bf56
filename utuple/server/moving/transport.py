"""Calls to other uTupleServers over gRPC. Connections live as long as a move needs them: in a steady state
servers have nothing to say to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf.message import Message

from utuple.cluster.line import ServerInfo
from utuple.errors import Unavailable
from utuple.runtime.channels import Channels
from utuple.runtime.trust.tls import own_tls
from utuple.wire.status import error_from
from utuple.wire.utuple_pb2_grpc import ServerStub

_IDLE_S = 10.0
"""A connection unused for so long is closed."""
_CONNECT_S = 2.0


class GrpcServerTransport:
    def __init__(self) -> None:
        self.known: Mapping[str, ServerInfo] = {}
        """Who is said to be where: whoever else answers there is not spoken to, on a secured cluster."""
        self._channels = Channels(_IDLE_S, lambda address: own_tls(self._name_at(address)))

    def _name_at(self, address: str) -> str | None:
        return next((name for name, one in self.known.items() if one.address == address), None)

    async def call(self, address: str, method: str, request: Message, timeout_s: float) -> Any:
        async with self._channels.borrowed(address) as channel:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    await channel.channel_ready()
                ask = getattr(ServerStub(channel), method.capitalize())
                return await ask(request, timeout=timeout_s)
            except TimeoutError:
                raise Unavailable(f"{address} does not take the connection") from None
            except grpc.aio.AioRpcError as error:
                raise error_from(error, sent=method) from None

    async def close(self) -> None:
        await self._channels.close()
