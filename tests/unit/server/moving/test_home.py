"""What a home decides of its moves, in the writer's order: one at a time, and no new epoch after something was missed."""

from __future__ import annotations

import pytest

from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, merge_of
from utuple.cluster.record import MoveStep
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.server.moving.home import HomeMoves
from utuple.server.moving.notes import read_notes
from utuple.server.moving.steps import Abort, Begin, Commit, End, Outcome
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import Draft

FAMILY = Family("truck", "load")
WHOLE = Section(0, HASH_SPACE)
FIRST, SECOND = b"1" * 16, b"2" * 16
HELP = Move(MoveKind.HELP_PROCESSING, WHOLE, 1, "a", "b")


class Home:
    """Server a, home of the whole hash space; what it notes is kept as a store would keep it."""

    def __init__(self) -> None:
        self.lines = OwnLines("a", [Line(WHOLE, 1, (Member("a"), Member("c", False)))], [])
        self.notes: dict[str, bytes] = {}
        self.moves = HomeMoves("a", self.lines, {})

    def restart(self) -> None:
        self.moves = HomeMoves("a", self.lines, read_notes(self.notes).records)

    def step(self, step: Begin | Commit | Abort | End, now_us: int = 1) -> Outcome:
        draft = Draft()
        take = getattr(self.moves, type(step).__name__.lower())
        outcome: Outcome = take(step, draft, now_us)
        for note, body in draft.notes.items():
            if body is None:
                del self.notes[note]
            else:
                self.notes[note] = body
        return outcome

    @property
    def epoch(self) -> int:
        line = self.lines.line_of(0)
        assert line is not None
        return line.epoch


@pytest.fixture
def home() -> Home:
    return Home()


def test_a_move_is_recorded_before_anything_happens_and_a_second_order_of_it_changes_nothing(
    home: Home,
) -> None:
    assert home.step(Begin(FIRST, HELP)).done and home.step(Begin(FIRST, HELP)).done
    home.restart()
    (record,) = home.moves.undone
    assert (record.move, record.step, record.before.epoch) == (HELP, MoveStep.LEARNING, 1)
    assert home.epoch == 1


def test_one_move_per_section_at_a_time(home: Home) -> None:
    home.step(Begin(FIRST, HELP))
    refused = home.step(Begin(SECOND, Move(MoveKind.FLIP_ON, WHOLE, 1, "c")))
    assert not refused.done and "under way" in refused.reason
    home.step(Abort(FIRST, "why not"))
    assert home.step(Begin(SECOND, Move(MoveKind.FLIP_ON, WHOLE, 1, "c"))).done


def test_what_does_not_fit_the_line_or_is_not_ours_is_refused(home: Home) -> None:
    old = Move(MoveKind.HELP_PROCESSING, WHOLE, 2, "a", "b")
    assert not home.step(Begin(FIRST, old)).done
    home.lines.hear(Line(WHOLE, 2, (Member("c"), Member("a"))))
    assert "not its home" in home.step(Begin(FIRST, old)).reason


@pytest.mark.parametrize("present", [True, False])
def test_no_commit_after_an_ef_came_or_went_behind_the_cut(home: Home, present: bool) -> None:
    home.step(Begin(FIRST, HELP))
    log = home.moves.start_change_log(FIRST)
    home.moves.template_changed(b"x" * 16, FAMILY, present=present)
    changes, cut = log.take_unsent()
    assert changes == {b"x" * 16: present}
    home.moves.template_changed(b"y" * 16, FAMILY, present=present)
    refused = home.step(Commit(FIRST, cut))
    assert not refused.done and "after the cut" in refused.reason and home.epoch == 1
    _, cut = log.take_unsent()
    assert home.step(Commit(FIRST, cut)).done and home.epoch == 2


def test_what_changes_in_another_section_does_not_move_the_cut(home: Home) -> None:
    key = key_of(*FAMILY)
    split = Move(MoveKind.SPLIT, WHOLE, 1, "a", "b", key + 1)
    home.step(Begin(FIRST, split))
    log = home.moves.start_change_log(FIRST)
    home.moves.template_changed(b"x" * 16, FAMILY, present=True)
    assert log.take_unsent() == ({}, 0)


def test_no_commit_after_a_restart_that_lost_the_change_log(home: Home) -> None:
    """EFs may have come that nobody noted: the hold and the log are only in memory."""
    home.step(Begin(FIRST, HELP))
    home.moves.start_change_log(FIRST)
    home.restart()
    assert not home.step(Commit(FIRST, 0)).done and home.epoch == 1


