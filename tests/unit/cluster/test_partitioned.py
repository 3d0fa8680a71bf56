"""A partitioned line: how it is made, what each change of its members makes of its segments, and how it is undone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import (
    SERVERS,
    event_actuals,
    event_formals,
    layouts,
    layouts_of,
)
from utuple.cluster.changes import (
    flagged,
    gathered,
    helped,
    joined,
    partitioned,
    recut,
    released,
    returned,
    split,
    suspended,
)
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout, decode_layout, encode_layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, target
from utuple.cluster.past import Past
from utuple.errors import InvalidInput
from utuple.model.columns import columns_of
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.model.utuple import Family, UTuple

WHOLE = Section(0, HASH_SPACE)
HELP = Line(WHOLE, 3, (Member("h"), Member("a"), Member("b")))
BY_KG = Layout((Axis("data.kg", (5,), (("a", "h"), ("b", "h"))),))
LINE = replace(HELP, layout=BY_KG)
ALL = Line(WHOLE, 3, tuple(map(Member, SERVERS)))


def owners(line: Line) -> list[set[str]]:
    (axis,) = line.layout.axes
    return [set(own) for own in axis.owners]


@given(layouts(), st.lists(event_actuals(st.just(Family("truck", "load"))), min_size=1, max_size=4))
def test_in_columns_an_event_has_the_same_members_as_by_itself(
    layout: Layout, events: list[UTuple]
) -> None:
    takers = layout.takers(columns_of(events), range(len(events)))
    for event, names in zip(events, takers, strict=True):
        assert set(names) == {member for member, _ in layout.candidates(event)}


@given(layouts())
def test_a_layout_is_the_same_after_it_travelled(layout: Layout) -> None:
    assert decode_layout(encode_layout(layout)) == layout


def test_no_layout_weighs_nothing() -> None:
    assert encode_layout(NO_LAYOUT) == b""
    assert decode_layout(b"") == NO_LAYOUT


@pytest.mark.parametrize(
    "said", [b"{", b"[]", b"{}", b'{"axes": 5}', b'{"axes": [[1]]}', b'{"axes": [["lat", [], []]]}']
)
def test_what_is_no_layout_is_refused(said: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_layout(said)


@given(layouts_of(ALL), layouts_of(ALL), event_formals(st.just(Family("truck", "load"))))
def test_who_is_asked_no_more_keeps_already_what_it_must_keep(
    before: Layout, after: Layout, ef: UTuple
) -> None:
    for name in SERVERS:
        others = (before.without(SERVERS[1]), before.with_beside(SERVERS[1], name), before)
        for layout in (after, *others):
            if layout.asks_no_more_of(name, before):
                assert name not in layout.keepers(ef) or name in before.keepers(ef)
        assert before.asks_no_more_of(name, NO_LAYOUT)
        assert not NO_LAYOUT.asks_no_more_of(name, before)


def test_a_partitioned_line_has_the_same_members_and_nobody_learns() -> None:
    move = Move(MoveKind.PARTITION, WHOLE, 3, "h", layout=BY_KG)
    (line,) = target(move, HELP)
    assert line == replace(HELP, epoch=4, layout=BY_KG, past=(Past(NO_LAYOUT),))
    assert move.learner is None


@pytest.mark.parametrize(
    ("layout", "rule"),
    [
        (NO_LAYOUT, "at least one axis"),
        (Layout((Axis("lat", (), (("h", "stranger"),)),)), "stranger is not"),
        (Layout((Axis("lat", (0,), (("h",), ("a",))),)), "the home, h, owns every segment"),
    ],
)
def test_a_layout_that_does_not_fit_the_line_is_refused(layout: Layout, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        partitioned(HELP, layout)


def test_a_line_is_partitioned_once_and_gathered_before_another_layout() -> None:
    with pytest.raises(InvalidInput, match="undo that first"):
        partitioned(LINE, BY_KG)
    with pytest.raises(InvalidInput, match="is not partitioned"):
        gathered(HELP)


def test_only_the_home_serves_a_line_that_was_gathered() -> None:
    """It alone knows every EF. The others come on by flips, which teach them."""
    line = gathered(LINE)
    assert (line.epoch, line.layout, line.accumulatable) == (4, NO_LAYOUT, ("h",))
    assert [member.name for member in line.members] == ["h", "a", "b"]


def test_what_a_member_gives_up_the_home_has_already() -> None:
    for changed in (flagged(LINE, "a", accumulatable=False), suspended(LINE, "a")):
        assert owners(changed) == [{"h"}, {"h", "b"}]
        assert changed.epoch == 4


def test_who_comes_back_owns_nothing_at_first() -> None:
    assert owners(returned(suspended(LINE, "a"), "a")) == [{"h"}, {"h", "b"}]
    off = flagged(LINE, "a", accumulatable=False)
    assert owners(flagged(off, "a", accumulatable=True)) == [{"h"}, {"h", "b"}]


def test_a_helper_owns_what_the_overloaded_member_owns() -> None:
    assert owners(helped(LINE, "a", "c")) == [{"a", "c", "h"}, {"b", "h"}]
    assert owners(helped(LINE, "a", "c", memory=True)) == [{"c", "h"}, {"b", "h"}]


def test_both_parts_of_a_split_are_partitioned_and_become_one_again() -> None:
    kept, given_ = split(LINE, 1 << 63, "a", "c")
    assert owners(kept) == owners(LINE)
    assert owners(given_) == [{"c", "h"}, {"b", "h"}]
    first, second = LINE.within(Section(0, 9)), LINE.within(Section(9, 99))
    assert joined(first, second).layout == BY_KG
    with pytest.raises(InvalidInput, match="merge"):
        joined(first, replace(second, layout=NO_LAYOUT))


def test_the_home_of_a_partitioned_line_stays_on() -> None:
    for change in (
        lambda: flagged(LINE, "h", accumulatable=False),
        lambda: helped(LINE, "h", "c", memory=True),
        lambda: split(LINE, 1 << 63, "h", "c"),
    ):
        with pytest.raises(InvalidInput, match=r"home, h, owns every segment|h is not"):
            change()


def test_only_the_home_can_be_heir_in_a_partitioned_line() -> None:
    """A reader that is away goes on at the heir, which must keep its EF."""
    line = flagged(LINE, "a", accumulatable=False)
    drain = Move(MoveKind.DRAIN, WHOLE, 4, "a", "b")
    with pytest.raises(InvalidInput, match="the heir in a partitioned line is h"):
        target(drain, line)
    (after,) = target(replace(drain, helper="h"), line)
    assert after == replace(released(line, "a"), epoch=5)
    assert after.member("a") is None and owners(after) == [{"h"}, {"h", "b"}]


def test_a_line_says_by_what_it_is_partitioned() -> None:
    assert str(LINE).endswith("h 1, a 1, b 1, partitioned by data.kg in 2")
    assert "partitioned" not in str(HELP)


@given(
    layouts_of(ALL),
    layouts_of(ALL),
    st.lists(event_formals(st.just(Family("truck", "load"))), min_size=1, max_size=5),
)
def test_on_the_way_to_another_layout_nobody_needs_an_ef_that_it_has_not_learned(
    before: Layout, after: Layout, efs: list[UTuple]
) -> None:
    line = replace(ALL, layout=before)
    kept = {name: {ef.id for ef in efs if name in before.keepers(ef)} for name in SERVERS}
    for learner, layout in before.recuts(after, line.home):
        line = recut(line, layout, learner)
        for name in SERVERS:
            needed = {ef.id for ef in efs if name in layout.keepers(ef)}
            assert name in (learner, line.home) or needed <= kept[name]
            kept[name] = needed
    assert line.layout == after or before.owners | after.owners == {line.home}


def test_moving_one_boundary_teaches_one_member() -> None:
    moved = Layout((Axis("data.kg", (7,), (("a", "h"), ("b", "h"))),))
    assert BY_KG.recuts(moved, "h") == (("a", moved),)
    line = recut(LINE, moved, "a")
    assert line == replace(LINE, epoch=4, layout=moved, past=(Past(BY_KG),))


def test_members_that_give_up_segments_to_each_other_learn_in_turn() -> None:
    swapped = Layout((Axis("data.kg", (5,), (("b", "h"), ("a", "h"))),))
    between = Layout((Axis("data.kg", (5,), (("h",), ("a", "b", "h"))),))
    assert BY_KG.recuts(swapped, "h") == (("a", between), ("b", swapped))


@pytest.mark.parametrize(
    ("line", "layout", "learner", "rule"),
    [
        (HELP, BY_KG, "a", "a line that is partitioned is cut anew"),
        (LINE, NO_LAYOUT, "a", "a line that is partitioned is cut anew"),
        (LINE, BY_KG, "a", "must ask for more"),
        (LINE, Layout((Axis("data.kg", (7,), (("a", "h"), ("b", "h"))),)), "h", "must ask"),
        (LINE, Layout((Axis("data.kg", (7,), (("a", "h"), ("b", "h"))),)), "b", "only b learns, and a"),
        (LINE, Layout((Axis("lat", (0,), (("a", "h"), ("b", "h"))),)), "a", "only a learns, and b"),
    ],
)  # fmt: skip
def test_a_recut_that_nobody_or_several_would_have_to_learn_is_refused(
    line: Line, layout: Layout, learner: str, rule: str
) -> None:
    with pytest.raises(InvalidInput, match=rule):
        recut(line, layout, learner)
