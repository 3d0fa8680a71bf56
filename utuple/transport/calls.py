"""One call as its caller has it, of any of gRPC's four kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import grpc

from utuple.transport.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    ErrorCode,
    frame,
)
from utuple.transport.http2.headers import (
    Header,
    Metadata,
    metadata_of,
)
from utuple.transport.messages import PREFIX_BYTES, prefix
from utuple.transport.outbound import ClientConnection, ClientStream
from utuple.transport.status import Status

Serialize = Callable[[Any], bytes]
Deserialize = Callable[[bytes], Any]

_AT_ONCE_BYTES = 16_000
"""A request up to this is written with its headers."""


@dataclass(frozen=True, slots=True)
class Method:
    path: str
    serialize: Serialize
    deserialize: Deserialize
    asks_once: bool
    """One request, else a stream of them."""


class Connector(Protocol):
    """What a call asks of its channel."""

    @property
    def connection_if_ready(self) -> ClientConnection | None: ...

    async def connected(self, *, wait: bool) -> ClientConnection:
        """Raises ConnectionError if that fails; with `wait` it tries again and again."""


class Call:
    def __init__(
        self,
        channel: Connector,
        method: Method,
        request: Any,
        timeout_s: float | None,
        wait: bool,
        metadata: Metadata = (),
    ) -> None:
        loop = asyncio.get_running_loop()
        self._method = method
        self._metadata = metadata
        self._headers: Sequence[Header] = ()
        """Those the answer began with, once they are here."""
        self._status: asyncio.Future[Status] = loop.create_future()
        self._stream: ClientStream | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._has_sent_all = method.asks_once
        self._early: list[bytes] = []
        """Sent before it has begun: on a connection that is full it waits for a place."""
        self._until_s = None if timeout_s is None else loop.time() + timeout_s
        if self._until_s is not None:
            self._timer = loop.call_at(self._until_s, self._too_late)
        message = method.serialize(request) if method.asks_once else None
        connection = channel.connection_if_ready
        if connection is not None and not connection.is_full:
            self._begin(connection, message, timeout_s)
        else:
            self._beginning = self._start(self._begin_later(channel, message, wait))

    # --- how it begins and ends ------------------------------------------------------------------

    async def _begin_later(self, channel: Connector, message: bytes | None, wait: bool) -> None:
        try:
            connection = await channel.connected(wait=wait)
            while connection.is_full:
                await connection.place()
                connection = await channel.connected(wait=wait)
        except ConnectionError as error:
            self.finish(Status(grpc.StatusCode.UNAVAILABLE, str(error)))
            return
        if not self._status.done():
            left_s = None if self._until_s is None else self._until_s - connection.loop.time()
            self._begin(connection, message, left_s)

    def _begin(
        self, connection: ClientConnection, message: bytes | None, left_s: float | None
    ) -> None:
        """`left_s` is said to the server. Of a call that begins at once it is the time-out as it was given: headers that say the
        same every time are read once, and others cost the server more than all else of a call."""
        stream = self._stream = connection.new_stream(self)
        start = connection.request(self._method.path, left_s, self._metadata)
        begun = frame(HEADERS, END_HEADERS, stream.number, start)
        if message is None:
            connection.write(begun)
            early, self._early = self._early, []
            for waiting in early:
                stream.send(waiting)
            return
        size = PREFIX_BYTES + len(message)
        if size <= _AT_ONCE_BYTES and connection.has_room(size, stream.window):
            stream.window -= size
            connection.window -= size
            data = frame(DATA, END_STREAM, stream.number, prefix(message) + message)
            connection.write(begun + data)
            return
        connection.write(begun)
        stream.send(message)
        stream.end()

    def heard(self, headers: Sequence[Header]) -> None:
        """The first of these are what the answer begins with."""
        self._headers = self._headers or headers

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._has_ended)
        return task

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        """If by a bug, or an iterable of the caller's that raised, whoever waits for the answer hears of it."""
        if not task.cancelled() and (error := task.exception()) is not None:
            what = f"the request was not sent: {type(error).__name__}: {error}"
            self.finish(Status(grpc.StatusCode.INTERNAL, what))

    def finish(self, status: Status) -> None:
        """Once."""
        if self._status.done():
            return
        self._status.set_result(status)
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._beginning, self._sending):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        stream = self._stream
        if stream is not None:
            if self._has_sent_all and stream.has_ended and stream.is_writable:
                stream.close()
            else:
                stream.reset(ErrorCode.CANCEL)

    def _too_late(self) -> None:
        self.finish(Status(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    def cancel(self) -> bool:
        if self._status.done():
            return False
        self.finish(Status(grpc.StatusCode.CANCELLED, "cancelled here"))
        return True

    def done(self) -> bool:
        return self._status.done()

    async def code(self) -> grpc.StatusCode:
        return (await self._over()).code

    async def details(self) -> str:
        return (await self._over()).details

    async def initial_metadata(self) -> Metadata:
        """What the server said before its first answer, as far as it is here when the call is over."""
        if not self._headers:
            await self._over()
        return metadata_of(self._headers)

    async def trailing_metadata(self) -> Metadata:
        return (await self._over()).trailers

    async def _over(self) -> Status:
        if self._status.done():
            return self._status.result()
        return await asyncio.shield(self._status)

    # --- what is sent and what comes back --------------------------------------------------------

    def send(self, request: Any) -> None:
        """Of a stream: write this, or queue it if there is no room, or if it has not begun yet. In vain if the call has ended,
        which whoever receives hears."""
        message = self._method.serialize(request)
        if self._stream is None:
            self._early.append(message)
        else:
            self._stream.send(message)

    async def write(self, request: Any) -> None:
        """The same, and wait until there is room for more."""
        stream = await self._begun()
        if stream is not None:
            stream.send(self._method.serialize(request))
        if stream is None or not await stream.drained():
            self._raise_ended(self._status.result())

    def send_each(self, requests: Iterable[Any]) -> None:
        """These and no others, in a task of its own."""
        self._sending = self._start(self._write_each(requests))

    async def _write_each(self, requests: Iterable[Any]) -> None:
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # whoever reads hears why
            for request in requests:
                await self.write(request)
            await self.done_writing()

    async def receive_all(self, handle: Callable[[Any], None]) -> None:
        """Give each answer to `handle` in the turn of the event loop in which it came, until the call ends. Raises what
        it ended with, unless that was OK, or what `handle` raised, which ends the call as well."""
        stream = await self._begun()
        deserialize = self._method.deserialize
        try:
            if stream is not None:
                await stream.receive_all(lambda message: handle(deserialize(message)))
        except BaseException:
            self.cancel()
            raise
        status = await self._over()
        if status.code is not grpc.StatusCode.OK:
            raise status.error()

    async def done_writing(self) -> None:
        stream = await self._begun()
        if stream is not None and not self._has_sent_all:
            self._has_sent_all = True
            stream.end()

    async def read(self) -> Any:
        stream = await self._begun()
        message = await stream.receive() if stream is not None else None
        if message is not None:
            return self._method.deserialize(message)
        status = self._status.result()
        if status.code is grpc.StatusCode.OK:
            return grpc.aio.EOF
        raise status.error()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message

    def __await__(self) -> Generator[Any, None, Any]:
        return self._only_answer().__await__()

    async def _only_answer(self) -> Any:
        """Of a call that is answered once."""
        try:
            answer = await self.read()
            status = await self._over()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if status.code is not grpc.StatusCode.OK:
            raise status.error()
        if answer is grpc.aio.EOF:
            raise Status(grpc.StatusCode.INTERNAL, "no answer came").error()
        return answer

    async def _begun(self) -> ClientStream | None:
        """None: it never did."""
        if self._stream is None and self._beginning is not None:
            await asyncio.wait((self._beginning,))
        return self._stream

    def _raise_ended(self, status: Status) -> NoReturn:
        if status.code is grpc.StatusCode.OK:
            raise asyncio.InvalidStateError("the call has ended")
        raise status.error()
