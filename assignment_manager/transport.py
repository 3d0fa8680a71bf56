"""Calls to other managers. None or False means: no good answer in time; the caller has another way."""

from __future__ import annotations

from collections.abc import Iterable

from assignment_manager.config import Config
from utuple.runtime.channels import Channels
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import AssignmentStub


class Managers:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._channels = Channels()

    async def gossip(self, address: str, rumour: pb.Rumour) -> pb.Rumour | None:
        limit_s = self._config.gossip_timeout_s
        return await self._channels.answer(
            address, lambda channel: AssignmentStub(channel).Gossip(rumour, timeout=limit_s)
        )

    async def lookup(self, address: str, keys: list[int]) -> pb.LookupAnswer | None:
        request = pb.LookupRequest(keys=keys, forwarded=True)
        limit_s = self._config.ask_s
        return await self._channels.answer(
            address, lambda channel: AssignmentStub(channel).Lookup(request, timeout=limit_s)
        )

    async def pass_on(self, address: str, announcement: pb.Announcement) -> bool:
        limit_s = self._config.pass_on_s
        heard = await self._channels.answer(
            address, lambda channel: AssignmentStub(channel).Announce(announcement, timeout=limit_s)
        )
        return heard is not None

    async def keep_only(self, addresses: Iterable[str]) -> None:
        """Close the channels to managers that are forgotten or have moved."""
        await self._channels.keep_only(addresses)

    async def close(self) -> None:
        await self._channels.close()
