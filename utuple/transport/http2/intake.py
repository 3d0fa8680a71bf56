"""Reading from a peer at a pace that leaves others theirs.

Frames of one connection are handled in turns (`turns`): a peer that sends thousands of small ones at once waits between them for
everybody else, and for others who do the same. And nothing is read from a peer that makes us answer and does not read the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from utuple.transport.http2.frames import DATA, ErrorCode, Frame, FrameReader, ProtocolError
from utuple.transport.http2.limits import Limits
from utuple.transport.http2.settings import MAX_FRAME_BYTES
from utuple.transport.http2.turns import Turns

Handle = Callable[[Frame], None]


class Intake:
    def __init__(
        self,
        turns: Turns,
        limits: Limits,
        on: tuple[Handle, Handle],
        fail: Callable[[ErrorCode, str], None],
    ) -> None:
        """`on`: what handles DATA, and what every other frame. `fail` is told what ends the connection."""
        self._turns = turns
        self._limits = limits
        self._on_data, self._on_control = on
        self._fail = fail
        self._frames = FrameReader(MAX_FRAME_BYTES, limits.frames_per_call)
        self._transport: asyncio.Transport | None = None
        self._is_reading = True
        self._is_behind = False
        """Frames wait for the loop's next turn."""
        self._owed_bytes = 0

    def start(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def stop(self) -> None:
        """Nothing more is handled."""
        self._transport = None

    def feed(self, data: bytes) -> None:
        if self._is_behind:
            self._frames.keep(data)
        else:
            self._handle(data)

    def _handle(self, data: bytes) -> None:
        try:
            for came in self._frames.feed(data, self._limits.frames_per_turn):
                if came.kind == DATA:
                    self._on_data(came)
                else:
                    self._on_control(came)
        except ProtocolError as error:
            self._fail(error.code, str(error))
            return
        if self._frames.has_more and self._transport is not None:
            self._set_reading(False)
            if not self._is_behind:
                self._is_behind = True
                self._turns.later(self._go_on)

    def _go_on(self) -> bool:
        """The next few; are there more?"""
        if self._transport is not None:
            self._handle(b"")
        self._is_behind = self._frames.has_more and self._transport is not None
        self._resume()
        return self._is_behind

    def owe(self, bytes_: int) -> None:
        """So many bytes of answers wait because the peer does not read. Messages are not among them, they wait in their streams:
        so two peers that are both full of messages go on reading."""
        self._owed_bytes += bytes_
        if self._is_owing:
            self._set_reading(False)

    def owe_nothing(self) -> None:
        self._owed_bytes = 0
        self._resume()

    @property
    def _is_owing(self) -> bool:
        return self._owed_bytes > self._limits.unsent_control_bytes

    def _resume(self) -> None:
        if not self._is_behind and not self._is_owing:
            self._set_reading(True)

    def _set_reading(self, is_reading: bool) -> None:
        transport = self._transport
        if is_reading is self._is_reading or transport is None or transport.is_closing():
            return
        self._is_reading = is_reading
        if is_reading:
            transport.resume_reading()
        else:
            transport.pause_reading()
