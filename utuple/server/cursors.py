"""Cursors: how far each attached formal has been told, and what to tell it next. Pure.

An EF is a cursor over the server's registrations. It is LIVE (every commit's matches go straight to its
stream), BEHIND (something was left out; the store will be read from `covered` on) or READING (a stored
search is under way; what is committed meanwhile waits in `pending`). A reader that stops taking, or a
stream that stops draining, only ever makes its own cursors fall behind: nothing waits for it.

    attach -> BEHIND -> begin_reading -> READING -> end_reading -> LIVE -> (no room) -> BEHIND ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from utuple.server.index import Match
from utuple.store.contract import OWN_ORIGIN, Batch, FormalPosition


class Mode(Enum):
    LIVE = "live"
    BEHIND = "behind"
    READING = "reading"


@dataclass(frozen=True, slots=True)
class Sending:
    """Rows of one batch for one stream; `formals` says for each row whom it is for."""

    stream: int
    batch: Batch
    rows: list[int]
    formals: list[bytes]
    stored: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """A stored search to run: matches with after < seq <= upto."""

    formal: bytes
    after: int
    upto: int


@dataclass(slots=True)
class Cursor:
    id: bytes
    reader: str
    stream: int
    window: int
    covered: int
    """Every match up to this seq was sent. A LIVE cursor is covered up to the last commit."""
    mode: Mode = Mode.BEHIND
    outstanding: int = 0
    """Sent and not yet taken by the application."""
    upto: int = 0
    pending: list[tuple[Batch, int]] = field(default_factory=list)
    overflowed: bool = False


@dataclass(slots=True)
class _Stream:
    backlog: int = 0
    """Rows queued on it, not yet on the wire."""
    cursors: set[bytes] = field(default_factory=set)


class Cursors:
    def __init__(self, committed: int, max_stream_rows: int) -> None:
        self.committed = committed
        self._max_stream_rows = max_stream_rows
        self._cursors: dict[bytes, Cursor] = {}
        self._streams: dict[int, _Stream] = {}
        self._ready: dict[bytes, None] = {}
        """BEHIND and with room: to be read next, in this order."""
        self._acknowledged: dict[tuple[bytes, str], int] = {}
        self._unsaved: dict[tuple[bytes, str], int] = {}

    # --- positions -------------------------------------------------------------------------------

    def restore(self, positions: Iterable[FormalPosition]) -> None:
        """What the store has. Anything acknowledged beyond it was lost on the way: save it again."""
        held = {(position.formal, position.origin): position.seq for position in positions}
        self._unsaved = {
            key: seq for key, seq in self._acknowledged.items() if seq > held.get(key, 0)
        }
        self._acknowledged = held | self._unsaved

    def acknowledged(self, formal: bytes, origin: str = OWN_ORIGIN) -> int:
        return self._acknowledged.get((formal, origin), 0)

    def acknowledge(self, formal: bytes, origin: str, seq: int) -> bool:
        """True if it is news. A position beyond what is committed here is a reader's mistake."""
        if origin == OWN_ORIGIN and seq > self.committed:
            return False
        key = (formal, origin)
        if seq <= self._acknowledged.get(key, 0):
            return False
        self._acknowledged[key] = self._unsaved[key] = seq
        return True

    def unsaved_positions(self) -> list[FormalPosition]:
        """What the next transaction must make durable; the caller has it now."""
        unsaved, self._unsaved = self._unsaved, {}
        return [FormalPosition(formal, origin, seq) for (formal, origin), seq in unsaved.items()]

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved)

    # --- streams and cursors ---------------------------------------------------------------------

    def open_stream(self, stream: int) -> None:
        self._streams[stream] = _Stream()

    def on(self, stream: int) -> list[bytes]:
        """The formals attached to this stream."""
        held = self._streams.get(stream)
        return sorted(held.cursors) if held else []

    def close_stream(self, stream: int) -> None:
        for id_ in self.on(stream):
            self._drop(id_)
        self._streams.pop(stream, None)

    def get(self, formal: bytes) -> Cursor | None:
        return self._cursors.get(formal)

    def __iter__(self) -> Iterator[Cursor]:
        return iter(list(self._cursors.values()))

    def attach(
        self, formal: bytes, reader: str, stream: int, window: int, after: int
    ) -> int | None:
        """Begin (again) after this seq. Returns the stream that had it before, if another did."""
        held = self._cursors.get(formal)
        replaced = held.stream if held is not None and held.stream != stream else None
        if held is not None:
            self._drop(formal)
        self._cursors[formal] = Cursor(
            formal, reader, stream, max(1, window), min(after, self.committed)
        )
        self._streams[stream].cursors.add(formal)
        self._ready[formal] = None
        return replaced

    def detach(self, formal: bytes) -> None:
        self._drop(formal)

    def forget(self, formal: bytes) -> None:
        """The formal itself is gone."""
        self._drop(formal)
        for key in [key for key in self._acknowledged if key[0] == formal]:
            del self._acknowledged[key]
            self._unsaved.pop(key, None)

    def _drop(self, formal: bytes) -> None:
        cursor = self._cursors.pop(formal, None)
        self._ready.pop(formal, None)
        if cursor is not None and cursor.stream in self._streams:
            self._streams[cursor.stream].cursors.discard(formal)

    def fall_behind(self, committed: int) -> None:
        """The store was opened anew: what was in flight may or may not be in it, so all read it."""
        for cursor in self._cursors.values():
            if cursor.mode is Mode.LIVE:
                cursor.covered = self.committed
            cursor.covered = min(cursor.covered, committed)
            self._behind(cursor)
        self.committed = committed

    # --- live ------------------------------------------------------------------------------------

    def commit(self, committed: int, matched: Sequence[tuple[Batch, list[Match]]]) -> list[Sending]:
        """A transaction is durable: what goes out at once."""
        sendings: list[Sending] = []
        for batch, matches in matched:
            to: dict[int, Sending] = {}
            for match in matches:
                cursor = self._cursors.get(match.id)
                if cursor is not None and self._offer(cursor, batch, match.row):
                    sending = to.get(cursor.stream)
                    if sending is None:
                        sending = to[cursor.stream] = Sending(cursor.stream, batch, [], [], False)
                    sending.rows.append(match.row)
                    sending.formals.append(cursor.id)
            sendings.extend(to.values())
        self.committed = committed
        return sendings

    def _offer(self, cursor: Cursor, batch: Batch, row: int) -> bool:
        """May this live match be sent now?"""
        seq = batch.seqs[row]
        if cursor.mode is Mode.READING:
            if seq > cursor.upto and not cursor.overflowed:
                cursor.pending.append((batch, row))
                if len(cursor.pending) > cursor.window:
                    cursor.pending.clear()
                    cursor.overflowed = True
            return False
        if cursor.mode is Mode.BEHIND:
            return False
        if self.room(cursor.id) <= 0:
            cursor.covered = seq - 1
            self._behind(cursor)
            return False
        self._count(cursor, 1)
        return True

    # --- stored ----------------------------------------------------------------------------------

    def next_reading(self) -> Reading | None:
        """The next stored search to run, if any cursor is behind and has room."""
        while self._ready:
            formal = next(iter(self._ready))
            del self._ready[formal]
            cursor = self._cursors.get(formal)
            if cursor is None or cursor.mode is not Mode.BEHIND or self.room(formal) <= 0:
                continue
            cursor.mode = Mode.READING
            cursor.upto = self.committed
            cursor.pending.clear()
            cursor.overflowed = False
            return Reading(formal, cursor.covered, cursor.upto)
        return None

    def room(self, formal: bytes) -> int:
        """How many deliveries may go out to it now."""
        cursor = self._cursors.get(formal)
        if cursor is None:
            return 0
        backlog = self._streams[cursor.stream].backlog
        return min(cursor.window - cursor.outstanding, self._max_stream_rows - backlog)

    def read(self, cursor: Cursor, batch: Batch) -> tuple[Sending | None, bool]:
        """Matches found in the store: as many as there is room for, and whether to read on."""
        if not self._is_reading(cursor):
            return None, False
        rows = list(range(min(len(batch), max(0, self.room(cursor.id)))))
        if rows:
            cursor.covered = batch.seqs[rows[-1]]
            self._count(cursor, len(rows))
        whole = len(rows) == len(batch)
        if not whole:
            self._behind(cursor)
        sending = Sending(cursor.stream, batch, rows, [cursor.id] * len(rows), True)
        return (sending if rows else None), whole

    def end_reading(self, cursor: Cursor) -> list[Sending]:
        """The store was read up to `upto`: catch up with what was committed meanwhile."""
        if not self._is_reading(cursor):
            return []
        cursor.covered = cursor.upto
        if cursor.overflowed:
            self._behind(cursor)
            return []
        cursor.mode = Mode.LIVE
        pending, cursor.pending = cursor.pending, []
        sendings = []
        for batch, row in pending:
            if self._offer(cursor, batch, row):
                sendings.append(Sending(cursor.stream, batch, [row], [cursor.id], False))
        return sendings

    def break_reading(self, cursor: Cursor) -> None:
        """The search failed; it will be tried again from where it came to."""
        if self._is_reading(cursor):
            self._behind(cursor)

    def _is_reading(self, cursor: Cursor) -> bool:
        """Still the cursor that the search was begun for? It may have been attached anew."""
        return self._cursors.get(cursor.id) is cursor and cursor.mode is Mode.READING

    # --- flow ------------------------------------------------------------------------------------

    def taken(self, formal: bytes, count: int) -> None:
        """The application took these: there is room again."""
        cursor = self._cursors.get(formal)
        if cursor is not None:
            cursor.outstanding = max(0, cursor.outstanding - count)
            self._wake(cursor)

    def written(self, stream: int, rows: int) -> None:
        """These left for the wire."""
        held = self._streams.get(stream)
        if held is None:
            return
        full = held.backlog >= self._max_stream_rows // 2
        held.backlog = max(0, held.backlog - rows)
        if full and held.backlog < self._max_stream_rows // 2:
            for formal in held.cursors:
                self._wake(self._cursors[formal])

    def _count(self, cursor: Cursor, rows: int) -> None:
        cursor.outstanding += rows
        self._streams[cursor.stream].backlog += rows

    def _behind(self, cursor: Cursor) -> None:
        cursor.mode = Mode.BEHIND
        cursor.pending.clear()
        self._wake(cursor)

    def _wake(self, cursor: Cursor) -> None:
        backlog = self._streams[cursor.stream].backlog
        taking = cursor.outstanding <= cursor.window // 2
        if cursor.mode is Mode.BEHIND and taking and backlog < self._max_stream_rows:
            self._ready[cursor.id] = None

    def lag(self, cursor: Cursor) -> int:
        return 0 if cursor.mode is Mode.LIVE else self.committed - cursor.covered
