"""Neighbouring sections with the same members become one again, but only where there are more lines than servers, and only
where all is calm (section 3.6, backwards)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.planning.snapshot import ClusterSnapshot, Done, ServerLoad
from tests.unit.load_monitor.clusters import (
    NOW_S,
    POLICY,
    busy,
    calm,
    cluster,
    flip_on,
    full,
    moves,
    silent,
)
from utuple.cluster.move import Move, MoveKind, merge_of
from utuple.model.section import Section

AFTER_A_DRAIN = """
0000 – 3000  A1
3001 – 6500  A1
6501 – 9999  X1
"""
FIRST = Section(0, 3001)


def merges(snapshot: ClusterSnapshot) -> list[Move]:
    return [move for move in moves(snapshot) if move.kind is MoveKind.MERGE]


def expected(snapshot: ClusterSnapshot, row: int = 0) -> Move:
    return merge_of(snapshot.lines[row].line, snapshot.lines[row + 1].line)


def test_after_a_drain_what_one_server_has_of_neighbouring_sections_becomes_one() -> None:
    snapshot = cluster(AFTER_A_DRAIN)
    (move,) = moves(snapshot)
    assert move == expected(snapshot) and move.section == Section(0, 6501) and move.key == 3001


def test_the_epoch_is_that_of_the_newer_line() -> None:
    snapshot = cluster(AFTER_A_DRAIN)
    first, second, third = snapshot.lines
    newer = replace(second, line=replace(second.line, epoch=9))
    (move,) = moves(replace(snapshot, lines=(first, newer, third)))
    assert move.epoch == 9


@pytest.mark.parametrize(
    "other",
    [calm("B"), calm("B", draining=False, silent_s=1.0), silent("B")],
    ids=["in no line yet", "there", "silent"],
)
def test_there_are_at_least_as_many_lines_as_servers_that_stay(other: ServerLoad) -> None:
    assert merges(cluster(AFTER_A_DRAIN, other)) == []
    assert merges(cluster(AFTER_A_DRAIN, replace(other, draining=True))) != []


def test_no_more_lines_are_merged_than_there_are_too_many() -> None:
    figure = """
0000 – 1000  A1
1001 – 2000  A1
2001 – 3000  B1
3001 – 4000  B1
4001 – 5000  C1
5001 – 6000  C1
"""
    four = cluster(figure, calm("D", POLICY.helper_processing_max + 0.1))  # too busy for a section
    assert len(merges(four)) == 2
    under_way = (expected(four, 0),)
    assert len(merges(replace(four, under_way=under_way))) == 1, "the first is counted"
    assert len(merges(cluster(figure))) == 3, "each at another home"


def test_one_home_merges_one_pair_at_a_time() -> None:
    figure = """
0000 – 1000  A1
1001 – 2000  A1
2001 – 3000  A1
3001 – 4000  A1
"""
    assert len(merges(cluster(figure))) == 1


@pytest.mark.parametrize(
    "server",
    [
        busy("A"),
        full("A"),
        silent("A"),
        calm("A", POLICY.processing_low + 0.01),
        calm("A", 0.1, processing_lately=POLICY.processing_low + 0.01),
        calm("A", memory=POLICY.helper_memory_max + 0.01),
    ],
    ids=["busy", "full", "silent", "not calm", "not calm lately", "near its limit of memory"],
)
def test_who_is_not_calm_is_left_alone(server: ServerLoad) -> None:
    assert merges(cluster(AFTER_A_DRAIN, server)) == []


@pytest.mark.parametrize(
    "second", ["A1, B1", "A1, B0", "B1, A1"], ids=["one more", "one more, off", "other home"]
)
def test_other_members_are_not_merged(second: str) -> None:
    figure = AFTER_A_DRAIN.replace("6500  A1", f"6500  {second}").replace("X1", "B1")
    assert merges(cluster(figure)) == []


def test_lines_with_several_members_are_merged_too_and_their_order_does_not_matter() -> None:
    figure = """
0000 – 3000  A1, B0, X0
3001 – 6500  A1, X0, B0
6501 – 8000  X1
8001 – 9999  B1
"""
    snapshot = cluster(figure)
    assert merges(snapshot) == [expected(snapshot)]


@pytest.mark.parametrize("row", [0, 1])
def test_a_section_that_moves_or_has_moved_lately_is_left_alone(row: int) -> None:
    snapshot = cluster(AFTER_A_DRAIN)
    move = flip_on(snapshot.lines[row].line.section, "A")
    assert merges(replace(snapshot, under_way=(move,))) == []
    for ago_s, left in ((POLICY.stay_on_s - 1, 0), (POLICY.stay_on_s, 1)):
        recent = (Done(move, NOW_S - ago_s),)
        assert len(merges(replace(snapshot, recent=recent))) == left


def test_what_comes_first_is_relief() -> None:
    """X is overloaded: A helps it, and what A has is merged when that is settled."""
    (move,) = moves(cluster(AFTER_A_DRAIN, busy("X")))
    assert move.kind is MoveKind.HELP_PROCESSING
