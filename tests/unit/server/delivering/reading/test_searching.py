"""What an EF's reader is given from the store: EAs that lived when the EF did (law 2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.model.columns import MICROSECONDS
from utuple.model.packed import packed
from utuple.model.utuple import Family, Template, UTuple
from utuple.server.delivering.cursor import Reading
from utuple.server.delivering.reading.searching import searches
from utuple.store.contract import Search, StoredTemplate

EF = UTuple(bytes(15) + b"\x01", Family("truck", "load"), Template(), None, {}, 600, "r")
NOW_US, LATE_S = 1_000 * MICROSECONDS, 60.0
LATE_US = NOW_US - round(LATE_S * MICROSECONDS)


def asked(after: int, upto: int, seq: int, origin: str = "") -> list[Search]:
    stored = StoredTemplate(packed(EF), seq, NOW_US)
    return list(searches(Reading(EF.id, after, upto, origin), stored, NOW_US, LATE_S))


def spans(found: list[Search]) -> list[tuple[int, int, int]]:
    return [(search.after, search.upto, search.now_us) for search in found]


def test_what_came_before_the_ef_must_live_and_what_it_met_may_have_expired_meanwhile() -> None:
    assert spans(asked(0, 9, seq=4)) == [(0, 4, NOW_US), (4, 9, LATE_US)]


def test_a_reader_that_goes_on_after_its_ef_gets_what_expired_while_it_was_away() -> None:
    assert spans(asked(6, 9, seq=4)) == [(6, 9, LATE_US)]


def test_what_other_servers_brought_must_live() -> None:
    assert spans(asked(0, 9, seq=4, origin="server-2")) == [(0, 9, NOW_US)]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from(["", "other"]))
def test_every_seq_is_searched_once_in_order(after: int, upto: int, seq: int, origin: str) -> None:
    found = asked(after, upto, seq, origin)
    seqs = [at for search in found for at in range(search.after + 1, search.upto + 1)]
    assert seqs == list(range(after + 1, upto + 1))
