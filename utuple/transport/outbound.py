"""A connection that we made, and the streams of our calls on it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import grpc

from utuple.transport.http2.connection import Connection
from utuple.transport.http2.frames import PREFACE, ErrorCode
from utuple.transport.http2.headers import (
    Header,
    Metadata,
    encode,
    metadata_to_headers,
    response_problem,
    timeout_to_text,
)
from utuple.transport.http2.limits import CLIENT, Limits
from utuple.transport.http2.stream import Stream
from utuple.transport.messages import Unreadable
from utuple.transport.peer import Peer
from utuple.transport.status import Status, is_grpc, status_of, status_of_unreadable

_RESET: dict[int, grpc.StatusCode] = {
    ErrorCode.REFUSED_STREAM: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.CANCEL: grpc.StatusCode.CANCELLED,
    ErrorCode.ENHANCE_YOUR_CALM: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_LAST_STREAM = (1 << 31) - 1


class Caller(Protocol):
    """What a stream asks of its call."""

    def heard(self, headers: Sequence[Header]) -> None: ...

    def finish(self, status: Status) -> None: ...


class ClientStream(Stream):
    def __init__(self, connection: ClientConnection, number: int, call: Caller, most: int) -> None:
        super().__init__(connection, number, most)
        self._call = call

    def on_headers(
        self, headers: Sequence[Header], fields: Mapping[str, str], *, ends: bool
    ) -> None:
        """What is not gRPC is not read further: a page of a proxy's, mostly."""
        self._call.heard(headers)
        if ends or not is_grpc(fields):
            self._call.finish(status_of(headers, fields))

    def on_end(self) -> None:
        self.has_ended = True
        self._call.finish(Status(grpc.StatusCode.INTERNAL, "the answer ended without a status"))

    def on_unreadable(self, error: Unreadable) -> None:
        self._call.finish(status_of_unreadable(error))

    def on_violation(self, code: ErrorCode, reason: str) -> None:
        super().on_violation(code, reason)
        self._call.finish(Status(grpc.StatusCode.INTERNAL, f"the answer is malformed: {reason}"))

    def on_reset(self, code: int) -> None:
        super().on_reset(code)
        known = _RESET.get(code, grpc.StatusCode.INTERNAL)
        self._call.finish(Status(known, f"the server reset the stream ({code})"))

    def on_lost(self, reason: str) -> None:
        self.close()
        self._call.finish(Status(grpc.StatusCode.UNAVAILABLE, reason))


class ClientConnection(Connection):
    greeting = PREFACE

    def __init__(
        self,
        authority: str,
        max_message_bytes: int,
        changed: Callable[[ClientConnection], None],
        check: Callable[[Peer], None] | None = None,
        limits: Limits = CLIENT,
    ) -> None:
        super().__init__(limits, response_problem)
        self._authority = authority
        self._check = check
        self._max_message_bytes = max_message_bytes
        self._changed = changed
        self._next = 1
        self._asking: deque[asyncio.Future[None]] = deque()
        """Calls that wait for a place."""
        self._requests: dict[str, bytes] = {}
        self.is_ready = False
        self.reason = ""
        """Why it was lost."""
        self.is_leaving = False
        """It takes no new calls."""

    def objection(self) -> str:
        """Nothing is said to a server that is not the one that was meant."""
        try:
            if self._check is not None:
                self._check(self.peer)
        except Exception as error:  # noqa: BLE001  whatever the check raises: whoever calls is told
            return str(error) or type(error).__name__
        return super().objection()

    def request(self, path: str, timeout_s: float | None, metadata: Metadata = ()) -> bytes:
        """The headers a call begins with."""
        known = self._requests.get(path)
        if known is None:
            known = self._requests[path] = encode(
                (
                    (":method", "POST"),
                    (":scheme", "https" if self.peer.is_secure else "http"),
                    (":path", path),
                    (":authority", self._authority),
                    ("te", "trailers"),
                    ("content-type", "application/grpc"),
                    ("user-agent", "utuple"),
                )
            )
        if timeout_s is not None:
            known += encode((("grpc-timeout", timeout_to_text(timeout_s)),))
        return known + encode(metadata_to_headers(metadata)) if metadata else known

    @property
    def is_full(self) -> bool:
        """The server takes no more calls at a time."""
        return len(self.streams) >= self.max_streams

    async def place(self) -> None:
        """Wait for one, in the order of asking. A connection that is lost has one, where the call then fails."""
        while self.is_full and self.is_open:
            waiter = self.loop.create_future()
            self._asking.append(waiter)
            await waiter

    def _give_place(self) -> None:
        while self._asking:
            waiter = self._asking.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def new_stream(self, call: Caller) -> ClientStream:
        stream = ClientStream(self, self._next, call, self._max_message_bytes)
        self.streams[self._next] = stream
        self._next += 2
        if self._next > _LAST_STREAM:
            self.peer_leaves(self._next, "numbers are used up")
        return stream

    def headers_came(self, number: int, block: bytes, *, ends: bool) -> None:
        headers, fields, problem, _ = self.header_reader.read(block)
        stream = self.streams.get(number)
        if stream is None:
            self._on_late(number, "HEADERS")
        elif problem:
            self.fail_stream(number, ErrorCode.PROTOCOL_ERROR, problem)
        else:
            if ends:
                stream.has_ended = True
            stream.on_headers(headers, fields, ends=ends)

    def is_idle(self, number: int) -> bool:
        return not number % 2 or number >= self._next

    def peer_is_ready(self) -> None:
        if not self.is_ready:
            self.is_ready = True
            self._changed(self)

    def peer_leaves(self, last_stream: int, reason: str) -> None:
        self.is_leaving = True
        for stream in list(self.streams.values()):
            if stream.number > last_stream:
                stream.on_reset(ErrorCode.REFUSED_STREAM)
        if not self.streams:
            self.close()
        self._changed(self)

    def forget(self, stream: Any) -> None:
        super().forget(stream)
        if self._asking:
            self._give_place()
        if self.is_leaving and not self.streams:
            self.close()

    def lost(self, reason: str) -> None:
        self.reason = reason
        while self._asking:
            self._give_place()
        self._changed(self)
