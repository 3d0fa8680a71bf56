"""Absences and surveys: which of what arrived meanwhile stays, by every policy; and what a note holds."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from tests.unit.server.writing.test_engine import ea
from utuple.model.columns import columns_of
from utuple.model.terms import (
    DropPolicy,
    expire,
    joins,
    latest_per_address,
    newest,
    oldest,
    respond_within,
)
from utuple.model.utuple import Exact
from utuple.server.delivering.absent.absences import (
    LAST_SEQ,
    MOST_ABSENCES,
    Absence,
    Absences,
    Decision,
    Survey,
    decode_absence,
    encode_absence,
)
from utuple.store.contract import Batch

FORMAL = b"f" * 16
NOW_US = 50_000_000


def rows(first: int, last: int, origin: str = "", addresses: int = 3) -> Batch:
    """One event a seq and a second; its id and its address follow from the seq."""
    made = []
    for seq in range(first, last + 1):
        event = ea(seq)
        place = Exact(f"a{seq % addresses}", seq * 1_000_000)
        made.append(replace(event, metadata=place))
    seqs = array("Q", range(first, last + 1))
    return Batch(columns_of(made), seqs, array("q", [NOW_US] * len(made)), origin)


def decided(
    policy: DropPolicy, zeta: float | None = None, after: int = 10, upto: int = 30
) -> Absences:
    """A reader that was away from 10 to 30, and is back."""
    absences = Absences()
    absences.open(FORMAL, after, policy, zeta, 10_000_000)
    absences.close(FORMAL, upto, 30_000_000)
    (one,) = absences.undecided(FORMAL)
    survey = Survey(one)
    survey.look(rows(after + 1, upto))
    absences.decide(one, survey.decide())
    return absences


def given_to(absences: Absences, batch: Batch) -> list[int]:
    return [batch.seqs[row] for row in absences.kept(FORMAL, batch, array("q", range(len(batch))))]


@pytest.mark.parametrize(
    ("policy", "stay"),
    [
        (newest(3), [28, 29, 30]),
        (newest(50), list(range(11, 31))),
        (oldest(4), [11, 12, 13, 14]),
        (oldest(50), list(range(11, 31))),
        (latest_per_address(), [28, 29, 30]),
        (expire(5), [25, 26, 27, 28, 29, 30]),
        (respond_within(7), list(range(11, 31))),
    ],
)
def test_of_a_span_the_policy_says_what_stays(policy: DropPolicy, stay: list[int]) -> None:
    absences = decided(policy)
    assert given_to(absences, rows(1, 40)) == [*range(1, 11), *stay, *range(31, 41)]
    (one,) = absences.of(FORMAL)
    assert one.decision is not None and one.decision.dropped == 20 - len(stay)
    if len(stay) < 20:
        gone = sorted(set(range(11, 31)) - set(stay))
        bounds = (one.decision.first_us, one.decision.last_us)
        assert bounds == (gone[0] * 1_000_000, gone[-1] * 1_000_000)


def test_by_a_share_the_hash_says_what_stays() -> None:
    batch = rows(11, 30)
    stay = [s for row, s in enumerate(batch.seqs) if joins(FORMAL, batch.columns.id_at(row), 0.4)]
    assert 0 < len(stay) < 20
    assert given_to(decided(respond_within(7), 0.4), batch) == stay


@given(some.drop_policies, st.floats(0, 1), st.randoms())
def test_what_stays_and_what_is_dropped_make_up_what_matched(
    policy: DropPolicy, zeta: float, dice: Random
) -> None:
    """Law 9, whatever portions the search comes in."""
    absences = decided(policy, zeta)
    cuts = sorted({11, 31, *(dice.randint(11, 30) for _ in range(3))})
    stay = [
        seq for first, end in pairwise(cuts) for seq in given_to(absences, rows(first, end - 1))
    ]
    (one,) = absences.of(FORMAL)
    dropped = one.decision.dropped if one.decision is not None else 0
    assert len(stay) + dropped == 20


def test_rows_of_another_origin_are_not_of_this_span() -> None:
    assert len(given_to(decided(newest(1)), rows(11, 30, origin="X"))) == 20


def test_a_reader_is_not_given_anything_before_all_is_decided_and_durable() -> None:
    absences = Absences()
    absences.open(FORMAL, 10, newest(1), None, 0)
    assert absences.is_saved(FORMAL), "it is away: there is nothing to decide"
    absences.close(FORMAL, 20, 0)
    assert not absences.is_saved(FORMAL)
    absences.committed(absences.pop_unsaved())
    assert not absences.is_saved(FORMAL), "it is not decided"
    absences.decide(absences.undecided(FORMAL)[0], Decision(5))
    assert not absences.is_saved(FORMAL), "nor noted"
    first = absences.pop_unsaved()
    assert not absences.is_saved(FORMAL), "nor durable"
    assert absences.committed(first) == {FORMAL} and absences.is_saved(FORMAL)


def test_a_note_that_was_overtaken_by_the_next_does_not_make_that_durable() -> None:
    absences = Absences()
    absences.open(FORMAL, 10, newest(1), None, 0)
    absences.close(FORMAL, 20, 0)
    closed = absences.pop_unsaved()
    absences.decide(absences.undecided(FORMAL)[0], Decision(5))
    absences.pop_unsaved()
    absences.committed(closed)
    assert not absences.is_saved(FORMAL)


def test_absences_come_back_from_their_notes_and_those_lost_on_the_way_do_not() -> None:
    absences = decided(latest_per_address())
    notes = {name: body for name, body in absences.pop_unsaved().items() if body is not None}
    absences.open(FORMAL, 35, newest(1), None, 0)
    again = Absences()
    again.restore(notes)
    assert [one.key for one in again.of(FORMAL)] == [("", 10)]
    assert given_to(again, rows(1, 40)) == given_to(absences, rows(1, 40))
    assert not again.unsaved


def test_an_absence_that_is_heard_and_acknowledged_is_forgotten() -> None:
    absences = decided(newest(3))
    absences.passed(FORMAL, "", 30)
    assert absences.of(FORMAL), "its reader does not know yet what was dropped"
    absences.heard(FORMAL, "", 10)
    absences.passed(FORMAL, "", 29)
    assert absences.of(FORMAL), "some of it may come again"
    absences.passed(FORMAL, "", 30)
    assert not absences.of(FORMAL) and set(absences.unsaved.values()) == {None}


def test_what_drops_nothing_need_not_be_heard() -> None:
    assert not decided(newest(100)).unheard(FORMAL)
    assert [one.after for one in decided(newest(3)).unheard(FORMAL)] == [10]


def test_what_a_drain_brought_is_decided_once() -> None:
    mine = decided(expire(5))
    (one,) = mine.of(FORMAL)
    heir = Absences()
    open_ = replace(one, origin="X", upto=None, decision=None)
    heir.learn([open_])
    heir.close(FORMAL, 99, 1)
    assert heir.undecided(FORMAL)[0].upto == LAST_SEQ, "of X there are no later rows"
    heir.learn([replace(one, origin="X")])
    assert not heir.undecided(FORMAL), "X had decided before"
    heir.learn([open_])
    assert not heir.undecided(FORMAL)


def test_a_reader_that_comes_and_goes_for_ever_is_given_everything_in_the_end() -> None:
    absences = Absences()
    for number in range(MOST_ABSENCES + 10):
        absences.open(FORMAL, number * 10, newest(1), None, 0)
        absences.close(FORMAL, number * 10 + 5, 0)
    assert len(absences.of(FORMAL)) == MOST_ABSENCES


def test_a_decision_that_comes_too_late_is_none() -> None:
    absences = Absences()
    absences.open(FORMAL, 10, newest(1), None, 0)
    absences.close(FORMAL, 20, 0)
    (early,) = absences.undecided(FORMAL)
    absences.restore({})
    absences.decide(early, Decision(5))
    assert not absences.of(FORMAL)


@given(
    some.drop_policies,
    st.none() | st.floats(0, 1),
    st.none() | st.integers(0, LAST_SEQ),
    st.sampled_from(["", "server-1", "a/b"]),
    st.none() | st.lists(st.integers(1, LAST_SEQ), max_size=5).map(tuple),
)
def test_a_note_says_all_of_an_absence(
    policy: DropPolicy,
    zeta: float | None,
    upto: int | None,
    origin: str,
    seqs: tuple[int, ...] | None,
) -> None:
    decision = None if upto is None else Decision(1, 2, 3, 4, 5, 6, seqs)
    one = Absence(FORMAL, origin, 7, policy, 8, zeta, upto, 9, decision, is_heard=True)
    assert decode_absence(one.note, encode_absence(one)) == one
