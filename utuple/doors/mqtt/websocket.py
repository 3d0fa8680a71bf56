"""MQTT over WebSocket (MQTT 5, section 6): binary messages whose bytes are the same stream as over TCP."""

from __future__ import annotations

import asyncio

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from utuple.doors.mqtt.connection import Connection
from utuple.doors.mqtt.door import Door
from utuple.doors.tls import Listening, shown_by
from utuple.runtime.tasks import Tasks

_SUBPROTOCOL = Subprotocol("mqtt")


class _Pipe:
    """A WebSocket, as a connection sees it. What is written waits here until the socket has taken it."""

    def __init__(self, socket: ServerConnection, connection: Connection, limit_bytes: int) -> None:
        self._socket = socket
        self._connection = connection
        self._limit_bytes = limit_bytes
        self._tasks = Tasks()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self.readable = asyncio.Event()
        self.readable.set()

    def write(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > self._limit_bytes:
            self._connection.pause_writing()
        if self._sending is None or self._sending.done():
            self._sending = self._tasks.start(self._send(), "sending to a websocket")

    async def _send(self) -> None:
        try:
            while self._waiting:
                data = b"".join(self._waiting)
                self._waiting.clear()
                await self._socket.send(data)
                self._waiting_bytes -= len(data)
                if (
                    not self._connection.is_writable
                    and self._waiting_bytes <= self._limit_bytes // 4
                ):
                    self._connection.resume_writing()
        except ConnectionClosed:
            """The reading side hears of it too."""

    def close(self) -> None:
        self._tasks.start(self._close(), "closing a websocket")

    async def _close(self) -> None:
        if self._sending is not None:
            await asyncio.wait([self._sending])
        await self._socket.close()

    def abort(self) -> None:
        self._socket.transport.abort()

    def pause_reading(self) -> None:
        self.readable.clear()

    def resume_reading(self) -> None:
        self.readable.set()


async def listen(door: Door, host: str, port: int, tls: Listening | None) -> Server:
    async def handle(socket: ServerConnection) -> None:
        if socket.subprotocol != _SUBPROTOCOL:
            await socket.close(1002, "the subprotocol is mqtt")
            return
        connection = Connection(door)
        pipe = _Pipe(socket, connection, door.limits.write_buffer_bytes)
        peer = ":".join(map(str, (socket.remote_address or ("?",))[:2]))
        shown = shown_by(socket.transport.get_extra_info("ssl_object"))
        connection.begin(pipe, peer, shown)
        try:
            async for data in socket:
                if isinstance(data, str):  # only binary frames (section 6.0)
                    break
                connection.data_received(data)
                await pipe.readable.wait()
        except ConnectionClosed:
            """Said below."""
        finally:
            connection.connection_lost(None)

    limit_bytes = 2 * door.limits.packet_bytes
    return await serve(
        handle,
        host,
        port,
        subprotocols=[_SUBPROTOCOL],
        max_size=limit_bytes,
        compression=None,
        ssl=None if tls is None else tls.context,
    )
