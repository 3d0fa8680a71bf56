"""Cursors lose nothing and repeat nothing, however commits, readings and readers interleave."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from utuple.model.columns import Columns, columns_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.server.cursors import Cursors, Mode, Reading, Sending
from utuple.server.index import Match
from utuple.store.contract import Batch, FormalPosition

FORMAL = b"f" * 16
OTHER = b"o" * 16
STREAM = 1


def batch_of(first: int, count: int) -> Batch:
    event = UTuple(b"e" * 16, Family("s", "t"), Exact("a", 1), {}, None, 60)
    columns: Columns = columns_of([event] * count)
    seqs = array("Q", range(first, first + count))
    return Batch(columns, seqs, array("q", [10**15] * count))


class World:
    """A store that remembers which seqs match, a reader that takes, and the cursors between them."""

    def __init__(self, window: int, stream_rows: int) -> None:
        self.cursors = Cursors(0, stream_rows)
        self.cursors.open_stream(STREAM)
        self.matching: list[int] = []
        self.got: list[int] = []
        self.wire: list[int] = []
        self.untaken = 0
        self.window = window
        self.reading: Reading | None = None

    def send(self, sending: Sending | None) -> None:
        if sending is not None:
            seqs = [sending.batch.seqs[row] for row in sending.rows]
            self.wire.extend(seqs)
            assert set(sending.formals) == {FORMAL}

    def commit(self, hits: list[bool]) -> None:
        first = self.cursors.committed + 1
        batch = batch_of(first, len(hits))
        matches = [Match(row, FORMAL) for row, hit in enumerate(hits) if hit]
        for sending in self.cursors.commit(first + len(hits) - 1, [(batch, matches)]):
            self.send(sending)
        self.matching.extend(first + match.row for match in matches)

    def write(self) -> None:
        self.cursors.written(STREAM, len(self.wire))
        self.got.extend(self.wire)
        self.untaken += len(self.wire)
        assert self.untaken <= self.window, "more outstanding than the reader asked for"
        self.wire.clear()

    def take(self) -> None:
        self.cursors.taken(FORMAL, self.untaken)
        self.untaken = 0

    def read(self, chunk: int) -> None:
        """Begin a stored search, or carry one on by a chunk."""
        if self.reading is None:
            self.reading = self.cursors.next_reading()
            return
        cursor = self.cursors.get(FORMAL)
        assert cursor is not None
        found = [s for s in self.matching if max(self.reading.after, cursor.covered) < s]
        found = [s for s in found if s <= self.reading.upto][:chunk]
        go_on = True
        if found:
            whole = batch_of(1, len(found))
            batch = Batch(whole.columns, array("Q", found), whole.expires_us)
            sending, go_on = self.cursors.read(cursor, batch)
            self.send(sending)
        elif cursor.mode is Mode.READING:
            for sending in self.cursors.end_reading(cursor):
                self.send(sending)
            go_on = False
        if not go_on:
            self.reading = None

    def drain(self) -> None:
        for _ in range(2 * len(self.matching) + 10):
            self.read(3)
            self.write()
            self.take()


steps = st.one_of(
    st.lists(st.booleans(), min_size=1, max_size=6).map(lambda hits: ("commit", hits)),
    st.sampled_from([("write", None), ("take", None), ("reopen", None)]),
    st.integers(1, 4).map(lambda chunk: ("read", chunk)),
)


@given(st.lists(steps, max_size=40), st.integers(1, 6), st.integers(1, 8))
def test_every_match_is_sent_once_in_order(
    plan: list[tuple[str, object]], window: int, stream_rows: int
) -> None:
    world = World(window, stream_rows)
    world.commit([True, False, True])
    world.cursors.attach(FORMAL, "r", STREAM, window, after=0)
    for step, argument in plan:
        match step, argument:
            case "commit", list(hits):
                world.commit(hits)
            case "read", int(chunk):
                world.read(chunk)
            case "write", _:
                world.write()
            case "take", _:
                world.take()
            case "reopen", _:
                world.reading = None
                world.cursors.fall_behind(world.cursors.committed)
    world.drain()
    assert world.got == world.matching
    cursor = world.cursors.get(FORMAL)
    assert cursor is not None and cursor.mode is Mode.LIVE


def test_a_stopped_reader_slows_nobody() -> None:
    cursors = Cursors(0, max_stream_rows=100)
    for stream, formal in ((1, FORMAL), (2, OTHER)):
        cursors.open_stream(stream)
        cursors.attach(formal, "r", stream, 5, after=0)
        reading = cursors.next_reading()
        cursor = cursors.get(formal)
        assert reading is not None and cursor is not None
        cursors.end_reading(cursor)
    both = [Match(0, FORMAL), Match(0, OTHER)]
    for seq in range(1, 21):
        cursors.commit(seq, [(batch_of(seq, 1), both)])
        cursors.taken(OTHER, 1)
        cursors.written(2, 1)
    stopped, other = cursors.get(FORMAL), cursors.get(OTHER)
    assert stopped is not None and other is not None
    assert (stopped.mode, stopped.covered, stopped.outstanding) == (Mode.BEHIND, 5, 5)
    assert not stopped.pending
    assert other.mode is Mode.LIVE


def test_positions_only_grow_and_never_pass_what_is_committed() -> None:
    cursors = Cursors(10, 100)
    assert cursors.acknowledge(FORMAL, "", 7)
    assert not cursors.acknowledge(FORMAL, "", 7)
    assert not cursors.acknowledge(FORMAL, "", 3)
    assert not cursors.acknowledge(FORMAL, "", 11)
    assert cursors.unsaved_positions() == [FormalPosition(FORMAL, "", 7)]
    assert cursors.unsaved_positions() == []


def test_positions_lost_with_a_failed_commit_are_saved_again() -> None:
    cursors = Cursors(10, 100)
    cursors.acknowledge(FORMAL, "", 7)
    cursors.unsaved_positions()
    cursors.restore([FormalPosition(FORMAL, "", 4), FormalPosition(OTHER, "", 2)])
    assert cursors.acknowledged(FORMAL) == 7
    assert cursors.acknowledged(OTHER) == 2
    assert cursors.unsaved_positions() == [FormalPosition(FORMAL, "", 7)]


def test_a_second_attachment_replaces_the_first() -> None:
    cursors = Cursors(0, 100)
    cursors.open_stream(1)
    cursors.open_stream(2)
    assert cursors.attach(FORMAL, "r", 1, 5, 0) is None
    assert cursors.attach(FORMAL, "r", 2, 5, 0) == 1
    assert cursors.on(1) == []
    cursors.close_stream(1)
    assert cursors.get(FORMAL) is not None
    cursors.close_stream(2)
    assert cursors.get(FORMAL) is None
