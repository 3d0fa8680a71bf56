"""What waits to be written to one reader's stream. Pure."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
from utuple.delivery.notice import Notice
from utuple.model.columns import concatenate
from utuple.model.utuple import Family
from utuple.server.delivering.absent.absences import Absence
from utuple.server.delivering.cursor import Sending
from utuple.store.contract import Batch

JOINED_ROWS = 32_768
"""Live deliveries that may leave as one message: enough for a thousand formals to have some each."""


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


@dataclass(frozen=True, slots=True)
class DropNotice:
    """What was dropped of the span of one absence, which is decided."""

    absence: Absence


Outgoing = Sending | CommandSending | Notice | LineNews | DropNotice


class Outbox:
    """A stream's queue of what is to be written. Rows in it are bounded by the cursors' limits, notices by the reader's
    own messages, and lines by the moves of load, because each is put in once an epoch.

    Whoever puts something in calls `flush` when it has put in all it has; the stream then writes at once if its wire
    has room, and otherwise when it has. What has queued by then leaves as one message: to a reader of many formals each
    message costs as much as its deliveries do."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self.flush = flush
        self._items: deque[Outgoing] = deque()
        self._announced = Table()

    def put(self, item: Outgoing) -> None:
        self._items.append(item)

    def put_lines(self, lines: Iterable[Line], servers: Mapping[str, ServerInfo]) -> None:
        """Those of these lines that this stream was not sent yet."""
        news = tuple(line for line in lines if self._announced.hear(line))
        if news:
            names = sorted({member.name for line in news for member in line.members})
            self.put(LineNews(news, tuple(servers[name] for name in names if name in servers)))

    def drop(self, formal: bytes) -> None:
        """What waits for this formal alone is not sent. What it shares with others is: it was decided before, and each
        message that is joined is on its way already."""
        self._items = deque(item for item in self._items if not _is_only_for(item, formal))

    @property
    def is_empty(self) -> bool:
        return not self._items

    def pop(self) -> Outgoing | None:
        """The next to be written, with what may be joined to it; None if there is nothing."""
        if not self._items:
            return None
        item = self._items.popleft()
        if not isinstance(item, Sending) or not _may_join(item):
            return item
        several, rows = [item], len(item.rows)
        while self._items and isinstance(other := self._items[0], Sending):
            rows += len(other.rows)
            if rows > JOINED_ROWS or not _may_join(other) or not _alike(item, other):
                break
            several.append(other)
            self._items.popleft()
        return joined(several) if len(several) > 1 else item


def _is_only_for(item: Outgoing, formal: bytes) -> bool:
    if isinstance(item, Sending):
        return list(item.formals) == [formal]
    return isinstance(item, CommandSending) and item.formal == formal


def _may_join(sending: Sending) -> bool:
    """It is live, so it has this server's own seqs, and is most of its batch: not much is copied for nothing."""
    return (
        not sending.stored and not sending.attempts and 2 * len(sending.rows) >= len(sending.batch)
    )


def _alike(one: Sending, other: Sending) -> bool:
    """A message has a seq for each row or for none."""
    return one.batch.is_fleeting is other.batch.is_fleeting


def joined(several: Sequence[Sending]) -> Sending:
    """As one, formal by formal, each in the order of the batches."""
    lists: dict[bytes, list[int]] = {}
    start = 0
    for one in several:
        rows, at = [start + row for row in one.rows], 0
        for formal, count in zip(one.formals, one.counts, strict=True):
            lists.setdefault(formal, []).extend(rows[at : at + count])
            at += count
        start += len(one.batch)
    batches = [one.batch for one in several]
    seqs, expires_us = array("Q"), array("q")
    for batch in batches:
        seqs.extend(batch.seqs)
        expires_us.extend(batch.expires_us)
    columns, is_fleeting = concatenate([one.columns for one in batches]), batches[0].is_fleeting
    whole = Batch(columns, seqs, expires_us, is_fleeting=is_fleeting)
    rows = [row for own in lists.values() for row in own]
    counts = [len(own) for own in lists.values()]
    weight = sum(one.weight_bytes for one in several)
    return Sending(several[0].stream, whole, rows, list(lists), counts, False, weight)
