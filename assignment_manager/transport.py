"""Calls to other managers. None or False means: no good answer in time; the caller has another way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import grpc

from assignment_manager.config import Config
from utuple.runtime.channel import open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import AssignmentStub

Answer = TypeVar("Answer")


class Managers:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def gossip(self, address: str, rumour: pb.Rumour) -> pb.Rumour | None:
        limit_s = self._config.gossip_timeout_s
        return await self._call(
            address, lambda channel: AssignmentStub(channel).Gossip(rumour, timeout=limit_s)
        )

    async def lookup(self, address: str, keys: list[int]) -> pb.LookupAnswer | None:
        request = pb.LookupRequest(keys=keys, forwarded=True)
        limit_s = self._config.ask_s
        return await self._call(
            address, lambda channel: AssignmentStub(channel).Lookup(request, timeout=limit_s)
        )

    async def pass_on(self, address: str, announcement: pb.Announcement) -> bool:
        limit_s = self._config.pass_on_s
        heard = await self._call(
            address, lambda channel: AssignmentStub(channel).Announce(announcement, timeout=limit_s)
        )
        return heard is not None

    async def keep_only(self, addresses: Iterable[str]) -> None:
        """Close the channels to managers that are forgotten or have moved."""
        for address in self._channels.keys() - set(addresses):
            await self._channels.pop(address).close()

    async def close(self) -> None:
        await self.keep_only(())

    async def _call(
        self, address: str, ask: Callable[[grpc.aio.Channel], Awaitable[Answer]]
    ) -> Answer | None:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = open_channel(address)
        try:
            return await ask(channel)
        except grpc.aio.AioRpcError:
            return None
