"""One HTTP/2 stream as either end has it: messages that came and wait, messages that leave, and how it ends.

The peer may send `STREAM_WINDOW_BYTES` that nobody has taken yet. What is part of a message still on its way does not
count, or a message larger than that would never come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from utuple.transport.frames import (
    DATA,
    END_STREAM,
    ErrorCode,
    Piece,
    head,
    rst_stream,
    window_update,
)
from utuple.transport.headers import Header
from utuple.transport.messages import PREFIX_BYTES, MessageReader, Unreadable, prefix

if TYPE_CHECKING:
    from utuple.transport.connection import Connection

STREAM_WINDOW_BYTES = 4 << 20
_GRANTED_BYTES = STREAM_WINDOW_BYTES // 2
"""Room is given back in portions of this."""
_JOINED_BYTES = 64 << 10
"""A message up to this is copied behind its head; a larger one is written from where it lies."""


class Stream:
    """One task reads, and one writes."""

    def __init__(self, connection: Connection, number: int, max_message_bytes: int) -> None:
        self.connection = connection
        self.number = number
        self.window = connection.initial_window
        """Bytes the peer takes."""
        self.has_ended = False
        """The peer says no more."""
        self.is_closed = False
        """Neither end says anything."""
        self._messages = MessageReader(max_message_bytes)
        self._inbox: deque[bytes] = deque()
        self._held_bytes = 0
        self._received_bytes = 0
        self._granted_bytes = 0
        self._reading: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._is_sending = False
        """A message is on its way in pieces: none may come between them."""
        self._take: Callable[[bytes], bool] | None = None

    # --- what comes ------------------------------------------------------------------------------

    def on_data(self, piece: Piece, counted: int) -> None:
        self._received_bytes += counted
        for message in self._messages.feed(piece):
            if self._take is None or self._inbox or not self._take(message):
                self._inbox.append(message)
                self._held_bytes += len(message) + PREFIX_BYTES
                self.stir()
        self._grant()

    def take_now(self, deserialize: Callable[[bytes], Any], take: Callable[[Any], bool]) -> None:
        """Give each message to `take` as it comes, in place of whoever reads. What it does not take is to be read, and
        so is what comes after that until it was."""

        def taken(message: bytes) -> bool:
            try:
                came = deserialize(message)
            except Exception:  # noqa: BLE001  whatever a deserializer raises: who reads meets it as well
                return False
            return take(came)

        self._take = taken

    def on_headers(self, headers: Sequence[Header], *, ends: bool) -> None:
        raise NotImplementedError

    def on_end(self) -> None:
        """The peer has said all."""
        if not self._messages.is_between:
            raise Unreadable("a message is broken off")
        self.has_ended = True
        self.stir()

    def on_unreadable(self, error: Unreadable) -> None:
        raise NotImplementedError

    def on_reset(self, code: int) -> None:
        """The peer takes and says no more."""
        self.close()

    def on_lost(self, reason: str) -> None:
        """The connection is gone."""
        self.close()

    def close(self) -> None:
        self.is_closed = self.has_ended = True
        self.connection.forget(self)
        self.stir()
        self.stir_writer()

    def stir(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None and not reading.done():
            reading.set_result(None)

    def stir_writer(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None and not writing.done():
            writing.set_result(None)

    async def receive(self) -> bytes | None:
        """The next message; None when there is none any more."""
        while not self._inbox:
            if self.has_ended:
                return None
            self._reading = self.connection.loop.create_future()
            await self._reading
        message = self._inbox.popleft()
        self._held_bytes -= len(message) + PREFIX_BYTES
        self._grant()
        return message

    def _grant(self) -> None:
        room = self._received_bytes - self._granted_bytes - self._held_bytes
        if room >= _GRANTED_BYTES and not self.has_ended:
            self._granted_bytes += room
            self.connection.write(window_update(self.number, room))

    # --- what leaves -----------------------------------------------------------------------------

    async def send(self, message: bytes) -> bool:
        """False if the stream is closed, and nobody will read it."""
        if self.send_now(message):
            return True
        self._is_sending = True
        try:
            return await self._send_slowly(message)
        finally:
            self._is_sending = False

    def send_now(self, message: bytes) -> bool:
        """False if that would take a while, or is in vain."""
        size = PREFIX_BYTES + len(message)
        connection = self.connection
        if self._is_sending or self.is_closed or size > _JOINED_BYTES:
            return False
        if not connection.takes(size, self.window):
            return False
        self.window -= size
        connection.window -= size
        connection.write(head(size, DATA, 0, self.number) + prefix(message) + message)
        return True

    async def _send_slowly(self, message: bytes) -> bool:
        """As the peer takes it."""
        connection = self.connection
        view, before = memoryview(message), prefix(message)
        while before or view:
            while not self.is_closed and not connection.takes(PREFIX_BYTES, self.window):
                self._writing = connection.loop.create_future()
                await self._writing
            if self.is_closed:
                return False
            size = min(
                self.window, connection.window, connection.max_frame_bytes, len(before) + len(view)
            )
            part = view[: size - len(before)]
            view = view[len(part) :]
            self.window -= size
            connection.window -= size
            connection.write(head(size, DATA, 0, self.number) + before)
            if part:
                connection.write(part)
            before = b""
        return True

    def end(self) -> None:
        """We have said all."""
        if not self.is_closed:
            self.connection.write(head(0, DATA, END_STREAM, self.number))

    def reset(self, code: ErrorCode) -> None:
        if not self.is_closed:
            self.connection.write(rst_stream(self.number, code))
            self.close()
