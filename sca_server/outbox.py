"""What waits to be written to one reader's stream, in order, and bounded. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from utuple.model.utuple import Family

_ROW_BYTES = 96
"""What a delivery weighs besides its payload: ids, seq, address, and the message around them."""


class Delivery(NamedTuple):
    formal: bytes
    command: bytes
    family: Family
    address: str
    payload: bytes
    seq: int
    stale_at_s: float
    """Nobody waits for it any longer: it is dropped rather than carried out late."""


class Attached(NamedTuple):
    id: bytes
    unknown: bool


class Detached(NamedTuple):
    id: bytes


class Replaced(NamedTuple):
    id: bytes


Note = Attached | Detached | Replaced


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    rows: int
    """Deliveries that wait for one reader."""
    size_bytes: int
    """And how much they weigh."""
    message_rows: int
    """Deliveries in one message."""
    message_bytes: int


class Outbox:
    def __init__(self, limits: OutboxLimits) -> None:
        self._limits = limits
        self._waiting: deque[Delivery | Note] = deque()
        self.rows = 0
        self.notes = 0
        self.size_bytes = 0

    def offer(self, delivery: Delivery) -> bool:
        """False, and nothing is kept, when it is full."""
        size_bytes = self.size_bytes + _weight(delivery)
        if self.rows >= self._limits.rows or size_bytes > self._limits.size_bytes:
            return False
        self._waiting.append(delivery)
        self.rows += 1
        self.size_bytes = size_bytes
        return True

    def tell(self, note: Note) -> None:
        """Always taken: notes answer what the reader asked, and it is asked less when many wait."""
        self._waiting.append(note)
        self.notes += 1

    def take(self, now_s: float) -> list[Delivery] | Note | None:
        """The next message: a note, or the deliveries before the next note; None when empty."""
        taken: list[Delivery] = []
        size_bytes = 0
        while self._waiting:
            first = self._waiting[0]
            if not isinstance(first, Delivery):
                if taken:
                    break
                self._waiting.popleft()
                self.notes -= 1
                return first
            weight = _weight(first)
            full = len(taken) >= self._limits.message_rows
            if taken and (full or size_bytes + weight > self._limits.message_bytes):
                break
            self._waiting.popleft()
            self.rows -= 1
            self.size_bytes -= weight
            if first.stale_at_s > now_s:
                taken.append(first)
                size_bytes += weight
        return taken or None


def _weight(delivery: Delivery) -> int:
    return _ROW_BYTES + len(delivery.payload) + len(delivery.address)
