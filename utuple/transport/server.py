"""A server behind the interface of `grpc.aio.Server`: it listens, and gives each call to its handler."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from utuple.transport.connection import MAX_STREAMS, Connection
from utuple.transport.context import Aborted, Context, Handler, ServerStream
from utuple.transport.frames import (
    PREFACE,
    ErrorCode,
    ProtocolError,
    goaway,
    rst_stream,
)
from utuple.transport.headers import (
    timeout_of,
)
from utuple.transport.status import Status

_log = logging.getLogger("utuple.transport")

_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class _CallDetails:
    """What a generic handler is asked by."""

    method: str
    invocation_metadata: tuple[tuple[str, str], ...] = ()


class ServerConnection(Connection):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._greeted = b""
        self._is_greeted = False
        self._last = 0
        self.is_leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_greeted:
            self._greeted += data
            if not self._greeted.startswith(PREFACE[: len(self._greeted)]):
                self.abort("not HTTP/2")
                return
            if len(self._greeted) < len(PREFACE):
                return
            self._is_greeted = True
            data, self._greeted = self._greeted[len(PREFACE) :], b""
        super().data_received(data)

    def headers_came(self, number: int, block: bytes, *, ends: bool) -> None:
        headers = self.read_headers(block)
        stream = self.streams.get(number)
        if stream is not None:
            stream.on_headers(headers, ends=ends)
            return
        if number <= self._last:
            return  # of a call that is over
        if not number % 2:
            raise ProtocolError("a client's streams have odd numbers")
        self._last = number
        if self.is_leaving or len(self.streams) >= MAX_STREAMS:
            self.write(rst_stream(number, ErrorCode.REFUSED_STREAM))
            return
        self._server.begin(self, number, dict(headers), ends=ends)

    def leave(self) -> None:
        """No more calls."""
        self.is_leaving = True
        self.write(goaway(self._last, ErrorCode.NO_ERROR))

    def lost(self, reason: str) -> None:
        self._server.connections.discard(self)


class Server(grpc.aio.Server):
    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._generic: list[Any] = []
        self._found: dict[str, Handler | None] = {}
        self._sockets: list[socket.socket] = []
        self._listening: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self.connections: set[ServerConnection] = set()

    # --- its life --------------------------------------------------------------------------------

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]
    ) -> None:
        self._generic.extend(generic_rpc_handlers)

    def add_registered_method_handlers(self, service_name: str, method_handlers: Any) -> None:
        """The same ones as generic handlers: a look-up of grpcio's own."""

    def add_insecure_port(self, address: str) -> int:
        host, _, port = address.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host.strip("[]"), int(port)))
        except OSError as error:
            listener.close()
            raise RuntimeError(str(error)) from None
        self._sockets.append(listener)
        return int(listener.getsockname()[1])

    def add_secure_port(self, address: str, server_credentials: Any) -> int:
        raise NotImplementedError("TLS is for what stands before this server")

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for listener in self._sockets:
            listening = await loop.create_server(
                lambda: ServerConnection(self), sock=listener, backlog=_BACKLOG
            )
            self._listening.append(listening)

    async def stop(self, grace: float | None) -> None:
        """No new calls; those that are open have so long to end."""
        for listening in self._listening:
            listening.close()
        for connection in list(self.connections):
            connection.leave()
        if self._tasks and grace:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in list(self.connections):
            connection.close()
        self._ended.set()

    async def wait_for_termination(self, timeout: float | None = None) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    # --- its calls -------------------------------------------------------------------------------

    def begin(
        self, connection: ServerConnection, number: int, headers: dict[str, str], *, ends: bool
    ) -> None:
        stream = ServerStream(connection, number, self._max_message_bytes)
        stream.has_ended = ends
        connection.streams[number] = stream
        handler = self._handler(headers.get(":path", ""))
        if not headers.get("content-type", "").startswith("application/grpc"):
            stream.finish(Status(grpc.StatusCode.INTERNAL, "content-type must be application/grpc"))
        elif handler is None:
            what = f"no method {headers.get(':path', '')}"
            stream.finish(Status(grpc.StatusCode.UNIMPLEMENTED, what))
        else:
            until_s = None
            if "grpc-timeout" in headers:
                until_s = connection.loop.time() + timeout_of(headers["grpc-timeout"])
            task = connection.loop.create_task(self._serve(stream, handler, until_s))
            stream.task = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _handler(self, path: str) -> Handler | None:
        if path not in self._found:
            asked = _CallDetails(path)
            found = (generic.service(asked) for generic in self._generic)
            handler = next((one for one in found if one is not None), None)
            if handler is None:
                return None  # not remembered: there are ever more names that are none
            self._found[path] = handler
        return self._found[path]

    async def _serve(self, stream: ServerStream, handler: Handler, until_s: float | None) -> None:
        try:
            async with asyncio.timeout_at(until_s):
                status = await _status_of(stream, handler, Context(stream, until_s, handler))
                await stream.drained()
            stream.finish(status)
        except asyncio.CancelledError:
            stream.finish(Status(grpc.StatusCode.UNAVAILABLE, "the server is stopping"))
            raise
        except TimeoutError as error:
            late = until_s is not None and stream.connection.loop.time() >= until_s
            code = grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.UNKNOWN
            stream.finish(Status(code, str(error) or "Deadline Exceeded"))
        except Exception as error:  # noqa: BLE001  a bug of the handler: its caller hears of it
            _log.exception("call failed")
            what = f"Unexpected {type(error).__name__}: {error}"
            stream.finish(Status(grpc.StatusCode.UNKNOWN, what))


async def _status_of(stream: ServerStream, handler: Handler, context: Context) -> Status:
    """What the call ends with, unless it fails."""
    try:
        await _handle(stream, handler, context)
    except Aborted as aborted:
        return aborted.status
    return Status(grpc.StatusCode.OK)


async def _handle(stream: ServerStream, handler: Handler, context: Context) -> None:
    serialize = handler.response_serializer or bytes
    request: Any
    if handler.request_streaming:
        request = _requests(stream, handler.request_deserializer)
    else:
        message = await stream.receive()
        if message is None:
            await context.abort(grpc.StatusCode.INTERNAL, "no request came")
        request = await _read(message, handler.request_deserializer, context)
    if not handler.response_streaming:
        behave = handler.stream_unary if handler.request_streaming else handler.unary_unary
        stream.answer_only(serialize(await behave(request, context)))
        return
    behave = handler.stream_stream if handler.request_streaming else handler.unary_stream
    answers = behave(request, context)
    if not hasattr(answers, "__aiter__"):
        await answers  # it writes by its context
        return
    async with aclosing(answers):
        async for answer in answers:
            await context.write(answer)


async def _requests(stream: ServerStream, deserialize: Any) -> AsyncIterator[Any]:
    while (message := await stream.receive()) is not None:
        yield deserialize(message) if deserialize is not None else message


async def _read(message: bytes, deserialize: Any, context: Context) -> Any:
    if deserialize is None:
        return message
    try:
        return deserialize(message)
    except Exception as error:  # noqa: BLE001  whatever a deserializer raises
        await context.abort(grpc.StatusCode.INTERNAL, f"the request cannot be read: {error}")
