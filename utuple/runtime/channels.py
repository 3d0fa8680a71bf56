"""The pool of channels of one program: one for each address, made at the first call and shared by all calls there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import grpc

from utuple.runtime.channel import open_channel
from utuple.runtime.tasks import Tasks
from utuple.transport.peer import Tls

T = TypeVar("T")


class Channels:
    def __init__(
        self, idle_s: float | None = None, tls_for: Callable[[str], Tls | None] = lambda _: None
    ) -> None:
        """A channel that nobody has borrowed for `idle_s` is closed; without it, channels are closed by `keep_only` and
        `close` alone. `tls_for` says how an address is spoken to; None: as the context's own credentials say."""
        self._idle_s = idle_s
        self._tls_for = tls_for
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._borrowed: Counter[str] = Counter()
        self._idle: dict[str, asyncio.TimerHandle] = {}
        self._closing = Tasks()

    def get(self, address: str) -> grpc.aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = open_channel(address, self._tls_for(address))
        return channel

    @asynccontextmanager
    async def borrowed(self, address: str) -> AsyncIterator[grpc.aio.Channel]:
        """Not closed for idleness meanwhile."""
        self._borrowed[address] += 1
        if (timer := self._idle.pop(address, None)) is not None:
            timer.cancel()
        try:
            yield self.get(address)
        finally:
            self._borrowed[address] -= 1
            if not self._borrowed[address]:
                del self._borrowed[address]
                self._close_later(address)

    def _close_later(self, address: str) -> None:
        if self._idle_s is not None and address in self._channels:
            loop = asyncio.get_running_loop()
            self._idle[address] = loop.call_later(self._idle_s, self._close_idle, address)

    def _close_idle(self, address: str) -> None:
        self._idle.pop(address, None)
        channel = self._channels.pop(address, None)
        if channel is not None:
            self._closing.start(channel.close(), f"closing {address}")

    async def answer(
        self, address: str, ask: Callable[[grpc.aio.Channel], Awaitable[T]]
    ) -> T | None:
        """None: no good answer came in time."""
        try:
            return await ask(self.get(address))
        except grpc.aio.AioRpcError:
            return None

    async def keep_only(self, addresses: Iterable[str]) -> None:
        """Close the channels to all others: they are forgotten, or have moved."""
        for address in self._channels.keys() - set(addresses):
            if (timer := self._idle.pop(address, None)) is not None:
                timer.cancel()
            await self._channels.pop(address).close()

    async def close(self) -> None:
        await self.keep_only(())
