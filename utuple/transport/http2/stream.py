"""One HTTP/2 stream as either end has it: messages that came, messages that leave, and how it ends.

**Sending** never waits. A message that fits into the windows and the socket's buffer is written in the same turn of the
event loop; one that does not is queued, and written piece by piece as the peer grants room (`pump`). Backpressure is
for the sender to ask for: `is_writable` is false while anything is queued, `drained` waits for the end of that, and
`when_writable` names a function that is called then. Nothing overtakes what is queued.

**Receiving** is one of two, for the whole life of a stream: `receive` waits for one message, as a call with a few
answers does; `receive_all` gives each message to a function in the turn of the event loop in which it came, as busy
streams do, where waking a task for every message would cost more than the message. `pause` stops that function from
being called, and messages are kept.

The peer may send `STREAM_WINDOW_BYTES` that were not received yet. The part of a message whose end is still on its way
does not count, because otherwise a message larger than the window would never arrive.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from utuple.transport.http2.frames import (
    DATA,
    END_STREAM,
    ErrorCode,
    Piece,
    ProtocolError,
    head,
    rst_stream,
    window_update,
)
from utuple.transport.http2.headers import Header
from utuple.transport.http2.limits import SERVER
from utuple.transport.messages import PREFIX_BYTES, MessageReader, Unreadable, prefix
from utuple.transport.peer import Peer

STREAM_WINDOW_BYTES = SERVER.stream_window_bytes
_GRANTED_BYTES = STREAM_WINDOW_BYTES // 2
"""Room is granted to the peer in portions of at least this, so that small messages are not followed by updates."""
_UNCOUNTED_BYTES = 4096
"""A stream that keeps no more than this is not counted: most messages are taken in the turn in which they come."""
_REMEMBERED_CLOSED = 500
"""And once more as many."""
_LATE_FRAME_BYTES = 64
_ENDED = -1
_JOINED_BYTES = 64 << 10
"""A message up to this is copied behind its frame's head; a larger one is written from where it lies."""


class Carrier(Protocol):
    """What a stream asks of its connection."""

    loop: asyncio.AbstractEventLoop
    window: int
    """Bytes the peer accepts now, of all streams together."""
    initial_window: int
    max_frame_bytes: int
    peer: Peer

    def has_room(self, bytes_: int, window: int) -> bool:
        """Is there room for so many bytes of a stream with this window, in one frame, now?"""

    def write(self, data: Piece) -> None: ...

    def waits(self, stream: Stream) -> None:
        """It has something to write, and no room."""

    def holds(self, stream: Stream, more: int) -> None:
        """So many bytes more, or fewer, that came on this stream are kept."""

    def forget(self, stream: Stream) -> None:
        """It is closed."""


