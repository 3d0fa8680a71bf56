"""Cursors: how far each attached formal has been told, and what to tell it next. Pure.

An EF is a cursor over the server's registrations. It is LIVE (every commit's matches go straight to its
stream), BEHIND (something was left out; the store will be read from where it was) or READING (a stored
search waits for its turn or is under way; what is committed meanwhile waits in `pending`, so that what lives for
less than that is not lost). A reader that stops taking, or a stream that stops draining, only ever makes its own
cursors fall behind: nothing waits for it.

    attach -> BEHIND -> (room) -> READING -> end_reading -> LIVE -> (no room) -> BEHIND ...

What a drain has brought here keeps its origin and that server's seqs. Of such an origin there are only stored matches, read
when the cursor attaches and after each reveal, whether the cursor is LIVE in its own origin or not. A cursor reads one
origin at a time; they take turns. Each reveal reads on after the last row that was sent. That misses nothing, because a
server is drained of a section once and never joins it again: of one family the rows of an origin come all at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from utuple.model.weight import fitting, weight_bytes
from utuple.server.delivering.cursor import (
    LIMITS,
    Cursor,
    Lightness,
    Limits,
    PassedBy,
    Reading,
    Sending,
    Stream,
    sending_of,
    stored_sending,
)
from utuple.server.delivering.pending import AllPending, Pending
from utuple.server.delivering.positions import Positions
from utuple.server.delivering.reading.ready import Ready
from utuple.server.matching.matched import Matches
from utuple.store.contract import OWN_ORIGIN, Batch

NO_ROWS = array("q")


class Cursors:
    def __init__(self, committed: int, max_stream_rows: int, limits: Limits = LIMITS) -> None:
        self.committed = committed
        self.origins: dict[str, int] = {}
        """Other servers whose rows are here and count, with the highest seq of each."""
        self._max_stream_rows, self._limits = max_stream_rows, limits
        self._pending = AllPending(limits.pending_bytes, limits.all_pending_bytes)
        self._lightness = Lightness()
        self._cursors: dict[bytes, Cursor] = {}
        self._passed_by = PassedBy()
        self._streams: dict[int, Stream] = {}
        self._ready = Ready()
        self.begin_beside = self._ready.begin
        self._positions = positions = Positions()
        self.restore, self.learn_positions = positions.restore, positions.learn
        self.positions, self.unsaved_positions = positions.all, positions.pop_unsaved
        self.sift: Callable[[bytes, Batch, array[int]], array[int]] = lambda _, __, rows: rows
        """Those of these stored matches that this formal is given: others were dropped while its reader was away."""
        self.may_read: Callable[[bytes, str], bool] = lambda _, __: True  # is its origin decided?

    # --- positions -------------------------------------------------------------------------------

    def acknowledged(self, formal: bytes, origin: str = OWN_ORIGIN) -> int:
        return self._positions.of(formal, origin)

    def acknowledge(self, formal: bytes, origin: str, seq: int) -> bool:
        """True if it is news. A position beyond what there is here is a reader's mistake; of an origin
        that is not here yet it is believed."""
        highest = self.committed if origin == OWN_ORIGIN else self.origins.get(origin, seq)
        return self._positions.advance(formal, origin, seq, highest)

    def over_upto(self, formal: bytes, origin: str, seq: int) -> int:
        """Up to where nothing is read again: an heir may be about to read what the drained server has delivered."""
        cursor = self._cursors.get(formal)
        is_due = cursor is not None and origin in cursor.due
        return min(seq, cursor.covered[origin]) if cursor and is_due else seq

    # --- streams and cursors ---------------------------------------------------------------------

    def open_stream(self, stream: int) -> None:
        self._streams[stream] = Stream()

    def on(self, stream: int) -> list[bytes]:
        """The formals attached to this stream."""
        return sorted(self._streams[stream].cursors) if stream in self._streams else []

    def close_stream(self, stream: int) -> None:
        for id_ in self.on(stream):
            self.detach(id_)
        self._streams.pop(stream, None)

    def get(self, formal: bytes) -> Cursor | None:
        return self._cursors.get(formal)

    def __iter__(self) -> Iterator[Cursor]:
        return iter(list(self._cursors.values()))

    def attach(
        self,
        formal: bytes,
        stream: int,
        window: int,
        after: Mapping[str, int],
        window_bytes: int = 0,
        unmet_upto: int = 0,
        family: Hashable = None,
        seq: int = 0,
    ) -> None:
        """Begin (again) after these seqs; in origins that are not named, after what was acknowledged. `seq`: its own."""
        self.detach(formal)
        covered = {OWN_ORIGIN: self.acknowledged(formal), **after}
        covered[OWN_ORIGIN] = min(covered[OWN_ORIGIN], self.committed)
        cursor = Cursor(formal, stream, max(1, window), covered, {OWN_ORIGIN: None})
        cursor.window_bytes, cursor.family, cursor.seq = window_bytes, family, seq
        cursor.unmet_upto = self._passed_by.noted(formal, unmet_upto, self.committed)
        self._cursors[formal] = cursor
        self._streams[stream].cursors.add(formal)
        for origin in self.origins:
            if origin not in after:
                covered[origin] = self.acknowledged(formal, origin)
            self._owe(cursor, origin)
        self._wake(cursor)

    def forget(self, formal: bytes) -> None:
        """The formal itself is gone."""
        self.detach(formal)
        self._passed_by.forget(formal)
        self._positions.forget(formal)

    def detach(self, formal: bytes) -> None:
        cursor = self._cursors.pop(formal, None)
        if cursor is not None:
            self._drop_pending(cursor)
            if cursor.stream in self._streams:
                self._streams[cursor.stream].cursors.discard(formal)

    def hold(self, formal: bytes) -> None:
        """Nothing more is read for it until it is released."""
        cursor = self._cursors.get(formal)
        if cursor is not None:
            cursor.is_held = True
            self._leave_off(cursor)

    def release(self, formal: bytes) -> None:
        cursor = self._cursors.get(formal)
        if cursor is not None:
            cursor.is_held = False
            self._wake(cursor)

    def resize(self, formal: bytes, window: int, outstanding: int) -> None:
        """Where each delivery is settled by itself, the ledger knows how many are open."""
        cursor = self._cursors.get(formal)
        if cursor is not None:
            cursor.window, cursor.outstanding = window, outstanding
            self._wake(cursor)

    def fall_behind(self, committed: int) -> None:
        """The store was opened anew: what was in flight may or may not be in it, so all read it."""
        before, self.committed = self.committed, committed
        self._passed_by = PassedBy()
        for cursor in self._cursors.values():
            covered = before if cursor.is_live else cursor.covered[OWN_ORIGIN]
            cursor.covered[OWN_ORIGIN] = min(covered, committed)
            cursor.due[OWN_ORIGIN] = None
            cursor.unmet_upto = 0
            self._leave_off(cursor)

    def reveal(self, origins: Mapping[str, int], formals: Collection[bytes] | None = None) -> None:
        """Rows of these origins count from now on: the cursors of these formals (None: of all) read
        what they were not sent yet."""
        for origin, seq in origins.items():
            self.origins[origin] = max(seq, self.origins.get(origin, 0))
        for cursor in self._cursors.values():
            if formals is None or cursor.id in formals:
                for origin in origins:
                    covered = cursor.covered.get(origin, 0)
                    acknowledged = self.acknowledged(cursor.id, origin)
                    cursor.covered[origin] = max(covered, acknowledged)
                    self._owe(cursor, origin)
                    if cursor.search is not None and cursor.search.origin == origin:
                        self._leave_off(cursor)  # it may have come too early to find them
                self._wake(cursor)

    def _owe(self, cursor: Cursor, origin: str) -> None:
        if cursor.covered[origin] < self.origins[origin]:
            cursor.due[origin] = None

    # --- live ------------------------------------------------------------------------------------

    def commit(self, committed: int, matched: Sequence[tuple[Batch, Matches]]) -> list[Sending]:
        """A transaction is durable: what goes out at once."""
        sendings: list[Sending] = []
        self.committed = committed
        self._passed_by.committed(committed)
        for batch, matches in matched:
            to: dict[int, list[tuple[bytes, array[int]]]] = {}
            for id_, rows in matches:
                cursor = self._cursors.get(id_)
                if cursor is not None:
                    sent = self._offer(cursor, batch, rows)
                    if sent:
                        to.setdefault(cursor.stream, []).append((id_, sent))
            for stream, lists in to.items():
                sendings.append(self._queued(sending_of(stream, batch, lists)))
        self._lightness.forget()
        return sendings

    def _offer(self, cursor: Cursor, batch: Batch, rows: array[int]) -> array[int]:
        """Those of these live matches, which are in the order of the batch, that are sent now."""
        if OWN_ORIGIN in cursor.due:
            self._put_by(cursor, batch, rows)
            return rows[:0]
        sent = rows[: self._fitting(cursor, batch, rows)]
        if len(sent) < len(rows):
            cursor.covered[OWN_ORIGIN] = batch.seq_before(rows[len(sent)])
            cursor.due[OWN_ORIGIN] = None
            self._wake(cursor)
        return sent

    def _fitting(
        self, cursor: Cursor, batch: Batch, rows: Sequence[int], origin: str = OWN_ORIGIN
    ) -> int:
        """How many of these rows may go out to it now; they are counted as sent."""
        rows = rows[: max(0, self.room(cursor, origin))]
        count = len(rows)
        if cursor.window_bytes and count and not self._lightness.of(batch):
            left_bytes = cursor.window_bytes - cursor.outstanding_bytes
            count, weight = fitting(batch.columns.payloads, rows, left_bytes)
            cursor.outstanding_bytes += weight
        self._count(cursor, count)
        return count

    def _put_by(self, cursor: Cursor, batch: Batch, rows: array[int]) -> None:
        """For the end of the search that waits or is under way and will not find them."""
        if not cursor.is_reading or cursor.overflowed:
            return
        assert cursor.search is not None
        is_found = cursor.search.finds(batch, rows[0])  # a batch lies on one side of it
        if not is_found and not self._pending.add(cursor.pending, batch, rows, cursor.window):
            self._drop_pending(cursor)
            cursor.overflowed = True

    def _drop_pending(self, cursor: Cursor) -> Pending:
        pending, cursor.pending = cursor.pending, Pending()
        self._pending.dropped(pending)
        return pending

    # --- stored ----------------------------------------------------------------------------------

    @property
    def has_readings(self) -> bool:
        """Does any stored search wait for its turn?"""
        return bool(self._ready)

    def next_reading(self) -> Reading | None:
        """The next stored search to run, if there is any."""
        return self._ready.pop(self.committed, lambda one: self._reader_of(one) is not None)

    def beside(self, reading: Reading) -> list[Reading]:
        """Those that wait and may be run as one with this one: of one family and one stream."""
        return [one for one in self._ready.beside(reading) if self._reader_of(one) is not None]

    def _begin(self, cursor: Cursor, origin: str) -> None:
        # What came by a drain may have been acknowledged since it attached: there, or here before it was to be read.
        after = max(cursor.covered[origin], self.acknowledged(cursor.id, origin))
        cursor.covered[origin], own_upto = after, max(self.committed, cursor.unmet_upto)
        upto = own_upto if origin == OWN_ORIGIN else self.origins[origin]
        is_alone = origin != OWN_ORIGIN or cursor.family is None or after < cursor.seq
        together = None if is_alone else (cursor.stream, cursor.family)
        cursor.search, cursor.overflowed = Reading(cursor.id, after, upto, origin, together), False
        self._ready.put(cursor.search)

    def room(self, cursor: Cursor, origin: str = OWN_ORIGIN) -> int:
        """How many deliveries may go out to it now. What was brought here leaves half of the window to
        what is live: there may be much of it, and it is not urgent."""
        stream, share = self._streams[cursor.stream], 1 if origin == OWN_ORIGIN else 2
        if cursor.is_full(share) or stream.backlog_bytes >= self._limits.stream_bytes:
            return 0
        rows = -(-cursor.window // share) - cursor.outstanding
        return min(rows, self._max_stream_rows - stream.backlog)

    def read(
        self, readings: Sequence[Reading], batch: Batch, found: Mapping[bytes, array[int]]
    ) -> tuple[Sending | None, list[Reading]]:
        """These rows were found, each for some of them: as many as there is room for, and who reads on."""
        lists, go_on, stream = [], [], 0
        for reading in readings:
            cursor = self._reader_of(reading)
            if cursor is not None:
                stream, rows = cursor.stream, found.get(cursor.id, NO_ROWS)
                sent, is_whole = self._read(cursor, reading.origin, batch, rows)
                lists += [(cursor.id, sent)] if sent else []
                go_on += [reading] if is_whole else []
        return self._queued(stored_sending(stream, batch, lists)) if lists else None, go_on

    def _read(
        self, cursor: Cursor, origin: str, batch: Batch, rows: array[int]
    ) -> tuple[array[int], bool]:
        """What is sent of these rows, and whether that is all of them."""
        seqs, covered = batch.seqs, cursor.covered[origin]
        if rows and seqs[rows[0]] <= covered:  # others who read beside it are not so far
            rows = array("q", [row for row in rows if seqs[row] > covered])
        given = self.sift(cursor.id, batch, rows) if rows else rows
        sent = given[: self._fitting(cursor, batch, given, origin)]
        is_whole = len(sent) == len(given)
        if is_whole and seqs:
            cursor.covered[origin] = max(covered, seqs[-1])
        elif sent:
            cursor.covered[origin] = seqs[sent[-1]]
        if not is_whole:
            self._leave_off(cursor)
        return sent, is_whole

    def end_reading(self, reading: Reading, passed: Iterable[Batch] = ()) -> list[Sending]:
        """The store was read up to `upto`: catch up with what it never has and what was committed meanwhile."""
        cursor = self._reader_of(reading)
        if cursor is None:
            return []
        cursor.search = None
        del cursor.due[reading.origin]
        if cursor.overflowed:
            cursor.covered[OWN_ORIGIN] = reading.upto
            cursor.due[OWN_ORIGIN] = None
        pending = self._drop_pending(cursor)
        sendings = []
        for batch in passed:  # they are few, and nothing could be read again: room or not
            every, count = range(len(batch)), [len(batch)]
            self._count(cursor, len(batch))
            cursor.outstanding_bytes += weight_bytes(batch.columns.payloads, every)
            late = Sending(cursor.stream, batch, every, [cursor.id], count, False)
            sendings.append(self._queued(late))
        for batch, rows in pending.parts:
            sent = self._offer(cursor, batch, rows)
            if sent:
                live = sending_of(cursor.stream, batch, [(cursor.id, sent)])
                sendings.append(self._queued(live))
        self._wake(cursor)
        return sendings

    def break_reading(self, reading: Reading) -> None:
        """The search failed; it will be tried again from where it came to."""
        cursor = self._reader_of(reading)
        if cursor is not None:
            self._leave_off(cursor)

    def _reader_of(self, reading: Reading) -> Cursor | None:
        """Whom it is for; nobody if it was left off, or the formal was attached anew."""
        cursor = self._cursors.get(reading.formal)
        return cursor if cursor is not None and cursor.search is reading else None

    def _leave_off(self, cursor: Cursor) -> None:
        """No search any more; another origin that is due has its turn."""
        if cursor.search is not None:
            origin, cursor.search = cursor.search.origin, None
            del cursor.due[origin]
            cursor.due[origin] = None
        self._drop_pending(cursor)
        self._wake(cursor)

    # --- flow ------------------------------------------------------------------------------------

    def taken(self, formal: bytes, count: int, weight: int = 0) -> None:
        """The application took these: there is room again."""
        cursor = self._cursors.get(formal)
        if cursor is not None:
            cursor.outstanding = max(0, cursor.outstanding - count)
            cursor.outstanding_bytes = max(0, cursor.outstanding_bytes - weight)
            self._wake(cursor)

    def written(self, stream: int, rows: int, weight: int = 0) -> None:
        """These left for the wire."""
        held = self._streams.get(stream)
        if held is None:
            return
        half = (max(1, self._max_stream_rows // 2), self._limits.stream_bytes // 2)
        if held.is_drained_below(half, rows, weight):
            for formal in held.cursors:
                self._wake(self._cursors[formal])

    def _count(self, cursor: Cursor, rows: int) -> None:
        cursor.outstanding += rows
        self._streams[cursor.stream].backlog += rows

    def _queued(self, sending: Sending) -> Sending:
        """Each row is on the wire once, however many formals it is for."""
        if self._lightness.of(sending.batch):
            return sending
        weight = weight_bytes(sending.batch.columns.payloads, {*sending.rows})
        self._streams[sending.stream].backlog_bytes += weight
        return replace(sending, weight_bytes=weight)

    def _wake(self, cursor: Cursor) -> None:
        if cursor.due and cursor.search is None and cursor.is_taking and not cursor.is_held:
            due = (one for one in cursor.due if self.may_read(cursor.id, one))
            if (origin := next((o for o in due if self.room(cursor, o) > 0), None)) is not None:
                self._begin(cursor, origin)
