"""NATS core: publishes that nobody acknowledges and nothing keeps; read by a subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import nats

from benchmarks.rivals.client import Handler
from utuple.local.layout import HOST

ABOUT = "ea"


class CoreNatsClient:
    def __init__(self, port: int) -> None:
        self._port = port
        self._nats: Any = None

    async def open(self) -> None:
        self._nats = await nats.connect(f"nats://{HOST}:{self._port}")

    async def publish(self, payloads: Iterable[bytes]) -> None:
        """The server has them all when this returns."""
        for payload in payloads:
            await self._nats.publish(ABOUT, payload)
        await self._nats.flush()

    async def publish_one(self, payload: bytes) -> None:
        await self._nats.publish(ABOUT, payload)

    async def subscribe(self, handler: Handler) -> None:
        async def handle(message: Any) -> None:
            handler(message.data)

        await self._nats.subscribe(ABOUT, cb=handle)
        await self._nats.flush()

    async def close(self) -> None:
        if self._nats is not None:
            await self._nats.close()
