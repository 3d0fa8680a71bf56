"""What waits to be written to one reader's stream, in order, and bounded. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from utuple.cluster.line import ServerInfo
from utuple.delivery.notice import Notice

_ROW_BYTES = 96
"""What a delivery weighs besides its payload: ids, time, and the message around them."""


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    rows: int
    """Deliveries that wait for one reader."""
    size_bytes: int
    """And how much they weigh."""
    message_rows: int
    """Deliveries in one message."""
    message_bytes: int


class Parcel:
    """The deliveries of one message, as columns."""

    __slots__ = ("commands", "formals", "payloads", "size_bytes", "stale_at_s")

    def __init__(self) -> None:
        self.formals: list[bytes] = []
        self.commands: list[bytes] = []
        self.payloads: list[bytes] = []
        self.stale_at_s: list[float] = []
        """Ascending. Nobody waits for it any longer: it is dropped rather than carried out late."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self.formals)

    def drop_stale(self, now_s: float) -> None:
        if self.stale_at_s[0] > now_s:
            return
        stale = sum(at_s <= now_s for at_s in self.stale_at_s)
        for column in (self.formals, self.commands, self.payloads, self.stale_at_s):
            del column[:stale]


@dataclass(frozen=True, slots=True)
class Servers:
    """The sCA servers there are: told when they change, so that devices attach where they belong."""

    infos: tuple[ServerInfo, ...]


class Outbox:
    def __init__(self, limits: OutboxLimits) -> None:
        self._limits = limits
        self._waiting: deque[Parcel | Notice | Servers] = deque()
        self._last: Parcel | None = None
        """The last that waits, if there is room in it."""
        self.rows = 0
        self.notices = 0
        self.size_bytes = 0

    def offer(self, formal: bytes, command: bytes, payload: bytes, stale_at_s: float) -> bool:
        """False, and nothing is kept, when it is full."""
        limits, parcel = self._limits, self._last
        weight = _ROW_BYTES + len(payload)
        if self.rows >= limits.rows or self.size_bytes + weight > limits.size_bytes:
            return False
        if (
            parcel is None
            or len(parcel.formals) >= limits.message_rows
            or parcel.size_bytes + weight > limits.message_bytes
        ):
            parcel = self._last = Parcel()
            self._waiting.append(parcel)
        parcel.formals.append(formal)
        parcel.commands.append(command)
        parcel.payloads.append(payload)
        parcel.stale_at_s.append(stale_at_s)
        parcel.size_bytes += weight
        self.size_bytes += weight
        self.rows += 1
        return True

    def put(self, notice: Notice | Servers) -> None:
        """Never refused: notices answer what the reader asked, and it is not listened to while many wait."""
        self._waiting.append(notice)
        self._last = None
        self.notices += 1

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def pop(self, now_s: float) -> Parcel | Notice | Servers | None:
        """The next message: a notice, or the deliveries before the next notice; None when empty."""
        while self._waiting:
            first = self._waiting.popleft()
            if not isinstance(first, Parcel):
                self.notices -= 1
                return first
            if first is self._last:
                self._last = None
            self.rows -= len(first)
            self.size_bytes -= first.size_bytes
            first.drop_stale(now_s)
            if len(first):
                return first
        return None
