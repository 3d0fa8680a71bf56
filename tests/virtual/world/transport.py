"""The client's Transport on the virtual network."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import cast

from tests.virtual.world.network import CONNECT_S, Network
from tests.virtual.world.streams import VirtualStream, opened, streamed
from utuple.wire import utuple_pb2 as pb


class VirtualTransport:
    def __init__(self, network: Network) -> None:
        self._network = network

    def expect(self, address: str, name: str) -> None:
        """Nobody shows a certificate here."""

    async def lookup(
        self, address: str, request: pb.LookupRequest, timeout_s: float
    ) -> pb.LookupAnswer:
        answer = await self._network.call(address, "lookup", request, timeout_s)
        return cast(pb.LookupAnswer, answer)

    async def register(
        self, address: str, request: pb.RegisterRequest, timeout_s: float
    ) -> pb.RegisterAnswer:
        answer = await self._network.call(address, "register", request, timeout_s)
        return cast(pb.RegisterAnswer, answer)

    async def command(
        self, address: str, request: pb.CommandRequest, timeout_s: float
    ) -> pb.CommandAnswer:
        answer = await self._network.call(address, "command", request, timeout_s)
        return cast(pb.CommandAnswer, answer)

    async def commanded(
        self, address: str, request: pb.CommandedRequest, timeout_s: float
    ) -> pb.CommandedAnswer:
        answer = await self._network.call(address, "commanded", request, timeout_s)
        return cast(pb.CommandedAnswer, answer)

    def read(self, address: str, request: pb.ReadRequest) -> AsyncGenerator[pb.ReadChunk, None]:
        return streamed(self._network, address, "read", request, CONNECT_S)

    async def sca_register(
        self, address: str, request: pb.ScaRegisterRequest, timeout_s: float
    ) -> pb.ScaRegisterAnswer:
        answer = await self._network.call(address, "sca_register", request, timeout_s)
        return cast(pb.ScaRegisterAnswer, answer)

    async def sca_command(
        self, address: str, request: pb.SimpleCommands, timeout_s: float
    ) -> pb.SimpleReceipts:
        answer = await self._network.call(address, "sca_command", request, timeout_s)
        return cast(pb.SimpleReceipts, answer)

    async def deliver(self, address: str, *, sca: bool) -> VirtualStream:
        return await opened(self._network, address, "deliver", CONNECT_S)

    async def close(self) -> None:
        return
