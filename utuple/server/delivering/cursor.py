"""One reader's cursor, a search for it, and what is sent to it: the values `cursors` works with. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from utuple.model.weight import are_light
from utuple.server.delivering.pending import Pending
from utuple.store.contract import OWN_ORIGIN, Batch, FormalPosition


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
    together: Hashable = None
    """Those that are equal in this and in `upto` may be made as one search; None: this one may not."""

    def finds(self, batch: Batch, row: int) -> bool:
        """A row that was registered here. Nothing finds what is of lifetime 0."""
        return not batch.is_fleeting and batch.seqs[row] <= self.upto


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
    family: Hashable = None
    """EFs of one family and one stream may be searched together, after the seq that each came with."""
    seq: int = 0

    @property
    def is_live(self) -> bool:
        return OWN_ORIGIN not in self.due

    @property
    def is_reading(self) -> bool:
        """What is committed now will be sent at the end of its search."""
        return self.search is not None and self.search.origin == OWN_ORIGIN

    def is_full(self, share: int) -> bool:
        """In bytes: it has this part of its window outstanding."""
        return 0 < self.window_bytes <= self.outstanding_bytes * share

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

    def is_drained_below(self, half: tuple[int, int], rows: int, weight: int) -> bool:
        """These left for the wire. True if it was beyond half of what it may hold, and is no longer."""
        was_full = self.is_beyond(*half)
        self.backlog = max(0, self.backlog - rows)
        self.backlog_bytes = max(0, self.backlog_bytes - weight)
        return was_full and not self.is_beyond(*half)


class Lightness:
    """Of the batch that was looked at last: it is looked at once, though it may be for a thousand cursors."""

    def __init__(self) -> None:
        self._batch: Batch | None = None
        self._is_light = True

    def of(self, batch: Batch) -> bool:
        if self._batch is not batch:
            self._batch, self._is_light = batch, are_light(batch.columns.payloads)
        return self._is_light

    def forget(self) -> None:
        self._batch = None


def positions_of(held: Mapping[tuple[bytes, str], int]) -> list[FormalPosition]:
    return [FormalPosition(formal, origin, seq) for (formal, origin), seq in held.items()]


def sending_of(
    stream: int, batch: Batch, lists: Sequence[tuple[bytes, array[int]]], *, stored: bool = False
) -> Sending:
    """Formal by formal."""
    rows = lists[0][1][:0]
    for _, own in lists:
        rows.extend(own)
    return Sending(
        stream, batch, rows, [id_ for id_, _ in lists], [len(r) for _, r in lists], stored
    )


def stored_sending(stream: int, batch: Batch, lists: Sequence[tuple[bytes, array[int]]]) -> Sending:
    """Of what was found, without the rest if that is most of it: it may wait for the wire for long."""
    sending = sending_of(stream, batch, lists, stored=True)
    used = sorted({*sending.rows})
    if 2 * len(used) >= len(batch):
        return sending
    places = {row: at for at, row in enumerate(used)}
    rows = array("q", [places[row] for row in sending.rows])
    return replace(sending, batch=batch.take(used), rows=rows)
