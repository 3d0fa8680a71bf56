"""Cursors lose nothing and repeat nothing, however commits, reveals, readings and readers interleave; and
with any rule that carries this turned off, some seed shows it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replacing import replaced
from tests.unit.server.cursor_world import World, batch_of
from utuple.server.delivering.cursor import Cursor, Reading, Sending
from utuple.server.delivering.cursors import Cursors
from utuple.server.matching.matched import matches_of
from utuple.store.contract import OWN_ORIGIN, Batch, FormalPosition

FORMAL = b"f" * 16
OTHER = b"o" * 16
STREAM = 1
STEPS = 80
SEEDS = range(200)


@given(st.integers(min_value=0), st.integers(1, 120))
def test_every_match_of_every_origin_is_sent_once_in_order(seed: int, steps: int) -> None:
    assert World(Random(seed)).run(steps) == []


# --- the rules, turned off ---------------------------------------------------------------------------

_attach, _end_reading, _reveal = Cursors.attach, Cursors.end_reading, Cursors.reveal
_taken, _written = Cursors.taken, Cursors.written


def reveal_unread(self: Cursors, origins: Any, formals: Any = None) -> None:
    self.origins.update(origins)


def trust_early_searches(self: Cursors, origins: Any, formals: Any = None) -> None:
    searches = {cursor.id: cursor.search for cursor in self}
    _reveal(self, origins, formals)
    for cursor in self:
        cursor.search = searches[cursor.id]


def cover_other_families(self: Cursors, reading: Reading, passed: Any = ()) -> Any:
    sendings = _end_reading(self, reading, passed)
    cursor = self.get(reading.formal)
    if cursor is not None and reading.origin != OWN_ORIGIN:
        cursor.covered[reading.origin] = reading.upto
    return sendings


def believe_any_search(self: Cursors, reading: Reading) -> Cursor | None:
    cursor = self.get(reading.formal)
    return cursor if cursor is not None and cursor.search is not None else None


def attach_in_own(
    self: Cursors, id_: Any, at: Any, window: Any, after: Any, *a: Any, **k: Any
) -> Any:
    own = {origin: seq for origin, seq in after.items() if origin == OWN_ORIGIN}
    return _attach(self, id_, at, window, own, *a, **k)


def room_without_window(self: Cursors, cursor: Cursor, origin: str = OWN_ORIGIN) -> int:
    return self._max_stream_rows - self._streams[cursor.stream].backlog


def room_without_backlog(self: Cursors, cursor: Cursor, origin: str = OWN_ORIGIN) -> int:
    return cursor.window - cursor.outstanding


def fitting_in_rows(
    self: Cursors, cursor: Cursor, batch: Batch, rows: Any, origin: str = OWN_ORIGIN
) -> int:
    count = len(rows[: max(0, self.room(cursor, origin))])
    self._count(cursor, count)
    return count


def taken_in_rows(self: Cursors, formal: bytes, count: int, weight: int = 0) -> None:
    _taken(self, formal, count)


def written_in_rows(self: Cursors, stream: int, rows: int, weight: int = 0) -> None:
    _written(self, stream, rows)


def pass_over(self: Cursors, cursor: Cursor, batch: Batch, rows: array[int]) -> array[int]:
    sent = rows[: max(0, self.room(cursor))] if cursor.is_live else rows[:0]
    self._count(cursor, len(sent))
    return sent


_read = Cursors._read


def read_again(self: Cursors, cursor: Cursor, origin: str, batch: Batch, rows: Any) -> Any:
    cursor.covered[origin] = min(cursor.covered[origin], batch.seq_before(0))
    return _read(self, cursor, origin, batch, rows)


def pass_what_had_no_room(
    self: Cursors, cursor: Cursor, origin: str, batch: Batch, rows: Any
) -> Any:
    found = _read(self, cursor, origin, batch, rows)
    cursor.covered[origin] = max(cursor.covered[origin], batch.seqs[-1])
    return found


def search_together_from_the_first(self: Cursors, cursor: Cursor, origin: str) -> None:
    _begin(self, cursor, origin)
    assert cursor.search is not None
    if cursor.search.together is not None and self.beside(cursor.search):
        cursor.covered[origin] = max(one.after for one in self.beside(cursor.search))


def search_all_of_a_stream(self: Cursors, cursor: Cursor, origin: str) -> None:
    cursor.family = "any"
    _begin(self, cursor, origin)


_begin = Cursors._begin

MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "a reveal is not read": ("reveal", reveal_unread),
    "a search that came before the reveal is trusted": ("reveal", trust_early_searches),
    "seqs of other families count as sent": ("end_reading", cover_other_families),
    "a search that was left off is believed": ("_reader_of", believe_any_search),
    "positions of other origins are ignored": ("attach", attach_in_own),
    "acknowledgements of other origins are ignored": (
        "acknowledged",
        lambda self, formal, origin="": self._positions.of(formal, ""),
    ),
    "the window is ignored": ("room", room_without_window),
    "the stream's backlog is ignored": ("room", room_without_backlog),
    "a window counts rows alone": ("_fitting", fitting_in_rows),
    "bytes that were taken are not given back": ("taken", taken_in_rows),
    "bytes that were written stay in the backlog": ("written", written_in_rows),
    "what commits during a reading is dropped": ("_put_by", lambda *_: None),
    "a reader without room is passed over": ("_offer", pass_over),
    "who reads beside others gets again what it has had": ("_read", read_again),
    "what had no room counts as read": ("_read", pass_what_had_no_room),
    "who reads beside others begins where they do": ("_begin", search_together_from_the_first),
    "a stream's formals of all families are searched together": ("_begin", search_all_of_a_stream),
    "a broken search is not taken up again": ("break_reading", lambda *_: None),
}


def test_the_rules_as_they_are_show_nothing() -> None:
    assert [found for seed in SEEDS for found in World(Random(seed)).run(STEPS)] == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_turned_off_shows(mutant: str) -> None:
    with replaced(Cursors, *MUTANTS[mutant]):
        for seed in SEEDS:
            try:
                found = World(Random(seed)).run(STEPS)
            except (AssertionError, KeyError) as error:
                found = [repr(error)]
            if found:
                return
    pytest.fail(f"no seed of {SEEDS} notices: {mutant}")


# --- one at a time -----------------------------------------------------------------------------------


def attached(window: int = 10, after: dict[str, int] | None = None) -> Cursors:
    cursors = Cursors(0, max_stream_rows=100)
    cursors.open_stream(STREAM)
    cursors.attach(FORMAL, STREAM, window, after or {})
    return cursors


def read_all(cursors: Cursors) -> list[Reading]:
    """Every search there is to run, finding nothing."""
    readings = []
    while (reading := cursors.next_reading()) is not None:
        readings.append(reading)
        cursors.end_reading(reading)
    return readings


def read_one(
    cursors: Cursors, reading: Reading, seqs: list[int], origin: str = "X"
) -> tuple[Sending | None, list[Reading]]:
    """All these rows are for it."""
    found = {reading.formal: array("q", range(len(seqs)))}
    return cursors.read([reading], batch_of(seqs, origin), found)


def live(cursors: Cursors, seq: int, formal: bytes = FORMAL) -> list[int]:
    sent = cursors.commit(seq, [(batch_of([seq]), matches_of([(0, formal)]))])
    return [sending.batch.seqs[row] for sending in sent for row in sending.rows]


def test_what_was_brought_is_read_after_what_is_own() -> None:
    cursors = Cursors(7, max_stream_rows=100)
    cursors.reveal({"X": 50, "Y": 30})
    cursors.open_stream(STREAM)
    cursors.attach(FORMAL, STREAM, 10, {"": 3, "Y": 20})
    assert read_all(cursors) == [
        Reading(FORMAL, 3, 7),
        Reading(FORMAL, 0, 50, "X"),
        Reading(FORMAL, 20, 30, "Y"),
    ]
    assert read_all(cursors) == []


def over_when_58_to_60_were_prepared() -> Cursors:
    """Its reader came while these were being committed: they passed it by, and no commit will tell of them."""
    cursors = Cursors(57, max_stream_rows=100)
    cursors.open_stream(STREAM)
    cursors.attach(FORMAL, STREAM, 10, {"": 50}, unmet_upto=60)
    return cursors


def test_law_2_what_passed_a_formal_by_that_was_over_is_searched_once_it_is_committed() -> None:
    cursors = over_when_58_to_60_were_prepared()
    assert read_all(cursors) == []
    assert cursors.commit(59, []) == [] and read_all(cursors) == []
    assert cursors.commit(60, []) == []
    reading = cursors.next_reading()
    assert reading == Reading(FORMAL, 50, 60)
    assert live(cursors, 61) == []
    assert [list(sending.batch.seqs) for sending in cursors.end_reading(reading)] == [[61]]
    assert live(cursors, 62) == [62]


@pytest.mark.parametrize("leaves", [False, True])
def test_law_2_what_passed_it_by_is_searched_also_by_who_attaches_again_meanwhile(
    leaves: bool,
) -> None:
    """Seed 3109080: a reader's second attachment in the same instant found the formal held already, and asked for nothing."""
    cursors = over_when_58_to_60_were_prepared()
    if leaves:
        cursors.detach(FORMAL)
    cursors.attach(FORMAL, STREAM, 10, {"": 50}, unmet_upto=0)
    assert read_all(cursors) == []
    assert cursors.commit(60, []) == []
    assert read_all(cursors) == [Reading(FORMAL, 50, 60)]
    cursors.attach(FORMAL, STREAM, 10, {"": 60}, unmet_upto=0)
    assert read_all(cursors) == [Reading(FORMAL, 60, 60)]


