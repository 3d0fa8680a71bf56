"""What waits to be written to one reader's stream, and where the writing task fetches it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum

from utuple.model.utuple import Family
from utuple.server.cursors import Sending


class News(Enum):
    ATTACHED = 1
    UNKNOWN = 2
    DETACHED = 3
    REPLACED = 4


@dataclass(frozen=True, slots=True)
class Notice:
    news: News
    formal: bytes


@dataclass(frozen=True, slots=True)
class CommandSending:
    """One CA for one device."""

    formal: bytes
    command: bytes
    seq: int
    family: Family
    address: str
    payload: bytes
    stored: bool
    """The command was there before the device."""


Outgoing = Sending | CommandSending | Notice


class Outbox:
    """Rows in it are bounded by the cursors' limits, notices by the reader's own messages."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Outgoing | None] = asyncio.Queue()

    def put(self, item: Outgoing) -> None:
        self._queue.put_nowait(item)

    def close(self) -> None:
        self._queue.put_nowait(None)

    @property
    def is_empty(self) -> bool:
        return self._queue.empty()

    async def get(self) -> Outgoing | None:
        """None when it is closed."""
        return await self._queue.get()
