"""One reader's cursor, a search for it, and what is sent to it: the values `cursors` works with. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from utuple.store.contract import OWN_ORIGIN, Batch, FormalPosition

ROW_BYTES = 200
"""What a row takes in memory beside its payload, roughly."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The reasons are with the server's config."""

    stream_bytes: int = 64 << 20
    pending_bytes: int = 16 << 20
    all_pending_bytes: int = 256 << 20


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Sending:
    """Rows of one batch for one stream, formal by formal."""

    stream: int
    batch: Batch
    rows: Sequence[int]
    formals: Sequence[bytes]
    """Whom they are for, each once."""
    counts: Sequence[int]
    """How many of the rows are for each."""
    stored: bool
    weight_bytes: int = 0
    """Of the rows, each once (`weight`)."""
    attempts: int = 0
    """To deliver them that failed, where each delivery is settled by itself."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A stored search to run: matches of one origin with after < seq <= upto."""

    formal: bytes
    after: int
    upto: int
    origin: str = OWN_ORIGIN

    def finds(self, batch: Batch, row: int) -> bool:
        """A row that was registered here. Nothing finds what is of lifetime 0."""
        return not batch.is_fleeting and batch.seqs[row] <= self.upto


@dataclass(slots=True)
class Pending:
    """Live matches that wait for the end of a search."""

    parts: list[tuple[Batch, array[int]]] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0

    def add(self, batch: Batch, rows: array[int]) -> int:
        """Returns the bytes they take."""
        if 2 * len(rows) < len(batch):  # the rest of it must not stay for a few
            batch, rows = batch.take(rows), array("q", range(len(rows)))
        payloads = batch.columns.payloads
        size_bytes = sum(len(payloads[row]) + ROW_BYTES for row in rows)
        self.parts.append((batch, rows))
        self.rows += len(rows)
        self.size_bytes += size_bytes
        return size_bytes


class PassedBy:
    """By formal: the last seq that may have passed it by, as long as that is not committed. A cursor may be made anew meanwhile (a
    reader that attaches twice, or leaves and comes back): the next one must not forget what passed the first one by."""

    def __init__(self) -> None:
        self._upto: dict[bytes, int] = {}

    def noted(self, formal: bytes, upto: int, committed: int) -> int:
        """The last seq for a cursor that is made now."""
        upto = max(upto, self._upto.get(formal, 0))
        if upto > committed:
            self._upto[formal] = upto
        return upto

    def forget(self, formal: bytes) -> None:
        self._upto.pop(formal, None)

    def committed(self, seq: int) -> None:
        if self._upto:
            self._upto = {formal: upto for formal, upto in self._upto.items() if upto > seq}


@dataclass(slots=True)
class Cursor:
    id: bytes
    stream: int
    window: int
    covered: dict[str, int]
    """By origin: every match up to this seq was sent. A LIVE cursor is covered up to the last commit in
    its own origin, whatever is written here."""
    due: dict[str, None]
    """Origins to be read from the store, in this order."""
    search: Reading | None = None
    """The one under way. Its origin is still due."""
    window_bytes: int = 0
    """0: its reader counts rows only."""
    outstanding: int = 0
    """Sent and not yet taken by the application."""
    outstanding_bytes: int = 0
    unmet_upto: int = 0
    """What was prepared up to this seq may not have met it: it is found in the store, once it is there."""
    pending: Pending = field(default_factory=Pending)
    overflowed: bool = False
    is_held: bool = False
    """What was dropped while its reader was away is not decided yet."""

    @property
    def is_live(self) -> bool:
        return OWN_ORIGIN not in self.due

    @property
    def is_reading(self) -> bool:
        """What is committed now will be sent at the end of its search."""
        return self.search is not None and self.search.origin == OWN_ORIGIN

    @property
    def is_taking(self) -> bool:
        """Its application has taken at least half of a window."""
        many_bytes = self.window_bytes and self.outstanding_bytes > self.window_bytes // 2
        return self.outstanding <= self.window // 2 and not many_bytes


@dataclass(slots=True)
class Stream:
    backlog: int = 0
    """Rows queued on it, not yet on the wire."""
    backlog_bytes: int = 0
    cursors: set[bytes] = field(default_factory=set)

    def is_beyond(self, rows: int, size_bytes: int) -> bool:
        return self.backlog >= rows or self.backlog_bytes >= size_bytes


def positions_of(held: Mapping[tuple[bytes, str], int]) -> list[FormalPosition]:
    return [FormalPosition(formal, origin, seq) for (formal, origin), seq in held.items()]


def sending_of(stream: int, batch: Batch, lists: Sequence[tuple[bytes, array[int]]]) -> Sending:
    """Live ones, formal by formal."""
    rows = lists[0][1][:0]
    for _, own in lists:
        rows.extend(own)
    return Sending(
        stream, batch, rows, [id_ for id_, _ in lists], [len(r) for _, r in lists], False
    )