def test_what_passed_it_by_and_was_never_committed_is_not_waited_for() -> None:
    cursors = over_when_58_to_60_were_prepared()
    cursors.fall_behind(57)
    assert read_all(cursors) == [Reading(FORMAL, 50, 57)]
    cursors.attach(FORMAL, STREAM, 10, {"": 50}, unmet_upto=0)
    assert read_all(cursors) == [Reading(FORMAL, 50, 57)]


def test_a_reader_goes_on_after_what_it_acknowledged_of_each_origin() -> None:
    cursors = Cursors(7, max_stream_rows=100)
    cursors.reveal({"X": 50, "Y": 30})
    cursors.acknowledge(FORMAL, "X", 40)
    cursors.acknowledge(FORMAL, "Y", 30)
    cursors.open_stream(STREAM)
    cursors.attach(FORMAL, STREAM, 10, {"": 3})
    assert read_all(cursors) == [Reading(FORMAL, 3, 7), Reading(FORMAL, 40, 50, "X")]


def test_law_9_an_heir_does_not_read_what_was_acknowledged_while_it_waited_for_the_last_word() -> (
    None
):
    """Seed 7300054: what the drained server had dropped lies before it, and the heir knows nothing of that any more."""
    cursors = attached()
    read_all(cursors)
    decided: set[str] = set()
    cursors.may_read = lambda _, origin: origin in decided
    cursors.reveal({"X": 50})
    cursors.acknowledge(FORMAL, "X", 40)
    assert read_all(cursors) == []
    decided.add("X")
    cursors.release(FORMAL)
    assert read_all(cursors) == [Reading(FORMAL, 40, 50, "X")]


