"""A server behind the interface of `grpc.aio.Server`: it listens, and gives each call to its handler."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from utuple.transport.arrivals import Arrivals
from utuple.transport.context import Aborted, Context, Handler, ServerStream
from utuple.transport.http2.frames import ProtocolError
from utuple.transport.http2.headers import Block, timeout_of
from utuple.transport.http2.limits import SERVER, Limits
from utuple.transport.http2.turns import Turns
from utuple.transport.inbound import Entrance, ServerConnection
from utuple.transport.peer import Tls
from utuple.transport.status import OK, Status

_log = logging.getLogger("utuple.transport")

_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class _CallDetails:
    """What a generic handler is asked by."""

    method: str
    invocation_metadata: tuple[tuple[str, str], ...] = ()


Authorise = Callable[[str, Context], None]
"""The method's name and its context; raises `Aborted` with the status of a refusal. It must not wait."""


class Server(grpc.aio.Server):
    def __init__(
        self,
        max_message_bytes: int,
        authorise: Authorise | None = None,
        limits: Limits = SERVER,
    ) -> None:
        """`authorise` is asked once for every call, before its handler runs."""
        self.limits = limits
        self.arrivals: Arrivals[ServerConnection] = Arrivals(limits)
        self.held_bytes = 0
        """Of messages that came and were not taken yet, on all connections."""
        self._turns: Turns | None = None
        self._max_message_bytes = max_message_bytes
        self._authorise = authorise
        self._generic: list[Any] = []
        self._found: dict[str, Handler | None] = {}
        self._sockets: list[tuple[socket.socket, Tls | None]] = []
        self._listening: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self.connections: set[ServerConnection] = set()

    # --- its life --------------------------------------------------------------------------------

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]
    ) -> None:
        self._generic.extend(generic_rpc_handlers)

    @property
    def services(self) -> list[str]:
        """The names of those that were added."""
        named = (getattr(handler, "service_name", None) for handler in self._generic)
        return [name() for name in named if name is not None]

    def add_registered_method_handlers(self, service_name: str, method_handlers: Any) -> None:
        """The same ones as generic handlers: a look-up of grpcio's own."""

    def add_insecure_port(self, address: str) -> int:
        return self._listen(address, None)

    def add_secure_port(self, address: str, server_credentials: Any) -> int:
        """With a `Tls` of ours."""
        assert isinstance(server_credentials, Tls)
        return self._listen(address, server_credentials)

    def _listen(self, address: str, tls: Tls | None) -> int:
        host, _, port = address.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host.strip("[]"), int(port)))
        except OSError as error:
            listener.close()
            raise RuntimeError(str(error)) from None
        self._sockets.append((listener, tls))
        return int(listener.getsockname()[1])

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for listener, tls in self._sockets:
            listening = await loop.create_server(
                partial(Entrance, self, tls), sock=listener, backlog=_BACKLOG
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
        for connection in self.arrivals.all():
            connection.close()
        self._ended.set()

    async def wait_for_termination(self, timeout: float | None = None) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    @property
    def turns(self) -> Turns:
        """Of all its connections; of the loop that runs when the first of them comes."""
        if self._turns is None:
            self._turns = Turns(asyncio.get_running_loop())
        return self._turns

    # --- its calls -------------------------------------------------------------------------------

    @property
    def open_calls(self) -> list[Context]:
        return [
            stream.context
            for connection in self.connections
            for stream in connection.streams.values()
            if isinstance(stream, ServerStream) and stream.context is not None
        ]

    def end_calls(self, chosen: Callable[[Context], bool], status: Status) -> int:
        """End every open call that is chosen, whatever its handler is doing; returns how many."""
        ended = 0
        for connection in list(self.connections):
            for stream in list(connection.streams.values()):
                assert isinstance(stream, ServerStream)
                if stream.context is not None and chosen(stream.context):
                    stream.end_with(status)
                    ended += 1
        return ended

    def begin(
        self,
        connection: ServerConnection,
        number: int,
        block: Block,
        *,
        ends: bool,
    ) -> None:
        headers = block.fields
        stream = ServerStream(connection, number, self._max_message_bytes)
        stream.has_ended = ends
        stream.declared_bytes = block.declared_bytes
        connection.streams[number] = stream
        method = headers.get(":path", "")
        handler = self._handler(method)
        if headers[":method"] != "POST":
            text = "This is a gRPC server: calls are made by POST.\n"
            stream.answer_plainly("405", "" if headers[":method"] == "HEAD" else text)
        elif not headers.get("content-type", "").startswith("application/grpc"):
            stream.answer_plainly("415", "This is a gRPC server: content-type: application/grpc\n")
        elif handler is None:
            stream.finish(Status(grpc.StatusCode.UNIMPLEMENTED, f"no method {method}"))
        else:
            until_s = None
            if "grpc-timeout" in headers:
                try:
                    until_s = connection.loop.time() + timeout_of(headers["grpc-timeout"])
                except ProtocolError as error:
                    stream.finish(Status(grpc.StatusCode.INTERNAL, str(error)))
                    return
            stream.takes_one = not handler.request_streaming
            context = stream.context = Context(stream, method, block.headers, until_s, handler)
            refusal = self._refusal(context)
            if refusal is not None:
                stream.finish(refusal)
                return
            task = connection.loop.create_task(self._serve(stream, handler, context, until_s))
            stream.task = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _refusal(self, context: Context) -> Status | None:
        """The one place where it is decided whether a call may be made."""
        if self._authorise is None:
            return None
        try:
            self._authorise(context.method, context)
        except Aborted as refused:
            return refused.status
        except Exception:  # noqa: BLE001  a bug of whoever authorises lets nobody in
            _log.exception("authorising failed")
            return Status(grpc.StatusCode.INTERNAL, "this call could not be authorised")
        return None

    def _handler(self, path: str) -> Handler | None:
        if path not in self._found:
            asked = _CallDetails(path)
            found = (generic.service(asked) for generic in self._generic)
            handler = next((one for one in found if one is not None), None)
            if handler is None:
                return None  # not remembered: there are ever more names that are none
            self._found[path] = handler
        return self._found[path]

    async def _serve(
        self, stream: ServerStream, handler: Handler, context: Context, until_s: float | None
    ) -> None:
        try:
            if until_s is None:
                await _finished(stream, handler, context)
            else:
                async with asyncio.timeout_at(until_s):
                    await _finished(stream, handler, context)
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


async def _finished(stream: ServerStream, handler: Handler, context: Context) -> None:
    """With its status, unless it fails."""
    status = OK
    try:
        await _handle(stream, handler, context)
    except Aborted as aborted:
        status = aborted.status
    if stream.is_closed:
        return
    await stream.drained()
    stream.finish(status)


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
