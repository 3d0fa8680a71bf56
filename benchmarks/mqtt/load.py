"""python -m benchmarks.mqtt.load SETTINGS: many MQTT clients (3.1.1) in one process, that cost as little as can be. What is
measured is the server they talk to."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.child import Answer, answer_questions, settings
from utuple.doors.mqtt.codec.packets import V311, Connect, Publish
from utuple.doors.mqtt.codec.writing import write
from utuple.errors import Unavailable
from utuple.local.layout import HOST
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

_ACK_BYTES = 4
"""Of a PUBACK, and of a CONNACK."""
_WARM_S = 1.0
_IDS = 60_000
_LIMIT_S = 120.0


class Publisher(asyncio.Protocol):
    """Keeps `window` publishes waiting for their acknowledgements; with 0 it only connects."""

    def __init__(self, number: int, window: int) -> None:
        self._number = number
        self._window = window
        self._rest = 0
        self._packet_id = 0
        self._transport: asyncio.Transport | None = None
        self.connected = asyncio.get_running_loop().create_future()
        self.acknowledged = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        client_id = f"bench-{self._window}-{self._number}"
        transport.write(write(Connect(client_id, V311, keep_alive_s=600), V311))

    def data_received(self, data: bytes) -> None:
        size = self._rest + len(data)
        count, self._rest = divmod(size, _ACK_BYTES)
        if count and not self.connected.done():
            self.connected.set_result(None)
            count -= 1
            self._publish(self._window)
        self.acknowledged += count
        self._publish(count)

    def _publish(self, count: int) -> None:
        out = []
        for _ in range(count if self._window else 0):
            self._packet_id = self._packet_id % _IDS + 1
            payload = b'{"w":%d,"n":%d}' % (self._packet_id, self._number)
            name = f"plug/power/house-{self._number}"
            out.append(write(Publish(name, payload, 1, packet_id=self._packet_id), V311))
        if out and self._transport is not None:
            self._transport.write(b"".join(out))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.connected.done():
            self.connected.set_exception(Unavailable("the server closed a connection"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Load:
    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[Publisher] = []

    async def _connect(self, count: int, window: int) -> list[Publisher]:
        loop = asyncio.get_running_loop()
        made = []
        for number in range(count):
            made_one = partial(Publisher, number, window)
            _, publisher = await loop.create_connection(made_one, HOST, self._port)
            made.append(publisher)
        async with asyncio.timeout(_LIMIT_S):
            await asyncio.gather(*(publisher.connected for publisher in made))
        return made

    async def publish(self, question: Mapping[str, Any]) -> Answer:
        publishers = await self._connect(question["connections"], question["window"])
        await asyncio.sleep(_WARM_S)
        before, began_s = sum(one.acknowledged for one in publishers), monotonic_s()
        await asyncio.sleep(question["seconds"])
        count, took_s = (
            sum(one.acknowledged for one in publishers) - before,
            monotonic_s() - began_s,
        )
        for one in publishers:
            one.close()
        return {"per_s": count / took_s, "count": max(1, count + before)}

    async def idle(self, question: Mapping[str, Any]) -> Answer:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._open = await self._connect(question["connections"], 0)
        return {"connections": len(self._open), "files": soft}


async def main(stop: asyncio.Event) -> None:
    load = Load(settings()["port"])
    await answer_questions({"publish": load.publish, "idle": load.idle}, stop)


if __name__ == "__main__":
    sys.exit(run_program("mqtt-load", main))