def test_a_live_cursor_stays_live_while_what_was_brought_is_read() -> None:
    cursors = attached()
    read_all(cursors)
    cursors.reveal({"X": 50})
    reading = cursors.next_reading()
    assert reading == Reading(FORMAL, 0, 50, "X")
    assert live(cursors, 1) == [1]
    sending, go_on = read_one(cursors, reading, [20, 40])
    assert sending is not None and sending.stored and list(sending.rows) == [0, 1]
    assert go_on == [reading]
    assert live(cursors, 2) == [2]
    assert cursors.end_reading(reading) == []
    assert live(cursors, 3) == [3]


def test_what_was_brought_leaves_half_of_the_window_to_what_is_live() -> None:
    cursors = attached(window=4)
    read_all(cursors)
    cursors.reveal({"X": 50})
    reading = cursors.next_reading()
    assert reading is not None
    sending, go_on = read_one(cursors, reading, [10, 20, 30])
    assert sending is not None and list(sending.rows) == [0, 1] and go_on == []
    assert [live(cursors, 1), live(cursors, 2), live(cursors, 3)] == [[1], [2], []]
    assert cursors.next_reading() is None
    cursors.taken(FORMAL, 4)
    assert read_all(cursors) == [Reading(FORMAL, 20, 50, "X"), Reading(FORMAL, 2, 3)]


