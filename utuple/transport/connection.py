"""One HTTP/2 connection as either end has it: frames to streams, windows, keepalive, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from utuple.transport.frames import (
    ACK,
    CONTINUATION,
    DATA,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    PING,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    Frame,
    FrameReader,
    Piece,
    ProtocolError,
    frame,
    goaway,
    number_of,
    settings,
    settings_of,
    window_update,
)
from utuple.transport.headers import MAX_BLOCK_BYTES, HeaderReader
from utuple.transport.messages import Unreadable
from utuple.transport.peer import Peer, peer_of
from utuple.transport.stream import STREAM_WINDOW_BYTES, Stream

KEEPALIVE_S = 10
"""A peer that is cut off without a word is noticed after this and the time-out below."""
KEEPALIVE_TIMEOUT_S = 5

MAX_STREAMS = 10_000
"""Calls at a time that a peer may have with us."""
MAX_FRAME_BYTES = 256 << 10
_MOST_WINDOW = (1 << 31) - 1
_FIRST_WINDOW = 65_535
_FIRST_FRAME_BYTES = 16_384
_GRANTED_BYTES = 1 << 29
"""Room is granted in portions of this. The connection's own window is the largest there is, so that it never holds a
peer back: the windows of its streams do."""
_PING_BYTES = 8
_BUFFERED_BYTES = 1 << 20
"""Written, and not yet accepted by the kernel: beyond this, messages are queued by their streams."""

_SETTINGS = settings(
    {
        HEADER_TABLE_SIZE: 0,
        ENABLE_PUSH: 0,
        MAX_CONCURRENT_STREAMS: MAX_STREAMS,
        INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
        MAX_FRAME_SIZE: MAX_FRAME_BYTES,
    }
) + window_update(0, _MOST_WINDOW - _FIRST_WINDOW)


class Connection(asyncio.Protocol):
    greeting = b""
    """What this end says before its settings."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.streams: dict[int, Stream] = {}
        self.window = _FIRST_WINDOW
        """Bytes the peer takes, of all streams."""
        self.initial_window = _FIRST_WINDOW
        self.max_frame_bytes = _FIRST_FRAME_BYTES
        self.is_open = False
        self._is_over = False
        self.peer = Peer()
        self._is_paused = False
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader(MAX_FRAME_BYTES)
        self._header_reader = HeaderReader()
        self._block: tuple[int, int, bytes] | None = None
        """Headers that go on in the next frame: their stream, flags and bytes so far."""
        self._ungranted_bytes = 0
        self._was_heard = False
        self._keepalive: asyncio.TimerHandle | None = None
        self._on: dict[int, Callable[[int, int, Piece], None]] = {
            HEADERS: self._on_headers,
            CONTINUATION: self._on_continuation,
            RST_STREAM: self._on_rst_stream,
            SETTINGS: self._on_settings,
            PUSH_PROMISE: self._on_push_promise,
            PING: self._on_ping,
            GOAWAY: self._on_goaway,
            WINDOW_UPDATE: self._on_window_update,
        }

    # --- for each end to say ---------------------------------------------------------------------

    def objection(self) -> str:
        """Why nothing is to be said to this peer, if so."""
        if not self.peer.speaks_http2:
            return "the peer did not agree to speak HTTP/2 in its handshake (ALPN h2)"
        return ""

    def headers_came(self, number: int, block: bytes, *, ends: bool) -> None:
        raise NotImplementedError

    def peer_is_ready(self) -> None:
        """Its settings are here."""

    def peer_leaves(self, last_stream: int, reason: str) -> None:
        """It takes no more calls than up to this one."""

    def lost(self, reason: str) -> None:
        """It is closed."""

    # --- its life --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_BUFFERED_BYTES)
        self.peer = peer_of(transport)
        self.is_open = True
        if objection := self.objection():
            self.abort(objection)
            return
        self._transport.write(self.greeting + _SETTINGS)
        self._keepalive = self.loop.call_later(KEEPALIVE_S, self._check_alive)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc is not None else "the connection was closed")

    def close(self, code: ErrorCode = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """What was written leaves; calls that are open are lost."""
        if self._transport is not None and self.is_open:
            self._transport.write(goaway(max(self.streams, default=0), code, reason))
            self._transport.close()
        self._end(reason or "the connection was closed")

    def abort(self, reason: str) -> None:
        """At once."""
        if self._transport is not None:
            self._transport.abort()
        self._end(reason)

    def _end(self, reason: str) -> None:
        if self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
        was_over, self._is_over, self.is_open = self._is_over, True, False
        for stream in list(self.streams.values()):
            stream.on_lost(reason)
        if not was_over:
            self.lost(reason)

    def _check_alive(self) -> None:
        """If nothing came for a while, ask the peer to answer a ping. A connection that was cut without a word, by a
        machine that lost its power or a cable that was pulled, is noticed by this alone."""
        if self._was_heard:
            self._was_heard = False
            self._keepalive = self.loop.call_later(KEEPALIVE_S, self._check_alive)
            return
        self.write(frame(PING, 0, 0, bytes(_PING_BYTES)))
        self._keepalive = self.loop.call_later(KEEPALIVE_TIMEOUT_S, self._check_answer)

    def _check_answer(self) -> None:
        if self._was_heard:
            self._check_alive()
        else:
            self.abort("the peer does not answer")

    # --- what leaves -----------------------------------------------------------------------------

    def write(self, data: Piece) -> None:
        """A socket whose peer died fails in one write, and `connection_lost` comes only with the loop's next turn. asyncio
        logs each further write until then, on the user's terminal; so nothing is written to a socket that is closing."""
        if self.is_open and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def has_room(self, bytes_: int, window: int) -> bool:
        """Is there room for so many bytes of a stream with this window, in one frame, now?"""
        return (
            bytes_ <= window
            and bytes_ <= self.window
            and bytes_ <= self.max_frame_bytes
            and not self._is_paused
        )

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._pump()

    def _pump(self) -> None:
        for stream in list(self.streams.values()):
            stream.pump()

    def forget(self, stream: Stream) -> None:
        self.streams.pop(stream.number, None)

    # --- what comes ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._was_heard = True
        try:
            for came in self._frames.feed(data):
                if came.kind == DATA:
                    self._on_data(came)
                else:
                    self._on_control(came)
        except ProtocolError as error:
            self.close(error.code, str(error))

    def _on_data(self, came: Frame) -> None:
        self._ungranted_bytes += came.counted
        if self._ungranted_bytes >= _GRANTED_BYTES:
            self.write(window_update(0, self._ungranted_bytes))
            self._ungranted_bytes = 0
        if self._block is not None:
            raise ProtocolError("DATA between headers")
        stream = self.streams.get(came.stream)
        if stream is None:
            return  # it was closed here while this was on its way
        try:
            if came.payload:
                stream.on_data(came.payload, came.counted)
            if came.flags & END_STREAM:
                stream.on_end()
        except Unreadable as error:
            stream.on_unreadable(error)

    def _on_control(self, came: Frame) -> None:
        if self._block is not None and (came.kind != CONTINUATION or came.stream != self._block[0]):
            raise ProtocolError("another frame between headers")
        handle = self._on.get(came.kind)
        if handle is not None:  # else it is PRIORITY, or not of this version
            handle(came.flags, came.stream, came.payload)

    def _on_headers(self, flags: int, number: int, payload: Piece) -> None:
        if not number:
            raise ProtocolError("headers without a stream")
        self._block_came(number, flags, bytes(payload), is_last=bool(flags & END_HEADERS))

    def _on_continuation(self, flags: int, number: int, payload: Piece) -> None:
        if self._block is None:
            raise ProtocolError("CONTINUATION of nothing")
        _, first_flags, block = self._block
        whole = block + bytes(payload)
        self._block_came(number, first_flags, whole, is_last=bool(flags & END_HEADERS))

    def _block_came(self, number: int, flags: int, block: bytes, *, is_last: bool) -> None:
        if len(block) > MAX_BLOCK_BYTES:
            raise ProtocolError("headers are too large", ErrorCode.ENHANCE_YOUR_CALM)
        self._block = None if is_last else (number, flags, block)
        if is_last:
            self.headers_came(number, block, ends=bool(flags & END_STREAM))

    def read_headers(self, block: bytes) -> Any:
        return self._header_reader.read(block)

    def _on_rst_stream(self, flags: int, number: int, payload: Piece) -> None:
        stream = self.streams.get(number)
        if stream is not None:
            stream.on_reset(number_of(payload))

    def _on_settings(self, flags: int, number: int, payload: Piece) -> None:
        if flags & ACK:
            return
        given = settings_of(payload)
        if (window := given.get(INITIAL_WINDOW_SIZE)) is not None:
            if window > _MOST_WINDOW:
                raise ProtocolError("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            for stream in self.streams.values():
                stream.window += window - self.initial_window
            self.initial_window = window
        if (size := given.get(MAX_FRAME_SIZE)) is not None:
            if not _FIRST_FRAME_BYTES <= size < 1 << 24:
                raise ProtocolError(f"frames of {size} bytes")
            self.max_frame_bytes = min(size, MAX_FRAME_BYTES)
        self.write(frame(SETTINGS, ACK, 0))
        self._pump()
        self.peer_is_ready()

    def _on_push_promise(self, flags: int, number: int, payload: Piece) -> None:
        raise ProtocolError("a push, which nobody asked for")

    def _on_ping(self, flags: int, number: int, payload: Piece) -> None:
        if len(payload) != _PING_BYTES:
            raise ProtocolError("a ping of an odd size", ErrorCode.FRAME_SIZE_ERROR)
        if not flags & ACK:
            self.write(frame(PING, ACK, 0, bytes(payload)))

    def _on_goaway(self, flags: int, number: int, payload: Piece) -> None:
        last_stream = number_of(payload) & _MOST_WINDOW
        self.peer_leaves(last_stream, bytes(payload[8:]).decode(errors="replace"))

    def _on_window_update(self, flags: int, number: int, payload: Piece) -> None:
        more = number_of(payload) & _MOST_WINDOW
        if not number:
            self.window += more
            if self.window > _MOST_WINDOW:
                raise ProtocolError("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            self._pump()
            return
        stream = self.streams.get(number)
        if stream is not None:
            stream.window += more
            stream.pump()
