"""A move says what it makes of its line, for every kind from one table, and refuses a line it was not planned by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from utuple.cluster.changes import joined
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import KINDS, Move, MoveKind, line_of, merge_of, target
from utuple.cluster.past import Past
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import InvalidInput
from utuple.model.section import Section

SECTION = Section(100, 200)
ON, OFF, AWAY = Member("A"), Member("B", False), Member("C", False, True)
LINE = Line(SECTION, 7, (ON, OFF, AWAY))
BY_LAT = Layout((Axis("lat", (0,), (("A",), ("A",))),))
CUT_ANEW = Layout((Axis("lat", (5,), (("A", "B"), ("A",))),))
FITTING = {
    MoveKind.HELP_PROCESSING: Move(MoveKind.HELP_PROCESSING, SECTION, 7, "A", "Z"),
    MoveKind.HELP_MEMORY: Move(MoveKind.HELP_MEMORY, SECTION, 7, "A", "Z"),
    MoveKind.FLIP_ON: Move(MoveKind.FLIP_ON, SECTION, 7, "B"),
    MoveKind.FLIP_OFF: Move(MoveKind.FLIP_OFF, SECTION, 7, "A"),
    MoveKind.SPLIT: Move(MoveKind.SPLIT, SECTION, 7, "A", "Z", 150),
    MoveKind.DRAIN: Move(MoveKind.DRAIN, SECTION, 7, "B", "A"),
    MoveKind.RELEASE: Move(MoveKind.RELEASE, SECTION, 7, "B"),
    MoveKind.SUSPEND: Move(MoveKind.SUSPEND, SECTION, 7, "B"),
    MoveKind.RETURN: Move(MoveKind.RETURN, SECTION, 7, "C"),
    MoveKind.MERGE: Move(MoveKind.MERGE, SECTION, 7, "A", key=150),
    MoveKind.PARTITION: Move(MoveKind.PARTITION, SECTION, 7, "A", layout=BY_LAT),
    MoveKind.RECUT: Move(MoveKind.RECUT, SECTION, 7, "A", "B", layout=CUT_ANEW),
    MoveKind.GATHER: Move(MoveKind.GATHER, SECTION, 7, "A"),
    MoveKind.PRUNE: Move(MoveKind.PRUNE, SECTION, 7, "A"),
}


def test_every_kind_has_its_entry_and_its_case_here() -> None:
    assert set(KINDS) == set(MoveKind) == set(FITTING)


@pytest.mark.parametrize("kind", MoveKind)
def test_what_the_table_of_kinds_says_of_a_move_is_what_it_makes_of_its_line(
    kind: MoveKind,
) -> None:
    move, line = FITTING[kind], LINE
    if kind is MoveKind.FLIP_OFF:
        line = Line(SECTION, 7, (ON, Member("B")))
    if kind is MoveKind.GATHER:
        line = replace(LINE, layout=BY_LAT)
    if kind is MoveKind.RECUT:  # who learns is on already
        line = Line(SECTION, 7, (ON, Member("B")), BY_LAT)
        (after,) = target(move, line)
        assert (after.accumulatable, move.learner, after.layout) == (("A", "B"), "B", CUT_ANEW)
        return
    if kind is MoveKind.PRUNE:
        line = Line(SECTION, 7, (ON, OFF), BY_LAT, (Past(NO_LAYOUT),))
    *_, after = target(move, line)  # of a split the half that is given away
    before = set(line.accumulatable)
    came_on = set(after.accumulatable) - before
    assert came_on == ({move.learner} if move.learner else set()), "who comes on must learn"
    went_off = before - set(after.accumulatable)
    assert went_off <= {move.goes_off}
    assert (after.member(move.member) is None) == (move.leaves is not None)
    assert after.epoch == 8


@pytest.mark.parametrize(
    "line",
    [
        Line(SECTION, 6, LINE.members),
        Line(SECTION, 8, LINE.members),
        Line(Section(100, 150), 7, (ON,)),
    ],
)
def test_a_move_planned_by_another_line_is_refused(line: Line) -> None:
    with pytest.raises(InvalidInput, match="planned by"):
        target(FITTING[MoveKind.FLIP_ON], line)


@pytest.mark.parametrize("key", [0, 100, 200])
def test_a_split_needs_a_key_strictly_inside_its_section(key: int) -> None:
    with pytest.raises(InvalidInput):
        target(Move(MoveKind.SPLIT, SECTION, 7, "A", "Z", key), LINE)


def test_a_split_teaches_the_half_that_is_given_away() -> None:
    assert FITTING[MoveKind.SPLIT].learned == Section(150, 200)
    assert FITTING[MoveKind.RETURN].learned == SECTION


FIRST, SECOND = Line(Section(100, 150), 5, LINE.members), Line(Section(150, 200), 7, LINE.members)


def test_a_merge_makes_one_line_of_two_under_an_epoch_that_is_new_to_both() -> None:
    for first, second in ((FIRST, SECOND), (replace(FIRST, epoch=7), replace(SECOND, epoch=5))):
        move = merge_of(first, second)
        assert move == FITTING[MoveKind.MERGE]
        assert target(move, line_of(move, [first, second])) == (Line(SECTION, 8, LINE.members),)


def test_the_order_of_the_others_does_not_matter_to_a_merge_but_who_is_home_does() -> None:
    other = replace(SECOND, members=(ON, AWAY, OFF))
    assert joined(FIRST, other).members == FIRST.members
    with pytest.raises(InvalidInput, match="same home"):
        joined(FIRST, replace(SECOND, members=(OFF, ON, AWAY)))


@pytest.mark.parametrize(
    "second",
    [
        replace(SECOND, members=(ON, OFF)),
        replace(SECOND, members=(*LINE.members, Member("D"))),
        replace(SECOND, members=(ON, Member("B"), AWAY)),
        replace(SECOND, members=(ON, Member("B", False, True), AWAY)),
        replace(SECOND, section=Section(151, 200)),
        replace(SECOND, section=Section(100, 150)),
    ],
    ids=["one less", "one more", "another is on", "another is suspended", "a gap", "the same"],
)
def test_lines_with_other_members_or_flags_and_lines_apart_are_not_merged(second: Line) -> None:
    with pytest.raises(InvalidInput, match="merge"):
        merge_of(FIRST, second)
    with pytest.raises(InvalidInput, match="merge"):
        line_of(FITTING[MoveKind.MERGE], [FIRST, second])


@pytest.mark.parametrize(
    "lines",
    [[], [LINE], [FIRST], [SECOND], [FIRST, replace(SECOND, section=Section(150, 180)), LINE]],
)
def test_a_merge_is_of_two_lines(lines: list[Line]) -> None:
    with pytest.raises(InvalidInput, match="two lines that meet at"):
        line_of(FITTING[MoveKind.MERGE], lines)


def test_a_merge_of_lines_that_have_changed_since_is_refused() -> None:
    move = merge_of(FIRST, SECOND)
    for first, second in ((FIRST, replace(SECOND, epoch=8)), (replace(FIRST, epoch=8), SECOND)):
        with pytest.raises(InvalidInput, match="planned by"):
            target(move, line_of(move, [first, second]))


@pytest.mark.parametrize("kind", MoveKind)
def test_a_helper_is_named_where_the_kind_has_one_and_nowhere_else(kind: MoveKind) -> None:
    with pytest.raises(InvalidInput):
        Move(kind, SECTION, 7, "A", "" if KINDS[kind].has_helper else "Z")


def test_only_a_line_that_is_cut_has_a_layout() -> None:
    with pytest.raises(InvalidInput, match="a flip-on has none"):
        Move(MoveKind.FLIP_ON, SECTION, 7, "B", layout=BY_LAT)


@pytest.mark.parametrize("step", MoveStep)
def test_a_record_stands_in_the_way_until_it_is_decided(step: MoveStep) -> None:
    record = MoveRecord(b"1", FITTING[MoveKind.DRAIN], LINE, step, began_us=10)
    assert (record.decided_us == 0) == (step is MoveStep.LEARNING)