def test_a_reveal_goes_on_after_the_last_row_sent_also_for_rows_of_other_families() -> None:
    cursors = attached()
    read_all(cursors)
    cursors.reveal({"X": 50})
    reading = cursors.next_reading()
    assert reading is not None
    read_one(cursors, reading, [20])
    cursors.end_reading(reading)
    cursors.reveal({"X": 35})
    assert read_all(cursors) == [Reading(FORMAL, 20, 50, "X")]


def test_a_search_that_began_before_a_reveal_is_left_off() -> None:
    cursors = attached()
    read_all(cursors)
    cursors.reveal({"X": 50, "Y": 5})
    early = cursors.next_reading()
    assert early is not None and early.origin == "X"
    cursors.reveal({"X": 60})
    assert read_one(cursors, early, [20]) == (None, [])
    assert cursors.end_reading(early) == []
    assert read_all(cursors) == [Reading(FORMAL, 0, 5, "Y"), Reading(FORMAL, 0, 60, "X")]


def test_only_the_formals_concerned_read_a_reveal() -> None:
    cursors = attached()
    cursors.attach(OTHER, STREAM, 10, {})
    read_all(cursors)
    cursors.reveal({"X": 50}, {OTHER})
    assert read_all(cursors) == [Reading(OTHER, 0, 50, "X")]


def test_a_search_from_before_the_store_was_lost_is_not_believed() -> None:
    """Its `upto` is an older one: what came since would be missed."""
    cursors = attached()
    late = cursors.next_reading()
    assert late is not None
    cursors.fall_behind(5)
    reading = cursors.next_reading()
    assert reading == Reading(FORMAL, 0, 5)
    assert cursors.end_reading(late) == []
    cursor = cursors.get(FORMAL)
    assert cursor is not None and not cursor.is_live
    cursors.break_reading(late)
    assert cursor.search is reading


def test_a_stopped_reader_slows_nobody() -> None:
    cursors = Cursors(0, max_stream_rows=100)
    for stream, formal in ((1, FORMAL), (2, OTHER)):
        cursors.open_stream(stream)
        cursors.attach(formal, stream, 5, {})
        read_all(cursors)
    both = matches_of([(0, FORMAL), (0, OTHER)])
    for seq in range(1, 21):
        cursors.commit(seq, [(batch_of([seq]), both)])
        cursors.taken(OTHER, 1)
        cursors.written(2, 1)
    stopped, other = cursors.get(FORMAL), cursors.get(OTHER)
    assert stopped is not None and other is not None
    assert (stopped.is_live, stopped.covered, stopped.outstanding) == (False, {"": 5}, 5)
    assert not stopped.pending.parts
    assert other.is_live


def test_positions_only_grow_and_never_pass_what_is_committed() -> None:
    cursors = Cursors(10, 100)
    assert cursors.acknowledge(FORMAL, "", 7)
    assert not cursors.acknowledge(FORMAL, "", 7)
    assert not cursors.acknowledge(FORMAL, "", 3)
    assert not cursors.acknowledge(FORMAL, "", 11)
    assert cursors.unsaved_positions() == [FormalPosition(FORMAL, "", 7)]
    assert cursors.unsaved_positions() == []


def test_positions_of_another_origin_are_bounded_by_what_is_here_of_it() -> None:
    cursors = Cursors(10, 100)
    assert cursors.acknowledge(FORMAL, "X", 99), "not here yet: its rows may come"
    cursors.reveal({"Y": 20})
    assert not cursors.acknowledge(FORMAL, "Y", 21)
    assert cursors.acknowledge(FORMAL, "Y", 20)
    assert (cursors.acknowledged(FORMAL, "X"), cursors.acknowledged(FORMAL, "Y")) == (99, 20)
    assert cursors.acknowledged(FORMAL) == 0


def test_positions_a_drain_brings_count_and_are_not_saved_again() -> None:
    cursors = Cursors(10, 100)
    cursors.reveal({"X": 20})
    cursors.acknowledge(FORMAL, "X", 5)
    brought = [FormalPosition(FORMAL, "X", 30), FormalPosition(OTHER, "X", 8)]
    cursors.learn_positions([*brought, FormalPosition(FORMAL, "X", 4)])
    assert cursors.positions() == brought
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
    cursors.attach(FORMAL, 1, 5, {})
    cursors.attach(FORMAL, 2, 5, {})
    assert cursors.on(1) == []
    cursors.close_stream(1)
    assert cursors.get(FORMAL) is not None
    cursors.close_stream(2)
    assert cursors.get(FORMAL) is None
