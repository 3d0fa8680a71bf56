"""A server behind the interface of `grpc.aio.Server`: it listens, and gives each call to its handler."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc

from utuple.transport.calls import Status, status_of_unreadable
from utuple.transport.connection import MAX_STREAMS, Connection
from utuple.transport.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    ErrorCode,
    ProtocolError,
    frame,
    goaway,
    rst_stream,
)
from utuple.transport.headers import (
    Header,
    encode,
    metadata_to_headers,
    said,
    timeout_of,
)
from utuple.transport.messages import PREFIX_BYTES, Unreadable, prefix
from utuple.transport.stream import Stream

_log = logging.getLogger("utuple.transport")

_BEGIN = ((":status", "200"), ("content-type", "application/grpc"))
_HEADERS = encode(_BEGIN)
_OK = encode((("grpc-status", "0"),))
_BACKLOG = 1024
_LAST_STREAM = (1 << 31) - 1

Handler = Any
"""What grpc.unary_unary_rpc_method_handler and the like make."""
Find = Callable[[str], Handler | None]


@dataclass(frozen=True, slots=True)
class _CallDetails:
    """What a generic handler is asked by."""

    method: str
    invocation_metadata: tuple[tuple[str, str], ...] = ()


class Aborted(Exception):
    """A handler ends its call with this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.details)
        self.status = status


class Context:
    """What a handler may do with its call."""

    def __init__(self, stream: ServerStream, until_s: float | None, handler: Handler) -> None:
        self._stream = stream
        self._until_s = until_s
        self._serialize = handler.response_serializer or bytes
        self._deserialize = handler.request_deserializer or bytes

    def time_remaining(self) -> float | None:
        if self._until_s is None:
            return None
        return max(0.0, self._until_s - self._stream.connection.loop.time())

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> NoReturn:
        raise Aborted(Status(code, details, tuple(trailing_metadata)))

    async def write(self, message: Any) -> None:
        await self._stream.answer(self._serialize(message))

    def write_now(self, message: Any) -> bool:
        """Without a turn of the event loop; False if it must be written by the handler's own means."""
        return self._stream.answer_now(self._serialize(message))

    def take_now(self, take: Callable[[Any], bool]) -> None:
        """Requests are given to this as they come; those it does not take are the handler's to read."""
        self._stream.take_now(self._deserialize, take)


class ServerStream(Stream):
    def __init__(self, connection: ServerConnection, number: int, most: int) -> None:
        super().__init__(connection, number, most)
        self.task: asyncio.Task[None] | None = None
        self._has_begun = False

    def on_headers(self, headers: Sequence[Header], *, ends: bool) -> None:
        """The client's trailers: nobody asks for them."""
        if ends:
            try:
                self.on_end()
            except Unreadable as error:
                self.on_unreadable(error)

    def on_unreadable(self, error: Unreadable) -> None:
        self.finish(status_of_unreadable(error))
        self._give_up()

    def on_reset(self, code: int) -> None:
        self._give_up()

    def on_lost(self, reason: str) -> None:
        self._give_up()

    def _give_up(self) -> None:
        self.close()
        if self.task is not None:
            self.task.cancel()

    async def answer(self, message: bytes) -> None:
        self._begin()
        await self.send(message)

    def answer_now(self, message: bytes) -> bool:
        self._begin()
        return self.send_now(message)

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.connection.write(frame(HEADERS, END_HEADERS, self.number, _HEADERS))

    async def answer_only(self, message: bytes) -> None:
        """With its status, in one piece if it is small."""
        size = PREFIX_BYTES + len(message)
        if self.is_closed or not self.connection.takes(size, self.window):
            await self.answer(message)
            self.finish(Status(grpc.StatusCode.OK))
            return
        self.connection.window -= size
        self.connection.write(
            frame(HEADERS, END_HEADERS, self.number, _HEADERS)
            + frame(DATA, 0, self.number, prefix(message) + message)
            + frame(HEADERS, END_HEADERS | END_STREAM, self.number, _OK)
        )
        self._over()

    def finish(self, status: Status) -> None:
        if self.is_closed:
            return
        if status.code is grpc.StatusCode.OK:
            trailers = _OK
        else:
            trailers = encode(
                (
                    ("grpc-status", str(status.code.value[0])),
                    ("grpc-message", said(status.details)),
                    *metadata_to_headers(status.trailers),
                )
            )
        block = trailers if self._has_begun else _HEADERS + trailers
        self.connection.write(frame(HEADERS, END_HEADERS | END_STREAM, self.number, block))
        self._over()

    def _over(self) -> None:
        if not self.has_ended:  # the client need say no more
            self.connection.write(rst_stream(self.number, ErrorCode.NO_ERROR))
        self.close()


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
                await _handle(stream, handler, Context(stream, until_s, handler))
            stream.finish(Status(grpc.StatusCode.OK))
        except Aborted as aborted:
            stream.finish(aborted.status)
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
        await stream.answer_only(serialize(await behave(request, context)))
        return
    behave = handler.stream_stream if handler.request_streaming else handler.unary_stream
    answers = behave(request, context)
    if not hasattr(answers, "__aiter__"):
        await answers  # it writes by its context
        return
    async with aclosing(answers):
        async for answer in answers:
            await stream.answer(serialize(answer))


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
