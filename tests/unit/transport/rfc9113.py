"""A peer that says whatever a test wants, and what a server made of it: bytes in, frames out, on a wire in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
from hpack import Encoder

from utuple.transport.http2 import frames
from utuple.transport.http2.frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    PREFACE,
    ErrorCode,
    Frame,
    FrameReader,
    frame,
    settings,
)
from utuple.transport.http2.limits import SERVER, Limits
from utuple.transport.inbound import ServerConnection
from utuple.transport.peer import peer_of
from utuple.transport.server import Server

REQUEST = (
    *((":method", "GET"), (":scheme", "http"), (":path", "/")),
    (":authority", "127.0.0.1:7400"),
)
POST = ((":method", "POST"), *REQUEST[1:])
CALL = ((":method", "POST"), (":scheme", "http"), (":path", "/test/Echo"))
GRPC = (*CALL, ("te", "trailers"), ("content-type", "application/grpc"))
ONCE = (*GRPC[:2], (":path", "/test/Once"), *GRPC[3:])
MOST_BYTES = 1 << 20


class Echo(grpc.GenericRpcHandler):
    def service(self, handler_call_details: Any) -> Any:
        return {
            "/test/Echo": grpc.stream_stream_rpc_method_handler(self.echo),
            "/test/Once": grpc.unary_unary_rpc_method_handler(self.once),
        }.get(handler_call_details.method)

    async def once(self, request: bytes, context: Any) -> bytes:
        return request

    async def echo(self, requests: Any, context: Any) -> Any:
        async for request in requests:
            yield request


class Wire:
    """What a transport does, as far as a connection asks."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.written = bytearray()
        self.is_closed = False
        self.is_reading = True
        self.address = address

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> Any:
        return (self.address, 1) if name == "peername" else None

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed


class Clock:
    """The loop as a connection has it, with a time that the test moves."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self.now_s = 0.0
        self.create_task = self._loop.create_task
        self.create_future = self._loop.create_future
        self.call_soon = self._loop.call_soon

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, act: Callable[[], None]) -> Timer:
        timer = (self.now_s + delay_s, act)
        self._timers.append(timer)
        return Timer(self._timers, timer)

    def advance(self, seconds: float) -> None:
        """Up to then, timer by timer."""
        until_s = self.now_s + seconds
        while due := [timer for timer in self._timers if timer[0] <= until_s]:
            first = min(due, key=lambda timer: timer[0])
            self._timers.remove(first)
            self.now_s = max(self.now_s, first[0])
            first[1]()
        self.now_s = until_s


@dataclass
class Timer:
    _timers: list[tuple[float, Callable[[], None]]]
    _own: tuple[float, Callable[[], None]]

    def cancel(self) -> None:
        if self._own in self._timers:
            self._timers.remove(self._own)


@dataclass
class Talk:
    """One connection to a server. `say` sends and waits until the server has nothing more to do."""

    limits: Limits = SERVER
    beside: Talk | None = None
    """Another connection to the same server."""
    server: Server = field(init=False)
    clock: Clock = field(init=False)
    connection: ServerConnection = field(init=False)
    wire: Wire = field(default_factory=Wire)
    encoder: Encoder = field(default_factory=Encoder)

    def __post_init__(self) -> None:
        if self.beside is not None:
            self.server = self.beside.server
        else:
            self.server = Server(MOST_BYTES, limits=self.limits)
            self.server.add_generic_rpc_handlers((Echo(),))
        self.connection = ServerConnection(self.server)
        self.clock = Clock()
        self.connection.loop = cast(asyncio.AbstractEventLoop, self.clock)
        self.connection.arrived(cast(Any, self.wire), peer_of(cast(Any, self.wire)))
        self.connection.connection_made(cast(Any, self.wire))

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            if not self.wire.is_closed:
                self.connection.data_received(piece)
        for _ in range(20):
            await asyncio.sleep(0)

    async def greet(self) -> None:
        """As a client does: preface, settings, and an answer to the server's."""
        await self.say(PREFACE, settings({frames.INITIAL_WINDOW_SIZE: 65_535}))
        await self.say(frame(frames.SETTINGS, ACK, 0))

    def block(self, headers: Iterable[tuple[str, str]]) -> bytes:
        return self.encoder.encode(list(headers))

    def headers(
        self,
        number: int = 1,
        headers: Iterable[tuple[str, str]] = REQUEST,
        *,
        ends: bool = True,
        more: bytes = b"",
    ) -> bytes:
        flags = END_HEADERS | (END_STREAM if ends else 0)
        return frame(frames.HEADERS, flags, number, self.block(headers) + more)

    def heard(self, kind: int, number: int | None = None) -> list[Frame]:
        came = FrameReader(MOST_BYTES).feed(bytes(self.wire.written))
        return [one for one in came if one.kind == kind and number in (None, one.stream)]

    # --- what the server made of it --------------------------------------------------------------

    @property
    def goaway(self) -> ErrorCode | None:
        """The error that it hung up with."""
        heard = self.heard(frames.GOAWAY)
        return ErrorCode(frames.number_of(heard[-1].payload[4:])) if heard else None

    def resets(self, number: int = 1) -> list[int]:
        return [frames.number_of(one.payload) for one in self.heard(frames.RST_STREAM, number)]

    def is_connection_error(self, *codes: ErrorCode) -> bool:
        return self.wire.is_closed and self.goaway in codes

    def is_stream_error(self, *codes: ErrorCode, number: int = 1) -> bool:
        """A connection error is a stricter answer, and always allowed (RFC 9113, section 5.4.2)."""
        return any(code in self.resets(number) for code in codes) or self.is_connection_error(
            *codes
        )

    def answers(self, number: int = 1) -> bool:
        return bool(self.heard(frames.HEADERS, number)) and not self.wire.is_closed

    def data_sizes(self, number: int = 1) -> list[int]:
        return [one.counted for one in self.heard(frames.DATA, number) if one.counted]

    async def still_answers(self) -> bool:
        """Pings, and so the connection goes on."""
        await self.say(frame(frames.PING, 0, 0, b"are you?"))
        return any(bytes(one.payload) == b"are you?" for one in self.heard(frames.PING))
