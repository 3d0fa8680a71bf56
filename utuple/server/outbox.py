"""What waits to be written to one reader's stream, and where the writing task fetches it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
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


@dataclass(frozen=True, slots=True)
class LineNews:
    """Lines the reader may not know yet, and where their members are."""

    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]


Outgoing = Sending | CommandSending | Notice | LineNews


class Outbox:
    """Rows in it are bounded by the cursors' limits, notices by the reader's own messages, lines by the
    moves of load: each is told once an epoch."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Outgoing | None] = asyncio.Queue()
        self._told = Table()

    def put(self, item: Outgoing) -> None:
        self._queue.put_nowait(item)

    def put_lines(self, lines: Iterable[Line], servers: Mapping[str, ServerInfo]) -> None:
        """Those of these lines that this stream was not told yet."""
        news = tuple(line for line in lines if self._told.hear(line))
        if news:
            names = sorted({member.name for line in news for member in line.members})
            self.put(LineNews(news, tuple(servers[name] for name in names if name in servers)))

    def close(self) -> None:
        self._queue.put_nowait(None)

    @property
    def is_empty(self) -> bool:
        return self._queue.empty()

    async def get(self) -> Outgoing | None:
        """None when it is closed."""
        return await self._queue.get()
