"""Answers that last: each piece is written when the client has taken what was before; one that takes nothing for too long
is dropped. Nothing is collected for it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

from starlette.types import Receive, Scope, Send

import utuple
from utuple.doors.http.problems import Problem, encoded, problem_of
from utuple.runtime.logs import Log

_log = Log("utuple.doors.http.streaming")

Pieces = AsyncGenerator[bytes, None]

EVENT_STREAM = "text/event-stream"
BROKEN = (ConnectionError, OSError)
ABORT = "utuple.abort"
"""Of a request's scope: cuts its connection."""


class Streams:
    """How many answers that last there are, and what became of those that did not."""

    def __init__(self, most: int, stalled_s: float) -> None:
        self.most = most
        self.stalled_s = stalled_s
        self.open = 0
        self.dropped = 0
        """Clients that took nothing for too long."""
        self.tasks: set[asyncio.Task[Any]] = set()

    def admit(self) -> None:
        if self.open >= self.most:
            raise Problem(
                503,
                "Too many streams",
                f"{self.open} are open, and {self.most} is the limit: close some, or try again later",
                headers={"Retry-After": "5"},
            )

    def close(self) -> None:
        """The door stops."""
        for task in list(self.tasks):
            task.cancel()


class Streamed:
    """An ASGI answer made of pieces. The first one is awaited before the status is sent, so that what fails at once is
    answered as an error."""

    def __init__(
        self,
        streams: Streams,
        pieces: Pieces,
        media_type: str,
        *,
        lasts: bool = True,
        stalled: Callable[[], None] = lambda: None,
    ) -> None:
        self._streams = streams
        self._pieces = pieces
        self._media_type = media_type
        self._lasts = lasts
        self._stalled = stalled

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        streams = self._streams
        if self._lasts:
            streams.admit()
        streams.open += self._lasts
        writing = asyncio.create_task(self._write(send, only_head=scope["method"] == "HEAD"))
        leaving = asyncio.create_task(_gone(receive))
        streams.tasks.add(writing)
        try:
            await asyncio.wait((writing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if writing.done() and not writing.cancelled() and not writing.result():
                scope[ABORT]()
                await leaving
        finally:
            for task in (writing, leaving):
                task.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)
            streams.tasks.discard(writing)
            streams.open -= self._lasts

    async def _write(self, send: Send, *, only_head: bool) -> bool:
        """Whether it is whole. One that is not must not look so: its connection is cut. Of HEAD the first piece is made, for its
        status, and nothing after it: it might last for ever."""
        async with aclosing(self._pieces) as pieces:
            first = await anext(pieces, None)
            headers = [
                (b"content-type", self._media_type.encode()),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
            ]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                if first is not None and not only_head:
                    await self._send(send, first)
                    async for piece in pieces:
                        await self._send(send, piece)
            except TimeoutError:
                self._streams.dropped += 1
                self._stalled()
                _log.warning("client dropped", reason="it took nothing", s=self._streams.stalled_s)
                return False
            except utuple.UTupleError as error:
                _log.warning("answer cut", reason=error)
                return False
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return True

    async def _send(self, send: Send, piece: bytes) -> None:
        async with asyncio.timeout(self._streams.stalled_s):
            await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _gone(receive: Receive) -> None:
    """Returns when the client has closed."""
    while (await receive())["type"] != "http.disconnect":
        """A rest of the body, which nobody wanted."""


# --- server-sent events --------------------------------------------------------------------------


def event(data: bytes, *, name: str = "", id: str = "") -> bytes:
    """One event. JSON has no end of line within."""
    head = f"id: {id}\n" if id else ""
    head += f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + data + b"\n\n"


def problem_event(error: Exception) -> bytes:
    """What ends a stream that had begun."""
    return event(encoded(problem_of(error).body), name="problem")


async def told_at_the_end(pieces: Pieces) -> Pieces:
    """The stream, and if it fails after its first piece, why."""
    is_begun = False
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield piece
                is_begun = True
        except utuple.UTupleError as error:
            if not is_begun:
                raise
            with suppress(*BROKEN):
                yield problem_event(error)
