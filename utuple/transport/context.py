"""One call as its handler has it: the stream that it answers on, and what the handler may do with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import grpc

from utuple.transport.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    ErrorCode,
    Piece,
    frame,
    rst_stream,
)
from utuple.transport.http2.headers import (
    Header,
    Metadata,
    encode,
    escaped_message,
    metadata_of,
    metadata_to_headers,
)
from utuple.transport.http2.stream import Carrier, Stream
from utuple.transport.messages import PREFIX_BYTES, Unreadable, prefix
from utuple.transport.peer import Peer
from utuple.transport.status import Status, status_of_unreadable

_HEADERS = encode(((":status", "200"), ("content-type", "application/grpc")))
_OK = encode((("grpc-status", "0"),))

Handler = Any
"""What grpc.unary_unary_rpc_method_handler and the like make."""


class Aborted(Exception):
    """A handler ends its call with this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.details)
        self.status = status


class Context:
    """What a handler knows of its call, and may do with it."""

    def __init__(
        self,
        stream: ServerStream,
        method: str,
        headers: Sequence[Header],
        until_s: float | None,
        handler: Handler,
    ) -> None:
        self.method = method
        """`/package.Service/Name`."""
        self.caller: Peer = stream.connection.peer
        """Who is at the other end of the connection: its address, its certificate."""
        self.identity: Any = None
        """Whom the call is made for: whoever authorises calls keeps here what it made of the caller, and of what he shows."""
        self._headers = headers
        self._stream = stream
        self._until_s = until_s
        self._serialize = handler.response_serializer or bytes
        self._deserialize = handler.request_deserializer or bytes

    def time_remaining(self) -> float | None:
        if self._until_s is None:
            return None
        return max(0.0, self._until_s - self._stream.connection.loop.time())

    def peer(self) -> str:
        """As grpcio says it."""
        family = "ipv6" if self.caller.address.startswith("[") else "ipv4"
        return f"{family}:{self.caller.address}"

    def header(self, name: str) -> str:
        """One of the caller's own, as it travelled; empty if there is none."""
        return next((value for own, value in self._headers if own == name), "")

    def invocation_metadata(self) -> Metadata:
        return metadata_of(self._headers)

    async def send_initial_metadata(
        self, initial_metadata: Sequence[tuple[str, str | bytes]]
    ) -> None:
        """Before the first answer."""
        self._stream.begin(tuple(initial_metadata))

    def set_trailing_metadata(self, trailing_metadata: Sequence[tuple[str, str | bytes]]) -> None:
        """With the status, unless the call is aborted with others."""
        self._stream.trailers = tuple(trailing_metadata)

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> NoReturn:
        raise Aborted(Status(code, details, tuple(trailing_metadata)))

    async def write(self, message: Any) -> None:
        """Send it, and wait until there is room for more."""
        self.send(message)
        await self._stream.drained()

    # A handler of a busy stream does without waiting; see `stream` for what these promise.

    def send(self, message: Any) -> None:
        self._stream.send(self._serialize(message))

    @property
    def is_writable(self) -> bool:
        return self._stream.is_writable

    def when_writable(self, resume: Callable[[], None]) -> None:
        self._stream.when_writable(resume)

    async def drained(self) -> bool:
        return await self._stream.drained()

    async def receive_all(self, handle: Callable[[Any], None]) -> None:
        """In place of the iterator of requests."""
        deserialize = self._deserialize
        await self._stream.receive_all(lambda message: handle(deserialize(message)))

    def pause(self) -> None:
        self._stream.pause()

    def resume(self) -> None:
        self._stream.resume()


class ServerStream(Stream):
    def __init__(self, connection: Carrier, number: int, most: int) -> None:
        super().__init__(connection, number, most)
        self.task: asyncio.Task[None] | None = None
        self.context: Context | None = None
        """Once its handler is known."""
        self.trailers: Metadata = ()
        self.takes_one = False
        """Its method has one request, not a stream of them."""
        self._has_taken = False
        self._has_begun = False

    def on_data(self, piece: Piece, counted: int) -> None:
        if not self.is_closed:
            super().on_data(piece, counted)
            if self.takes_one and self._has_more_than_one:
                raise Unreadable("one request was expected, and more came")
            return
        if self.declared_bytes is not None:
            self.declared_bytes -= len(piece)

    @property
    def _has_more_than_one(self) -> bool:
        whole = len(self._inbox) + self._has_taken
        return whole > 1 or (whole == 1 and super().is_unfinished)

    async def receive(self) -> bytes | None:
        message = await super().receive()
        self._has_taken = message is not None
        return message

    def on_end(self) -> None:
        if self.is_closed:
            self.was_ended = True
            self.connection.forget(self)
            return
        try:
            super().on_end()
        except Unreadable as error:
            self.on_unreadable(error)

    @property
    def is_unfinished(self) -> bool:
        """Also if it was answered, and the client has not said that it has no more."""
        return self.is_closed or super().is_unfinished

    def on_unreadable(self, error: Unreadable) -> None:
        if self.is_closed:
            self.connection.write(rst_stream(self.number, ErrorCode.NO_ERROR))
            self.connection.forget(self)
        else:
            self.end_with(status_of_unreadable(error))

    def on_violation(self, code: ErrorCode, reason: str) -> None:
        super().on_violation(code, reason)
        self._cancel()

    def on_reset(self, code: int) -> None:
        super().on_reset(code)
        self._cancel()

    def on_lost(self, reason: str) -> None:
        super().on_lost(reason)
        self._cancel()

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def send(self, message: bytes) -> None:
        if not self._has_begun:
            self.begin()
        super().send(message)

    def begin(self, metadata: Metadata = ()) -> None:
        assert not self._has_begun, "initial metadata comes before the first answer, once"
        self._has_begun = True
        if not self.is_closed:
            block = _HEADERS + encode(metadata_to_headers(metadata))
            self.connection.write(frame(HEADERS, END_HEADERS, self.number, block))

    def answer_only(self, message: bytes) -> None:
        """With its status, in one piece if it is small."""
        size = PREFIX_BYTES + len(message)
        if (
            self.is_closed
            or self._has_begun
            or self.trailers
            or not self.connection.has_room(size, self.window)
        ):
            self.send(message)  # its status follows when that is written
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
        metadata = status.trailers or self.trailers
        if status.code is grpc.StatusCode.OK and not metadata:
            trailers = _OK
        else:
            trailers = encode(
                (
                    ("grpc-status", str(status.code.value[0])),
                    ("grpc-message", escaped_message(status.details)),
                    *metadata_to_headers(metadata),
                )
            )
        block = trailers if self._has_begun else _HEADERS + trailers
        self.connection.write(frame(HEADERS, END_HEADERS | END_STREAM, self.number, block))
        self._over()

    def end_with(self, status: Status) -> None:
        """From outside, whatever its handler is doing."""
        self.finish(status)
        self._cancel()

    def answer_plainly(self, status: str, text: str) -> None:
        """To who does not speak gRPC: an HTTP status and a line of text, or none if that was asked for (HEAD)."""
        self._has_begun = True
        block = encode(((":status", status), ("content-type", "text/plain")))
        self.connection.write(frame(HEADERS, END_HEADERS, self.number, block))
        self.when_writable(self._over)
        self.send_last(text.encode())

    def _over(self) -> None:
        """If the client has not said all, the stream stays for what it still says: most clients end or reset it now."""
        if self.has_ended:
            self.close()
        else:
            self.stop()