def test_before_its_commit_a_move_can_be_given_up_and_after_it_never(home: Home) -> None:
    home.step(Begin(FIRST, HELP))
    home.moves.start_change_log(FIRST)
    assert home.step(Commit(FIRST, 0), now_us=7).done
    assert not home.step(Abort(FIRST, "too late")).done
    assert home.moves.records[FIRST].committed_us == 7 and home.epoch == 2
    again = Move(MoveKind.FLIP_ON, WHOLE, 2, "c")
    home.step(Begin(SECOND, again))
    home.step(Abort(SECOND, "why not"))
    refused = home.step(Commit(SECOND, 0))
    assert not refused.done and "given up" in refused.reason and home.epoch == 2


def test_a_home_that_owes_somebody_the_news_does_not_hand_over(home: Home) -> None:
    home.step(Begin(FIRST, Move(MoveKind.HELP_MEMORY, WHOLE, 1, "a", "b")))
    home.moves.start_change_log(FIRST)
    home.step(Commit(FIRST, 0))
    leave = Move(MoveKind.RELEASE, WHOLE, 2, "a")
    assert not home.step(Begin(SECOND, leave)).done
    home.step(End(FIRST))
    assert home.step(Begin(SECOND, leave)).done


def test_a_committed_drain_is_told_until_it_is_over_and_only_to_who_takes_part(home: Home) -> None:
    home.step(Begin(FIRST, Move(MoveKind.DRAIN, WHOLE, 1, "c", "a")))
    assert home.moves.settled_for("c") == []
    home.step(Commit(FIRST, None))
    assert [home.moves.settled_for(name) for name in "acd"] == [[FIRST], [FIRST], []]
    home.step(End(FIRST))
    assert home.moves.settled_for("c") == []


LEFT, RIGHT = WHOLE.split_at(1000)
BOTH = (Member("a"), Member("c", False))
TWO = (Line(LEFT, 2, BOTH), Line(RIGHT, 5, BOTH))


@pytest.fixture
def divided(home: Home) -> Home:
    """The same with two sections, which are alike."""
    for line in TWO:
        home.lines.hear(line)
    return home


def test_two_lines_are_merged_by_one_commit_and_stay_so_after_a_restart(divided: Home) -> None:
    merge = merge_of(*TWO)
    assert divided.step(Begin(FIRST, merge)).done
    divided.restart()
    assert divided.step(Commit(FIRST, None)).done
    assert divided.lines.all == [Line(WHOLE, 6, BOTH)]
    divided.restart()
    (record,) = divided.moves.undone
    assert record.step is MoveStep.COMMITTED and record.after == (Line(WHOLE, 6, BOTH),)
    assert record.audience == {"a", "c"}
    again = divided.step(Begin(SECOND, merge))
    assert not again.done and "two lines" in again.reason


@pytest.mark.parametrize("section", [LEFT, RIGHT])
def test_no_merge_while_a_move_is_under_way_in_either_section_nor_the_other_way_round(
    divided: Home, section: Section
) -> None:
    line = divided.lines.line_of(section.start)
    assert line is not None
    flip, merge = Move(MoveKind.FLIP_ON, section, line.epoch, "c"), merge_of(*TWO)
    divided.step(Begin(FIRST, flip))
    assert "under way" in divided.step(Begin(SECOND, merge)).reason
    divided.step(Abort(FIRST, "why not"))
    assert divided.step(Begin(SECOND, merge)).done
    assert "under way" in divided.step(Begin(b"3" * 16, flip)).reason


def test_a_merge_is_refused_also_at_its_commit_if_the_members_have_become_others(
    divided: Home,
) -> None:
    divided.step(Begin(FIRST, merge_of(*TWO)))
    divided.lines.hear(Line(LEFT, 5, (*BOTH, Member("b"))))
    refused = divided.step(Commit(FIRST, None))
    assert not refused.done and "same members" in refused.reason
    assert [line.section for line in divided.lines.all] == [LEFT, RIGHT]


def test_the_newest_ended_moves_are_kept_as_the_log(home: Home) -> None:
    for number in range(205):
        id_ = number.to_bytes(16, "big")
        home.step(Begin(id_, HELP))
        home.step(Abort(id_, "no"), now_us=number)
        home.step(End(id_))
    kept = sorted(home.moves.records)
    assert len(kept) == 200 and kept[0] == (5).to_bytes(16, "big")
    assert len(home.notes) == 200
