"""What a program sees of a busy stream: messages both ways, none of which waits for a task to wake up.

`Context` on a server has all of it. It is a protocol, so that a program's own tests need no network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class MessageSink(Protocol):
    @property
    def is_writable(self) -> bool:
        """Nothing that was sent waits for room. Who sends all the same is queued, without a limit."""

    def send(self, message: Any) -> None: ...

    def when_writable(self, resume: Callable[[], None]) -> None:
        """Call this each time the last message that had to wait was written."""

    async def drained(self) -> bool:
        """Wait until then. False if the stream was closed instead."""


class MessageSource(Protocol):
    async def receive_all(self, handle: Callable[[Any], None]) -> None:
        """Give each message to `handle` as it comes, until the peer has sent all. Raises what `handle` raises."""

    def pause(self) -> None:
        """Keep messages, and let the peer send only so many more."""

    def resume(self) -> None: ...


class Duplex(MessageSink, MessageSource, Protocol): ...
