"""The history of a line's layouts: where an EF is looked for, and when a layout may be forgotten."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import SERVERS, event_actuals, event_formals, layouts_of
from utuple.cluster.changes import flagged, gathered, helped, partitioned, pruned, suspended
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, target
from utuple.cluster.past import MAX_PAST, History, Past, decode_history, encode_history, followed
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE
from utuple.model.match import matches
from utuple.model.section import Section
from utuple.model.utuple import Family, UTuple

TRUCKS = st.just(Family("truck", "load"))
ALL = Line(Section(0, HASH_SPACE), 3, tuple(map(Member, SERVERS)))
HELP = Line(Section(0, HASH_SPACE), 3, (Member("h"), Member("a"), Member("b")))
BY_KG = Layout((Axis("data.kg", (5,), (("a", "h"), ("b", "h"))),))


def cut_at(kg: int) -> Layout:
    return Layout((Axis("data.kg", (kg,), (("a", "h"), ("b", "h"))),))


@given(
    st.lists(layouts_of(ALL), min_size=1, max_size=4),
    st.booleans(),
    event_actuals(TRUCKS),
    event_formals(TRUCKS),
)
def test_wherever_an_event_was_taken_by_any_layout_a_match_of_it_looks_there(
    layouts: list[Layout], began_with_help: bool, event: UTuple, ef: UTuple
) -> None:
    """Law 2. Every member that may have taken the event, by any layout the line has had, is visited by the EF."""
    history: History = ()
    chain = [*([NO_LAYOUT] if began_with_help else []), *layouts]
    for before, after in pairwise(chain):
        history = followed(history, before, after)
    line = replace(ALL, layout=chain[-1], past=history)
    takers = {name for one in layouts for name, _ in one.candidates(event)}
    if began_with_help:
        takers |= set(SERVERS)
    if matches(event, ef):
        assert takers <= line.visited(ef)
    assert {line.home, *line.layout.keepers(ef)} <= line.visited(ef)


def test_after_help_every_member_is_visited_and_after_a_gather_nothing_is_remembered() -> None:
    line = partitioned(HELP, BY_KG)
    assert line.past == (Past(NO_LAYOUT),) and line.may_hold_older("a")
    assert gathered(line).past == ()


def test_an_owner_that_goes_is_remembered_and_one_that_joins_is_not() -> None:
    line = replace(HELP, layout=BY_KG)
    assert flagged(line, "a", accumulatable=False).past == (Past(BY_KG),)
    assert suspended(line, "a").past == (Past(BY_KG),)
    assert helped(line, "a", "c").past == ()
    assert helped(line, "a", "c", memory=True).past == (Past(BY_KG),)


def test_a_layout_that_comes_again_is_remembered_once_and_anew() -> None:
    held = (Past(BY_KG, (("a", 7),)),)
    assert followed(held, BY_KG, cut_at(6)) == (Past(BY_KG),)


def test_of_too_many_layouts_it_is_only_remembered_that_there_were_some() -> None:
    history: History = ()
    for kg in range(MAX_PAST):
        history = followed(history, cut_at(kg), cut_at(kg + 1))
    assert len(history) == MAX_PAST
    assert followed(history, cut_at(99), cut_at(98)) == (Past(NO_LAYOUT),)


def test_only_who_holds_something_is_visited_once_everyone_has_said_so() -> None:
    line = partitioned(HELP, BY_KG)
    less = pruned(line, (Past(NO_LAYOUT, (("b", 9),)),))
    assert less.epoch == line.epoch + 1
    assert (less.may_hold_older("a"), less.may_hold_older("b")) == (False, True)
    assert pruned(less, ()).past == ()


@pytest.mark.parametrize(
    ("line", "past", "rule"),
    [
        (HELP, (), "is not partitioned"),
        (replace(HELP, layout=BY_KG), (), "nothing to forget"),
        (replace(HELP, layout=BY_KG), (Past(NO_LAYOUT),), "only become less"),
        (
            replace(HELP, layout=BY_KG, past=(Past(NO_LAYOUT, (("a", 3),)),)),
            (Past(NO_LAYOUT, (("a", 4),)),),
            "only become less",
        ),
        (suspended(replace(HELP, layout=BY_KG), "a"), (), "must return first"),
    ],
)
def test_a_prune_that_does_not_fit_is_refused(line: Line, past: History, rule: str) -> None:
    move = Move(MoveKind.PRUNE, line.section, line.epoch, "h", past=past)
    with pytest.raises(InvalidInput, match=rule):
        target(move, line)


def test_only_a_prune_says_what_is_left_and_only_a_partitioned_line_has_a_past() -> None:
    with pytest.raises(InvalidInput, match="a gather has none"):
        Move(MoveKind.GATHER, HELP.section, 3, "h", past=(Past(BY_KG),))
    with pytest.raises(InvalidInput, match="only a partitioned line"):
        replace(HELP, past=(Past(BY_KG),))
    with pytest.raises(InvalidInput, match="named once"):
        Past(BY_KG, (("a", 1), ("a", 2)))


@given(
    st.lists(
        st.builds(
            Past,
            st.just(NO_LAYOUT) | layouts_of(ALL),
            st.none()
            | st.dictionaries(st.sampled_from(SERVERS), st.integers(1, 1 << 62)).map(
                lambda upto: tuple(upto.items())
            ),
        ),
        max_size=3,
    ).map(tuple)
)
def test_a_history_is_the_same_after_it_travelled(history: History) -> None:
    assert decode_history(encode_history(history)) == history


@pytest.mark.parametrize("said", [b"{", b"{}", b'{"past": 5}', b'{"past": [[[], [["a"]]]]}'])
def test_what_is_no_history_is_refused(said: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_history(said)
