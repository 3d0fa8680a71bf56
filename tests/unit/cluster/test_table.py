"""The table and its changes: laws over whole histories."""

from __future__ import annotations

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.histories import History, histories
from utuple.cluster.line import Line, Member
from utuple.cluster.table import Table
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section, tiles


def line(start: int, end: int, epoch: int, *members: str) -> Line:
    return Line(Section(start, end), epoch, tuple(map(Member, members or ("A",))))


def newest(heard: list[Line], key: int) -> tuple[int, tuple[Member, ...]] | None:
    """The naive truth: the highest epoch heard for a key."""
    known = [line for line in heard if key in line.section]
    best = max(known, key=lambda line: line.epoch, default=None)
    return (best.epoch, best.members) if best else None


def said(table: Table, key: int) -> tuple[int, tuple[Member, ...]] | None:
    line = table.line_of(key)
    return (line.epoch, line.members) if line else None


def edges(lines: list[Line]) -> set[int]:
    """Every key at which an answer can change."""
    ends = {end for line in lines for end in (line.section.start, line.section.end)}
    return {key for end in ends for key in (end - 1, end) if 0 <= key < HASH_SPACE}


@given(histories)
def test_sections_tile_the_hash_space_after_every_change(history: History) -> None:
    assert tiles(line.section for line in history.final)
    for before, after in history.changed:
        assert [after[0].section.start, after[-1].section.end] == [
            before.section.start,
            before.section.end,
        ]
        assert all(a.section.end == b.section.start for a, b in itertools.pairwise(after))


@given(histories)
def test_a_change_makes_the_next_epoch_with_an_accumulatable_member_and_a_home_that_serves(
    history: History,
) -> None:
    for before, after in history.changed:
        for line in after:
            assert line.epoch == before.epoch + 1
            assert line.accumulatable
            assert not line.members[0].suspended


@given(histories, st.randoms(use_true_random=False))
def test_a_whole_history_heard_in_any_order_and_repeatedly_gives_the_last_table(
    history: History, dice: Random
) -> None:
    heard = history.ever + history.ever[::2]
    dice.shuffle(heard)
    assert list(Table(heard)) == history.final


@given(histories, st.data())
def test_any_part_of_a_history_in_any_order_gives_each_key_its_highest_epoch(
    history: History, data: st.DataObject
) -> None:
    heard = data.draw(st.lists(st.sampled_from(history.ever), max_size=20))
    table = Table(heard)
    for key in edges(history.ever):
        assert said(table, key) == newest(heard, key)


@given(histories, st.data())
def test_late_news_never_lowers_an_epoch(history: History, data: st.DataObject) -> None:
    table = Table(history.ever)
    for late in data.draw(st.lists(st.sampled_from(history.ever), max_size=10)):
        assert not table.hear(late)
    assert list(table) == history.final


@given(histories, st.data())
def test_rows_stay_sorted_and_apart(history: History, data: st.DataObject) -> None:
    table = Table(data.draw(st.lists(st.sampled_from(history.ever), max_size=20)))
    assert table.starts == [line.section.start for line in table]
    assert table.ends == [line.section.end for line in table]
    assert all(end <= start for end, start in zip(table.ends, table.starts[1:], strict=False))


def test_a_key_without_a_line_has_none() -> None:
    table = Table([line(10, 20, 1), line(30, 40, 1)])
    assert [table.line_of(key) is None for key in (9, 10, 19, 20, 29, 30, 40)] == [
        True, False, False, True, True, False, True,
    ]  # fmt: skip
    assert table.overlapping(Section(20, 31)) == [line(30, 40, 1)]
    assert table.overlapping(Section(20, 30)) == []
    assert table.holes(Section(0, 50)) == [Section(0, 10), Section(20, 30), Section(40, 50)]


def test_a_newer_line_cuts_the_older_and_what_is_left_over_stays() -> None:
    table = Table([line(0, 100, 1, "A")])
    assert table.hear(line(40, 60, 2, "B"))
    assert list(table) == [line(0, 40, 1, "A"), line(40, 60, 2, "B"), line(60, 100, 1, "A")]


def test_an_older_line_fills_only_what_nothing_newer_covers() -> None:
    table = Table([line(40, 60, 2, "B")])
    assert table.hear(line(0, 100, 1, "A"))
    assert list(table) == [line(0, 40, 1, "A"), line(40, 60, 2, "B"), line(60, 100, 1, "A")]
    assert not table.hear(line(0, 100, 1, "A"))


def test_a_left_over_part_gives_way_to_the_whole_it_was_cut_from() -> None:
    table = Table([line(0, 40, 3, "A"), line(60, 100, 3, "A")])
    assert table.hear(line(0, 100, 3, "A"))
    assert list(table) == [line(0, 100, 3, "A")]


def test_a_forgotten_line_is_gone_alone() -> None:
    table = Table([line(0, 40, 3, "A"), line(40, 100, 1, "B")])
    table.forget(39)
    table.forget(39)
    assert list(table) == [line(40, 100, 1, "B")]


def test_what_is_older_than_an_epoch_is_cut_and_nothing_else() -> None:
    table = Table([line(0, 40, 3, "A"), line(40, 100, 1, "B")])
    assert table.cut(Section(20, 50), 3)
    assert list(table) == [line(0, 40, 3, "A"), line(50, 100, 1, "B")]
    assert not table.cut(Section(20, 50), 3)


def test_a_member_is_shown_with_its_flag_apart_from_its_name() -> None:
    members = Member("server-1"), Member("server-2", False), Member("server-3", False, True)
    assert ", ".join(map(str, members)) == "server-1 1, server-2 0, server-3 ?"
