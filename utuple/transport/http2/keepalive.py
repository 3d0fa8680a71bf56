"""Whether the peer of a connection is still there, and goes on with what it began."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from utuple.transport.http2.frames import PING, PING_BYTES, ErrorCode, Piece, frame
from utuple.transport.http2.limits import Limits
from utuple.transport.http2.stream import Stream
from utuple.transport.messages import TooLarge


class Kept(Protocol):
    """What this asks of its connection."""

    loop: asyncio.AbstractEventLoop
    limits: Limits

    @property
    def streams(self) -> Mapping[int, Stream]: ...

    def write(self, data: Piece) -> None: ...

    def close(self, code: ErrorCode = ..., reason: str = ...) -> None: ...

    def abort(self, reason: str) -> None: ...

    def tick(self, now_s: float) -> None:
        """Some seconds have passed."""


class Keepalive:
    def __init__(self, connection: Kept) -> None:
        self._connection = connection
        self._timer: asyncio.TimerHandle | None = None
        self.was_heard = False
        """Something came since this was last looked at."""
        self.paused_since_s: float | None = None
        """Since when the peer has accepted nothing of what was written."""
        self.headers_since_s: float | None = None
        """When headers began that are not whole yet."""

    def start(self) -> None:
        self._call_later(self._connection.limits.keepalive_s, self._check_alive)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _call_later(self, delay_s: float, check: Callable[[], None]) -> None:
        self._timer = self._connection.loop.call_later(delay_s, check)

    def _check_alive(self) -> None:
        """If nothing came for a while, ask the peer to answer a ping. A connection that was cut without a word, by a
        machine that lost its power or a cable that was pulled, is noticed by this alone."""
        connection = self._connection
        now_s = connection.loop.time()
        if slow := self._slowness(now_s):
            connection.close(ErrorCode.ENHANCE_YOUR_CALM, slow)
            return
        for stream in list(connection.streams.values()):
            self._check_stream(stream, now_s)
        connection.tick(now_s)
        if self._timer is None:
            return  # it was closed
        if self.was_heard:
            self.was_heard = False
            self.start()
            return
        connection.write(frame(PING, 0, 0, bytes(PING_BYTES)))
        self._call_later(connection.limits.keepalive_timeout_s, self._check_answer)

    def _check_answer(self) -> None:
        if self.was_heard:
            self._check_alive()
        else:
            self._connection.abort("the peer does not answer")

    def _slowness(self, now_s: float) -> str:
        """What the peer has begun and does not go on with."""
        limits = self._connection.limits
        if _is_over(self.paused_since_s, now_s, limits.stalled_s):
            return f"nothing was read for {limits.stalled_s:g} s"
        if _is_over(self.headers_since_s, now_s, limits.unfinished_s):
            return f"headers are not whole after {limits.unfinished_s:g} s"
        return ""

    def _check_stream(self, stream: Stream, now_s: float) -> None:
        limit_s = self._connection.limits.unfinished_s
        if not stream.is_unfinished:
            stream.unfinished_since_s = None
        elif stream.unfinished_since_s is None:
            stream.unfinished_since_s = now_s
        elif _is_over(stream.unfinished_since_s, now_s, limit_s):
            stream.on_unreadable(TooLarge(f"a message is not whole after {limit_s:g} s"))


def _is_over(since_s: float | None, now_s: float, limit_s: float) -> bool:
    return since_s is not None and now_s - since_s > limit_s