class Stream:
    """One task receives, and one sends."""

    def __init__(self, connection: Carrier, number: int, max_message_bytes: int) -> None:
        self.connection = connection
        self.number = number
        self.window = connection.initial_window
        """Bytes the peer accepts on this stream now."""
        self.has_ended = False
        """The peer sends no more."""
        self.is_closed = False
        """Neither end sends any more."""
        self.was_ended = False
        """It was the peer that ended it: whatever else it sends on it breaks the protocol."""
        self.declared_bytes: int | None = None
        """What the peer said that it would send."""
        self.unfinished_since_s: float | None = None
        """When the message that is not whole yet was first seen to be so."""
        self._room = STREAM_WINDOW_BYTES
        """What the peer may still send before more is granted."""
        self._kept_bytes = 0
        """As the connection knows it."""
        self._messages = MessageReader(max_message_bytes)
        self._inbox: deque[bytes] = deque()
        self._held_bytes = 0
        """In the inbox, prefixes included."""
        self._received_bytes = 0
        self._granted_bytes = 0
        self._arrival: asyncio.Future[None] | None = None
        """Whoever waits for a message, or for the end of all of them."""
        self._handle: Callable[[bytes], None] | None = None
        self._is_paused = False
        self._outgoing: deque[tuple[bytes, memoryview]] = deque()
        """Messages that wait for room: what is left of each, with its prefix if that was not written yet."""
        self._is_ending = False
        """After the last of them, the peer is to be told that there are no more."""
        self._drained: asyncio.Future[None] | None = None
        self._on_writable: Callable[[], None] | None = None

    # --- receiving -------------------------------------------------------------------------------

    def on_data(self, piece: Piece, counted: int) -> None:
        self._received_bytes += counted
        self._room -= counted
        if self._room < 0:
            what = f"stream {self.number} sends more than it was granted"
            raise ProtocolError(what, ErrorCode.FLOW_CONTROL_ERROR)
        if self.declared_bytes is not None:
            self.declared_bytes -= len(piece)
        for message in self._messages.feed(piece):
            self._inbox.append(message)
            self._held_bytes += len(message) + PREFIX_BYTES
        if self._inbox:
            self._arrived()
        self._grant()
        if self._kept_bytes or self._held_bytes + self._messages.kept_bytes > _UNCOUNTED_BYTES:
            self._account()

    @property
    def late_bytes(self) -> int:
        """What may still come after its end, because it was on its way."""
        return _ENDED if self.was_ended else max(self._room, 0)

    @property
    def is_unfinished(self) -> bool:
        return not self._messages.is_between

    def _account(self) -> None:
        if self.is_closed:
            return
        kept = self._held_bytes + self._messages.kept_bytes
        if kept != self._kept_bytes:
            more, self._kept_bytes = kept - self._kept_bytes, kept
            self.connection.holds(self, more)

    async def receive(self) -> bytes | None:
        """The next message; None when there is none any more."""
        while not self._inbox:
            if self.has_ended:
                return None
            self._arrival = self.connection.loop.create_future()
            await self._arrival
        message = self._next()
        self._grant()
        if self._kept_bytes:
            self._account()
        return message

    async def receive_all(self, handle: Callable[[bytes], None]) -> None:
        """Give each message to `handle` as it comes, until the peer has sent all. If `handle` raises, that is raised
        here and no further message is given to it."""
        self._handle = handle
        self._arrival = self.connection.loop.create_future()
        self._arrived()
        try:
            await self._arrival
        finally:
            self._handle = None

    def pause(self) -> None:
        """Keep what comes: the peer sends no more than a window of it."""
        self._is_paused = True

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._arrived()
            self._grant()
            self._account()

    def _arrived(self) -> None:
        """Something is in the inbox, or the end has come."""
        if self._handle is None:
            self._wake_receiver()
            return
        try:
            while self._inbox and not self._is_paused and self._handle is not None:
                self._handle(self._next())
        except Exception as error:  # noqa: BLE001  it is raised where the messages are received
            self._handle = None
            if self._arrival is not None and not self._arrival.done():
                self._arrival.set_exception(error)
        if self.has_ended and (not self._inbox or self.is_closed):
            self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _next(self) -> bytes:
        message = self._inbox.popleft()
        self._held_bytes -= len(message) + PREFIX_BYTES
        return message

    def _grant(self) -> None:
        room = self._received_bytes - self._granted_bytes - self._held_bytes
        if room >= _GRANTED_BYTES and not self.has_ended:
            self._granted_bytes += room
            self._room += room
            self.connection.write(window_update(self.number, room))

    # --- how it ends -----------------------------------------------------------------------------

    def on_headers(
        self, headers: Sequence[Header], fields: Mapping[str, str], *, ends: bool
    ) -> None:
        raise NotImplementedError

    def on_end(self) -> None:
        """The peer has sent all."""
        self.has_ended = True
        if not self._messages.is_between:
            raise Unreadable("a message is broken off")
        self._arrived()

    def on_unreadable(self, error: Unreadable) -> None:
        raise NotImplementedError

    def on_violation(self, code: ErrorCode, reason: str) -> None:
        """The peer broke the protocol on this stream alone."""
        self.reset(code)

    def on_reset(self, code: int) -> None:
        """The peer neither reads nor sends any more."""
        self.has_ended = self.was_ended = True
        self.close()

    def on_lost(self, reason: str) -> None:
        """The connection is gone."""
        self.close()

    def close(self) -> None:
        self.stop()
        self.connection.forget(self)

    def stop(self) -> None:
        """Nothing more is sent on it, and nothing that comes is kept."""
        if self.is_closed:
            return
        self.was_ended = self.was_ended or self.has_ended
        self.is_closed = self.has_ended = True
        self._outgoing.clear()
        self._on_writable = None
        if self._kept_bytes:
            self.connection.holds(self, -self._kept_bytes)
            self._kept_bytes = 0
        self._arrived()
        self._has_drained()

    # --- sending ---------------------------------------------------------------------------------

    @property
    def is_writable(self) -> bool:
        """Nothing waits to be written. What is sent now may have to, and then this is false."""
        return not self._outgoing and not self.is_closed

    def send(self, message: bytes) -> None:
        """Now if there is room, else after what is queued already. In vain if the stream is closed."""
        if self.is_closed:
            return
        size, connection = PREFIX_BYTES + len(message), self.connection
        if self._outgoing or size > _JOINED_BYTES or not connection.has_room(size, self.window):
            self._outgoing.append((prefix(message), memoryview(message)))
            self.pump()
            return
        self.window -= size
        connection.window -= size
        connection.write(head(size, DATA, 0, self.number) + prefix(message) + message)

    def send_last(self, text: bytes) -> None:
        """As it is, and nothing after it."""
        self._is_ending = True
        if text:
            self._outgoing.append((b"", memoryview(text)))
            self.pump()
        else:
            self._has_drained()

    def pump(self) -> None:
        """Write what is queued, as far as the windows and the socket's buffer have room."""
        connection, queue = self.connection, self._outgoing
        if not queue:
            return
        while queue and connection.has_room(1, self.window):
            before, rest = queue[0]
            room = min(self.window, connection.window, connection.max_frame_bytes)
            first, part = before[:room], rest[: max(0, room - len(before))]
            size = len(first) + len(part)
            self.window -= size
            connection.window -= size
            connection.write(head(size, DATA, 0, self.number) + first)
            if part:
                connection.write(part)
            if len(first) < len(before) or len(part) < len(rest):
                queue[0] = (before[len(first) :], rest[len(part) :])
            else:
                queue.popleft()
        if queue:
            connection.waits(self)
        else:
            self._has_drained()

    def _has_drained(self) -> None:
        if self._is_ending and not self.is_closed:
            self.connection.write(head(0, DATA, END_STREAM, self.number))
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._on_writable is not None:
            self._on_writable()

    async def drained(self) -> bool:
        """Wait until nothing is queued. False if the stream was closed instead."""
        while self._outgoing:
            self._drained = self.connection.loop.create_future()
            await self._drained
        return not self.is_closed

    def when_writable(self, resume: Callable[[], None]) -> None:
        """Call this whenever the last of what was queued has been written."""
        self._on_writable = resume

    def end(self) -> None:
        """We send no more."""
        if self._outgoing:
            self._is_ending = True
        elif not self.is_closed:
            self.connection.write(head(0, DATA, END_STREAM, self.number))

    def reset(self, code: ErrorCode) -> None:
        if not self.is_closed:
            self.connection.write(rst_stream(self.number, code))
            self.close()


class ClosedStreams:
    """Those that were closed last: what still comes on one is judged by who ended it, and by how much may have been on its way."""

    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        """Bytes that may still come; none on a stream that the peer ended."""
        self._older: dict[int, int] = {}

    def remember(self, number: int, left: int) -> None:
        self._left[number] = left
        if len(self._left) >= _REMEMBERED_CLOSED:
            self._older, self._left = self._left, {}

    def ended(self, number: int) -> None:
        """Both ends closed it at once."""
        if self._of(number) is not None:
            self.remember(number, _ENDED)

    def _of(self, number: int) -> int | None:
        return self._left.get(number, self._older.get(number))

    def error(self, number: int, counted: int = 0) -> ErrorCode | None:
        """What it is to send so many bytes on this stream. Nothing if it was we who closed it: they may have been on their way.
        A peer that does not stop then, byte by byte, is charged for the frames too."""
        left = self._of(number)
        if left is None:
            return ErrorCode.PROTOCOL_ERROR
        if left == _ENDED:
            return ErrorCode.STREAM_CLOSED
        left -= max(counted, _LATE_FRAME_BYTES)
        self.remember(number, max(left, 0))
        return None if left >= 0 else ErrorCode.FLOW_CONTROL_ERROR
