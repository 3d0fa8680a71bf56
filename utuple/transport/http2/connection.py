"""One HTTP/2 connection as either end has it: frames to streams, windows, keepalive, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import cast

from utuple.transport.http2.frames import (
    ACK,
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    Frame,
    Piece,
    ProtocolError,
    check,
    frame,
    goaway,
    name_of,
    number_of,
    rst_stream,
    settings_of,
    window_update,
)
from utuple.transport.http2.headers import MAX_BLOCK_BYTES, HeaderReader, ProblemOf
from utuple.transport.http2.intake import Intake
from utuple.transport.http2.keepalive import Keepalive
from utuple.transport.http2.limits import MOST_WINDOW, Budget, Budgets, Limits
from utuple.transport.http2.settings import (
    FIRST_FRAME_BYTES,
    FIRST_WINDOW,
    MAX_FRAME_BYTES,
    check_setting,
    first_words,
)
from utuple.transport.http2.stream import ClosedStreams, Stream
from utuple.transport.http2.turns import Turns
from utuple.transport.messages import TooLarge, Unreadable
from utuple.transport.peer import Peer, peer_of


class Connection(asyncio.Protocol):
    greeting = b""
    """What this end says before its settings."""

    def __init__(self, limits: Limits, problem_of: ProblemOf, turns: Turns | None = None) -> None:
        """`turns`: of all connections of a server."""
        self.loop = asyncio.get_running_loop()
        self.limits = limits
        self._turns = turns or Turns(self.loop)
        self.streams: dict[int, Stream] = {}
        self.window = FIRST_WINDOW
        """Bytes the peer takes, of all streams."""
        self.initial_window = FIRST_WINDOW
        self.max_frame_bytes = FIRST_FRAME_BYTES
        self.max_streams = MOST_WINDOW
        """What the peer takes at a time."""
        self.held_bytes = 0
        """Came, and is kept by the streams."""
        self.is_open = False
        self._is_over = False
        self.peer = Peer()
        self.has_settings = False
        """The peer has said its first words."""
        self._is_paused = False
        self._transport: asyncio.Transport | None = None
        self._intake = Intake(self._turns, limits, (self._on_data, self._on_control), self.close)
        self.header_reader = HeaderReader(problem_of)
        self._block: tuple[int, int, bytearray] | None = None
        """Headers that go on in the next frame: their stream, flags and bytes so far."""
        self._waiting: dict[int, Stream] = {}
        """Streams with something to write, and no room."""
        self._closed = ClosedStreams()
        self._room = limits.connection_window_bytes
        """What the peer may still send before more is granted."""
        self._keepalive = Keepalive(self)
        self._budgets = Budgets(limits)
        self._on: dict[int, Callable[[int, int, Piece], None]] = {
            HEADERS: self._on_headers,
            CONTINUATION: self._on_continuation,
            RST_STREAM: self._on_rst_stream,
            SETTINGS: self._on_settings,
            PING: self._on_ping,
            GOAWAY: self._on_goaway,
            WINDOW_UPDATE: self._on_window_update,
        }

    # --- for each end to say ---------------------------------------------------------------------

    def arrived(self, transport: asyncio.Transport, peer: Peer) -> None:
        """A socket is here, before anything was said on it."""
        self._transport = transport
        self.peer = peer

    def objection(self) -> str:
        """Why nothing is to be said to this peer, if so."""
        return "" if self.peer.speaks_http2 else "ALPN h2 was not agreed upon in the handshake"

    def headers_came(self, number: int, block: bytes, *, ends: bool) -> None:
        raise NotImplementedError

    def is_idle(self, number: int) -> bool:
        """Has this stream not begun yet?"""
        raise NotImplementedError

    def peer_is_ready(self) -> None:
        """Its settings are here."""

    def peer_leaves(self, last_stream: int, reason: str) -> None:
        """It takes no more calls than up to this one."""

    def tick(self, now_s: float) -> None:
        """Some seconds have passed."""

    def lost(self, reason: str) -> None:
        """It is closed."""

    # --- its life --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self.limits.buffered_bytes)
        self.peer = peer_of(transport)
        self.is_open = True
        if objection := self.objection():
            self.abort(objection)
            return
        self._transport.write(self.greeting + first_words(self.limits))
        self._intake.start(self._transport)
        self._keepalive.start()

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
        self._keepalive.stop()
        self._intake.stop()
        was_over, self._is_over, self.is_open = self._is_over, True, False
        if self._lose_streams(reason) and not was_over:
            self._turns.later(partial(self._lose_streams, reason))
        if not was_over:
            self.lost(reason)

    def _lose_streams(self, reason: str) -> bool:
        """Some of them, in turns: what ends with a stream takes a while, and a peer may have had many. Are there more?"""
        most = max(1, self.limits.frames_per_turn // self.limits.frames_per_call)
        for stream in list(islice(self.streams.values(), most)):
            stream.on_lost(reason)
        return bool(self.streams)

    # --- what leaves -----------------------------------------------------------------------------

    def write(self, data: Piece) -> None:
        """A socket whose peer died fails in one write, and `connection_lost` comes only with the loop's next turn. asyncio
        logs each further write until then, on the user's terminal; so nothing is written to a socket that is closing."""
        if self.is_open and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            if self._is_paused:
                self._intake.owe(len(data))

    def has_room(self, bytes_: int, window: int) -> bool:
        """Is there room for so many bytes of a stream with this window, in one frame, now?"""
        return bytes_ <= min(window, self.window, self.max_frame_bytes) and not self._is_paused

    def pause_writing(self) -> None:
        self._is_paused = True
        self._keepalive.paused_since_s = self.loop.time()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._keepalive.paused_since_s = None
        self._pump()
        self._intake.owe_nothing()

    def _pump(self) -> None:
        """Each stream that could not write what it had, in turn."""
        waiting, self._waiting = self._waiting, {}
        for stream in waiting.values():
            stream.pump()

    def waits(self, stream: Stream) -> None:
        self._waiting[stream.number] = stream

    def holds(self, stream: Stream, more: int) -> None:
        """A peer that sends on many streams what nobody takes is stopped on the one that is too much."""
        self.held_bytes += more
        if more > 0 and self.held_bytes > self.limits.held_bytes_per_connection:
            most = self.limits.held_bytes_per_connection
            raise TooLarge(f"more than {most} bytes wait to be taken on this connection")

    def forget(self, stream: Stream) -> None:
        if self.streams.pop(stream.number, None) is None:
            return
        self._waiting.pop(stream.number, None)
        self._closed.remember(stream.number, stream.late_bytes)

    def fail_stream(self, number: int, code: ErrorCode, reason: str) -> None:
        """The peer broke the protocol on one stream. What it makes us reset is counted (CVE-2025-8671)."""
        self._spend(self._budgets.resets, "resets that this peer makes us send")
        stream = self.streams.get(number)
        if stream is not None and not stream.is_closed:
            stream.on_violation(code, reason)
            return
        self.write(rst_stream(number, code))
        if stream is not None:
            self.forget(stream)
        else:
            self._closed.remember(number, self.limits.stream_window_bytes)

    def _spend(self, budget: Budget, what: str) -> None:
        if not budget.spend(self.loop.time()):
            raise ProtocolError(f"too many {what}", ErrorCode.ENHANCE_YOUR_CALM)

    # --- what comes ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._keepalive.was_heard = True
        self._intake.feed(data)

    def _on_data(self, came: Frame) -> None:
        if self._block is not None or not self.has_settings or not came.stream:
            raise ProtocolError(f"DATA on stream {came.stream}, where it must not be")
        self._room -= came.counted
        if self._room < self.limits.connection_window_bytes // 2:
            if self._room < 0:
                what = "more was sent than the connection was granted"
                raise ProtocolError(what, ErrorCode.FLOW_CONTROL_ERROR)
            self.write(window_update(0, self.limits.connection_window_bytes - self._room))
            self._room = self.limits.connection_window_bytes
        if not came.payload and not came.flags & END_STREAM:
            self._spend(self._budgets.empty_frames, "empty frames")
        stream = self.streams.get(came.stream)
        if stream is None:
            self._on_late(came.stream, "DATA", came.counted)
            return
        if (stream.has_ended and not stream.is_closed) or stream.was_ended:
            self.fail_stream(came.stream, ErrorCode.STREAM_CLOSED, "DATA after the end")
            return
        if stream.declared_bytes is not None and len(came.payload) > stream.declared_bytes:
            self.fail_stream(came.stream, ErrorCode.PROTOCOL_ERROR, "more DATA than was declared")
            return
        try:
            if came.payload:
                stream.on_data(came.payload, came.counted)
            if came.flags & END_STREAM:
                self._on_end(stream)
            elif stream.is_closed and stream.declared_bytes is None:
                self.fail_stream(came.stream, ErrorCode.NO_ERROR, "it was answered already")
        except Unreadable as error:
            stream.on_unreadable(error)

    def _on_end(self, stream: Stream) -> None:
        if stream.declared_bytes:
            self.fail_stream(stream.number, ErrorCode.PROTOCOL_ERROR, "less DATA than was declared")
        else:
            stream.on_end()

    def _on_late(self, number: int, what: str, counted: int = 0) -> None:
        """A frame for a stream that is not open. It may have been on its way when we closed the stream; a stream that the
        peer closed, or that never began, is none it could have meant."""
        self._refuse_idle(number, what)
        code = self._closed.error(number, counted)
        if code is not None:
            raise ProtocolError(f"{what} on stream {number}, which is closed", code)

    def _refuse_idle(self, number: int, what: str) -> None:
        if self.is_idle(number):
            raise ProtocolError(f"{what} on stream {number}, which has not begun")

    def _on_control(self, came: Frame) -> None:
        if not self.has_settings and (came.kind != SETTINGS or came.flags & ACK):
            raise ProtocolError("the first frame must be SETTINGS")
        if self._block is not None and (came.kind != CONTINUATION or came.stream != self._block[0]):
            raise ProtocolError("another frame between headers")
        if came.kind != HEADERS or not came.stream:  # of those nothing else is wrong by itself
            check(came)
        handle = self._on.get(came.kind)
        if handle is not None:
            handle(came.flags, came.stream, came.payload)
        else:  # PRIORITY, or not of this version
            self._spend(
                self._budgets.empty_frames, f"frames that say nothing ({name_of(came.kind)})"
            )

    def _on_headers(self, flags: int, number: int, payload: Piece) -> None:
        if flags & END_HEADERS:
            self.headers_came(number, bytes(payload), ends=bool(flags & END_STREAM))
        else:
            self._block = (number, flags, bytearray(payload))
            self._keepalive.headers_since_s = self.loop.time()

    def _on_continuation(self, flags: int, number: int, payload: Piece) -> None:
        if self._block is None:
            raise ProtocolError("CONTINUATION of nothing")
        _, first_flags, block = self._block
        if not payload:
            self._spend(self._budgets.empty_frames, "empty frames")
        block += payload
        if len(block) > MAX_BLOCK_BYTES:
            raise ProtocolError("headers are too large", ErrorCode.ENHANCE_YOUR_CALM)
        if flags & END_HEADERS:
            self._block = self._keepalive.headers_since_s = None
            self.headers_came(number, bytes(block), ends=bool(first_flags & END_STREAM))

    def _on_rst_stream(self, flags: int, number: int, payload: Piece) -> None:
        self._refuse_idle(number, "RST_STREAM")
        stream = self.streams.get(number)
        self._spend(self._budgets.resets, "resets")
        if stream is not None:
            stream.on_reset(number_of(payload))
        else:
            self._closed.ended(number)

    def _on_settings(self, flags: int, number: int, payload: Piece) -> None:
        self._spend(self._budgets.settings, "SETTINGS")
        if flags & ACK:
            self.header_reader.is_settled = True
            return
        for name, value in settings_of(payload):
            self._set(name, value)
        self.write(frame(SETTINGS, ACK, 0))
        self.has_settings = True
        self._pump()
        self.peer_is_ready()

    def _set(self, name: int, value: int) -> None:
        check_setting(name, value)
        if name == INITIAL_WINDOW_SIZE:
            self._resize_windows(value)
        elif name == MAX_FRAME_SIZE:
            self.max_frame_bytes = min(value, MAX_FRAME_BYTES)
        elif name == MAX_CONCURRENT_STREAMS:
            self.max_streams = value

    def _resize_windows(self, size: int) -> None:
        """Also those of streams that are open; one may become negative (RFC 9113, section 6.9.2)."""
        more = size - self.initial_window
        for stream in self.streams.values():
            stream.window += more
            if stream.window > MOST_WINDOW:
                raise ProtocolError("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
        self.initial_window = size

    def _on_ping(self, flags: int, number: int, payload: Piece) -> None:
        self._spend(self._budgets.pings, "pings")
        if not flags & ACK:
            self.write(frame(PING, ACK, 0, bytes(payload)))

    def _on_goaway(self, flags: int, number: int, payload: Piece) -> None:
        last_stream = number_of(payload) & MOST_WINDOW
        self.peer_leaves(last_stream, bytes(payload[8:]).decode(errors="replace"))

    def _on_window_update(self, flags: int, number: int, payload: Piece) -> None:
        self._spend(self._budgets.window_updates, "WINDOW_UPDATEs")
        more = number_of(payload) & MOST_WINDOW
        if not number:
            self.window += more
            if not more:
                raise ProtocolError("WINDOW_UPDATE of 0")
            if self.window > MOST_WINDOW:
                raise ProtocolError("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            self._pump()
            return
        stream = self.streams.get(number)
        if stream is None:
            self._refuse_idle(number, "WINDOW_UPDATE")
            return
        stream.window += more
        if not more:
            self.fail_stream(number, ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
        elif stream.window > MOST_WINDOW:
            self.fail_stream(number, ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
        else:
            stream.pump()
