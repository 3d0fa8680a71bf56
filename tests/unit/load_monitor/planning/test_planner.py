"""The planner by the paper's own examples: sections 3.4 to 3.6 and Appendix A.1 to A.3."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.planning.snapshot import (
    ClusterSnapshot,
    Done,
    MemberLoad,
    SectionLoad,
    ServerLoad,
)
from tests.unit.cluster.test_figures import BEFORE
from tests.unit.load_monitor.clusters import (
    NOW_S,
    POLICY,
    asked,
    busy,
    calm,
    cluster,
    drain,
    flip_off,
    flip_on,
    full,
    help_memory,
    help_processing,
    moves,
    release,
    return_,
    silent,
    split,
    suspend,
    table_after,
)
from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, target
from utuple.model.section import Section, equal_sections

A, B, X = Section(0, 3001), Section(3001, 6501), Section(6501, 10_000)


def idle(name: str) -> ServerLoad:
    return calm(name, 0.01)


def made(snapshot: ClusterSnapshot, move: Move) -> ClusterSnapshot:
    """The same cluster after a move that makes one line of one line."""
    lines = list(snapshot.lines)
    at = next(at for at, load in enumerate(lines) if load.line.section == move.section)
    lines[at] = replace(lines[at], line=target(move, lines[at].line)[0])
    return replace(snapshot, lines=tuple(lines))


def test_nothing_moves_in_a_cluster_that_is_well() -> None:
    assert moves(cluster(BEFORE)) == []


def test_section_3_4_the_lightest_server_helps_the_busy_one_as_in_figure_3() -> None:
    snapshot = cluster(BEFORE, busy("A"), calm("B", 0.2), calm("X", 0.4))
    planned = moves(snapshot)
    assert planned == [help_processing(A, "A", "B")]
    assert (
        table_after(snapshot, planned)
        == """
0000 – 3000  A1, B1
3001 – 6500  B1
6501 – 9999  X1
"""
    )


def test_section_3_4_help_is_for_eas_and_cfs_and_not_for_what_every_member_is_asked() -> None:
    """EFs, CAs and reads go to every member: a helper would be asked as much, and relieve nobody."""
    rest = calm("B", 0.2), calm("X", 0.4)
    assert moves(cluster(BEFORE, asked("A", 0.95), *rest)) == []
    assert moves(cluster(BEFORE, asked("A", POLICY.processing_stop), *rest)) == []
    mostly_eas = asked("A", POLICY.processing_stop - 0.01)
    assert moves(cluster(BEFORE, mostly_eas, *rest)) == [help_processing(A, "A", "B")]


def test_a_helper_that_is_mostly_asked_goes_off_since_the_others_can_take_what_it_takes() -> None:
    """Of its load only EAs and CFs would go to them; what it is asked, they are asked already."""
    figure = "0000 – 9999  A1, B1"
    one = calm("A", 0.3)
    assert moves(cluster(figure, one, calm("B", 0.4))) == []
    asked_most = calm("B", 0.4, searches=0.38)
    assert moves(cluster(figure, one, asked_most)) == [flip_off(Section(0, 10_000), "B")]


def test_section_3_5_a_full_server_gets_help_whatever_keeps_it_busy() -> None:
    server = replace(asked("A", 0.95), memory=0.9, memory_high=True)
    assert moves(cluster(BEFORE, server, calm("B", 0.2))) == [help_memory(A, "A", "B")]


def test_section_3_5_the_lightest_server_takes_over_from_the_full_one_as_in_figure_4() -> None:
    snapshot = cluster(BEFORE, full("A"), calm("B", 0.2, 0.2), calm("X", 0.2, 0.4))
    planned = moves(snapshot)
    assert planned == [help_memory(A, "A", "B")]
    assert (
        table_after(snapshot, planned)
        == """
0000 – 3000  A0, B1
3001 – 6500  B1
6501 – 9999  X1
"""
    )


def test_section_3_5_a_full_server_keeps_the_sections_nothing_flows_into() -> None:
    figure = "0000 – 3000  A1\n3001 – 6500  A1\n6501 – 9999  X1"
    rates = {0: 0.0, 3001: 5.0}
    assert moves(cluster(figure, full("A"), arrivals=rates)) == [help_memory(B, "A", "X")]
    moved = figure.replace("6500  A1", "6500  A0, X1")
    assert moves(cluster(moved, full("A"), arrivals=rates)) == []


def test_section_3_6_a_new_server_takes_half_of_the_heaviest_one_as_in_figure_5() -> None:
    snapshot = cluster(BEFORE, calm("A", 0.7), calm("Z", 0.0, 0.0))
    planned = moves(snapshot)
    assert planned == [split(A, "A", "Z")]
    assert (
        table_after(snapshot, planned, key=1501)
        == """
0000 – 1500  A1
1501 – 3000  A0, Z1
3001 – 6500  B1
6501 – 9999  X1
"""
    )


def test_a_server_takes_nothing_of_a_section_it_was_drained_of() -> None:
    drained = calm("Z", 0.01, left=(Section(1, 2),))
    snapshot = cluster(BEFORE, calm("A", 0.7), calm("B", 0.6), drained)
    assert moves(snapshot) == [split(B, "B", "Z")]
    everywhere = replace(drained, left=(A, B, X))
    snapshot = cluster(BEFORE, calm("A", 0.7), calm("B", 0.6), everywhere)
    assert moves(snapshot) == []
    snapshot = cluster(BEFORE, calm("A", 0.7), calm("B", 0.6), everywhere, calm("Y", 0.01))
    assert moves(snapshot) == [split(A, "A", "Y")]
    snapshot = cluster(BEFORE, busy("A"), calm("B", 0.2), calm("X", 0.4), everywhere)
    assert moves(snapshot) == [help_processing(A, "A", "B")]


def test_section_3_6_a_section_of_one_hot_key_is_shared_with_the_new_server_instead() -> None:
    snapshot = cluster(BEFORE, calm("A", 0.7), calm("Z", 0.0, 0.0))
    hot = SectionLoad(snapshot.lines[0].line, snapshot.lines[0].members, splittable=False)
    snapshot = replace(snapshot, lines=(hot, *snapshot.lines[1:]))
    assert moves(snapshot) == [help_processing(A, "A", "Z")]


@pytest.mark.parametrize(("more", "is_shared"), [(0.0, False), (0.01, True)])
def test_what_would_only_be_sent_off_again_is_not_shared_with_a_new_server(
    more: float, is_shared: bool
) -> None:
    """Seed 4001286: help, flip off and release took turns for ever, and no command outlived an epoch."""
    snapshot = cluster(BEFORE, calm("A", POLICY.processing_low + more), calm("Z", 0.0, 0.0))
    hot = tuple(SectionLoad(load.line, load.members, splittable=False) for load in snapshot.lines)
    planned = moves(replace(snapshot, lines=hot))
    assert planned == ([help_processing(A, "A", "Z")] if is_shared else [])


def test_a_crowded_line_is_not_split_for_a_new_server_but_the_next_one_is() -> None:
    """Both halves of a split keep every member, and every copy of their EFs: nearer the worst condition."""
    figure = "0000 – 3000  A1, B1, X1\n3001 – 6500  A1\n6501 – 9999  B1"
    snapshot = cluster(figure, calm("A", 0.7), calm("Z", 0.0, 0.0), arrivals={0: 90.0, 3001: 30.0})
    assert moves(snapshot) == [split(A, "A", "Z")]
    few = replace(POLICY, split_members_max=2)
    assert moves(snapshot, few) == [split(B, "A", "Z")]
    crumbs = cluster(figure, calm("A", 0.7), calm("Z", 0.0, 0.0), arrivals={0: 90.0, 3001: 3.0})
    assert moves(crumbs, few) == [help_processing(A, "A", "Z")]


def test_appendix_a_where_the_hot_section_can_get_no_more_help_none_is_called_for_crumbs() -> None:
    """It would not relieve the server, and it would be called again and again: the worst condition."""
    figure = "0000 – 3000  A1, B1\n3001 – 6500  A1\n6501 – 9999  X1"
    loads = busy("A"), busy("B"), idle("X")
    snapshot = cluster(figure, *loads, arrivals={0: 990.0, 3001: 10.0})
    assert moves(snapshot, replace(POLICY, members_max=2)) == []
    half = cluster(figure, *loads, arrivals={0: 500.0, 3001: 500.0})
    assert moves(half, replace(POLICY, members_max=2)) == [help_processing(B, "A", "X")]


def test_a_server_busy_with_many_small_sections_gets_help_all_the_same() -> None:
    sections = equal_sections(33)
    lines = [
        SectionLoad(Line(section, 1, (Member(name),)), (MemberLoad(10, 1, 10.0),))
        for section, name in zip(sections, ["A"] * 32 + ["X"], strict=True)
    ]
    snapshot = ClusterSnapshot(NOW_S, (busy("A"), idle("X")), tuple(lines))
    (move,) = moves(snapshot)
    assert move.kind is MoveKind.HELP_PROCESSING and move.helper == "X"


def test_with_as_many_lines_as_servers_a_new_server_takes_over_a_line_of_one_with_several() -> None:
    figure = "0000 – 3000  A1\n3001 – 6500  B1\n6501 – 9999  A1"
    snapshot = cluster(figure, calm("Z", 0.0, 0.0), arrivals={0: 100.0, 6501: 10.0})
    assert moves(snapshot) == [help_memory(X, "A", "Z")]


def test_a_1_a_busy_member_goes_off_where_another_that_is_on_has_room() -> None:
    figure = "0000 – 3000  A1, B1\n3001 – 6500  A1\n6501 – 9999  X1"
    others = calm("B", 0.1), calm("X", 0.0, 0.0)
    snapshot = cluster(figure, busy("A", 0.9), *others, arrivals={0: 30.0, 3001: 70.0})
    assert moves(snapshot) == [flip_off(A, "A")]


def test_a_1_a_busy_member_stays_on_where_its_part_would_only_overload_the_other() -> None:
    figure = "0000 – 3000  A1, B1\n3001 – 9999  X1"
    snapshot = cluster(figure, busy("A", 0.95), calm("B", 0.4), calm("X", 0.1))
    assert moves(snapshot) == [help_processing(A, "A", "X")]


def test_a_1_a_member_that_is_off_comes_on_before_a_lighter_stranger_joins() -> None:
    snapshot = cluster("0000 – 3000  A1, B0\n3001 – 9999  X1", busy("A"), calm("X", 0.0, 0.0))
    assert moves(snapshot) == [flip_on(A, "B")]


def test_a_1_for_memory_a_member_in_charge_comes_on_as_the_full_one_goes_off() -> None:
    snapshot = cluster("0000 – 3000  A1, B0\n3001 – 9999  X1", full("A"), calm("X", 0.0, 0.0))
    assert moves(snapshot) == [help_memory(A, "A", "B")]
    snapshot = cluster("0000 – 3000  A1, B1\n3001 – 9999  X1", full("A"), calm("X", 0.0, 0.0))
    assert moves(snapshot) == [flip_off(A, "A")]


def test_a_2_one_helper_at_a_time_for_the_hottest_section_first() -> None:
    figure = "0000 – 3000  A1\n3001 – 6500  A1\n6501 – 9999  X1"
    snapshot = cluster(figure, busy("A"), arrivals={0: 10.0, 3001: 90.0})
    assert moves(snapshot) == [help_processing(B, "A", "X")]


def test_a_2_a_server_that_was_just_helped_is_looked_at_again_after_it_settled() -> None:
    helped = "0000 – 3000  A1, B1\n3001 – 6500  B1\n6501 – 9999  X1"
    for age_s, expected in ((5.0, []), (POLICY.settle_s, [help_processing(A, "A", "X")])):
        done = Done(help_processing(A, "A", "B"), NOW_S - age_s)
        snapshot = cluster(helped, busy("A"), calm("B", 0.45), calm("X", 0.45), recent=(done,))
        assert moves(snapshot) == expected


def test_a_2_two_busy_members_of_one_section_get_one_helper_for_both() -> None:
    figure = "0000 – 3000  A1, B1\n3001 – 6500  B1\n6501 – 9999  X1"
    rates = {0: 100.0, 3001: 1.0}
    snapshot = cluster(figure, busy("A"), busy("B"), calm("Y", 0.4), arrivals=rates)
    snapshot = replace(snapshot, under_way=(flip_on(X, "Y"),))
    assert moves(snapshot) == [help_processing(A, "A", "X")]


def test_a_3_a_member_that_is_off_and_empty_is_released() -> None:
    figure = "0000 – 3000  A0, B1\n3001 – 6500  A1\n6501 – 9999  X1"
    snapshot = cluster(figure, empty=["A"])
    planned = moves(snapshot)
    assert planned == [release(A, "A")]
    assert (
        table_after(snapshot, planned)
        == """
0000 – 3000  B1
3001 – 6500  A1
6501 – 9999  X1
"""
    )


@pytest.mark.parametrize("members", ["A0, B1", "A1, B0"])
def test_a_3_a_member_that_still_holds_something_stays(members: str) -> None:
    assert moves(cluster(f"0000 – 3000  {members}\n3001 – 9999  X1", empty=["X"])) == []


def test_a_helper_goes_off_when_the_load_is_gone_and_the_last_that_came_goes_first() -> None:
    snapshot = cluster("0000 – 3000  A1, B1, X1\n3001 – 9999  X1", *map(idle, "ABX"))
    assert moves(snapshot) == [flip_off(A, "X")]


def test_a_helper_stays_on_while_the_others_would_not_keep_below_the_low_threshold() -> None:
    assert moves(cluster("0000 – 3000  A1, B1\n3001 – 9999  X1", *map(calm, "ABX"))) == []


def test_a_helper_stays_on_in_a_pause_of_the_load() -> None:
    paused = [replace(idle(name), processing_lately=0.7) for name in "ABX"]
    assert moves(cluster("0000 – 3000  A1, B1\n3001 – 9999  X1", *paused)) == []


def test_a_helper_that_just_came_is_not_sent_off_before_its_time() -> None:
    figure = "0000 – 3000  A1, B1\n3001 – 9999  X1"
    for age_s, expected in ((POLICY.stay_on_s - 1, []), (POLICY.stay_on_s, [flip_off(A, "B")])):
        done = Done(help_processing(A, "A", "B"), NOW_S - age_s)
        assert moves(cluster(figure, *map(idle, "ABX"), recent=(done,))) == expected


def test_a_line_with_a_move_under_way_is_left_alone() -> None:
    under_way = (help_processing(A, "A", "B"),)
    assert moves(cluster(BEFORE, busy("A"), under_way=under_way)) == []


def test_a_section_whose_limit_is_used_up_is_left_alone() -> None:
    spent = tuple(
        Done(help_processing(A, "Q", "R"), NOW_S - 400 - n) for n in range(POLICY.moves_per_section)
    )
    assert moves(cluster(BEFORE, busy("A"), recent=spent)) == []
    assert moves(cluster(BEFORE, busy("A"), recent=spent[1:])) == [help_processing(A, "A", "B")]


def test_the_halves_of_a_split_section_inherit_its_limit() -> None:
    whole = tuple(
        Done(flip_on(Section(0, 10_000), "Q"), NOW_S - 400 - n)
        for n in range(POLICY.moves_per_section)
    )
    assert moves(cluster(BEFORE, busy("A"), full("X"), recent=whole)) == []


def test_many_busy_servers_are_helped_a_few_at_a_time() -> None:
    names = [f"{kind}{n:02d}" for kind in ("hot", "cold") for n in range(20)]
    figure = "\n".join(f"{at:04d} – {at:04d}  {name}1" for at, name in enumerate(names))
    planned = moves(cluster(figure, *map(busy, names[:20])))
    assert len(planned) == POLICY.moves_at_once
    helpers = [move.helper for move in planned if move.kind is MoveKind.HELP_PROCESSING]
    assert len(set(helpers)) == len(planned)


def test_a_silent_member_is_suspended_even_if_the_limit_is_used_up() -> None:
    figure = "0000 – 3000  A1, B1\n3001 – 9999  X1"
    spent = tuple(Done(flip_on(A, "Q"), NOW_S - n) for n in range(POLICY.moves_per_section))
    assert moves(cluster(figure, silent("B"), recent=spent)) == [suspend(A, "B")]


def test_the_last_member_that_is_on_is_not_suspended_for_it_alone_has_the_templates() -> None:
    assert moves(cluster("0000 – 3000  A0, B1\n3001 – 9999  X1", silent("B"))) == []


def test_the_lines_of_a_silent_home_are_left_alone() -> None:
    figure = "0000 – 3000  A1, B1, X0\n3001 – 9999  X1"
    assert moves(cluster(figure, silent("A"), busy("B"), empty=["X"])) == []
    gone = made(cluster(figure, silent("A")), suspend(A, "X"))
    assert moves(gone) == []


@pytest.mark.parametrize("draining", [False, True])
def test_a_home_is_not_released_to_a_next_one_that_is_silent(draining: bool) -> None:
    figure = "0000 – 3000  A0, B1\n3001 – 9999  X1"
    assert moves(cluster(figure, calm("A", draining=draining), silent("B"), empty=["A"])) == []


def test_a_suspended_member_that_answers_returns_and_not_before_its_time() -> None:
    gone = made(cluster("0000 – 3000  A1, B1\n3001 – 9999  X1"), suspend(A, "B"))
    assert moves(gone) == [return_(A, "B", epoch=2)]
    assert table_after(gone, moves(gone)).startswith("\n0000 – 3000  A1, B1\n")
    just_now = (Done(suspend(A, "B"), NOW_S - 10),)
    assert moves(replace(gone, recent=just_now)) == []


def test_a_draining_server_goes_off_with_a_helper_in_its_place_then_leaves_to_an_heir() -> None:
    leaving = calm("A", draining=True)
    assert moves(cluster(BEFORE, leaving, calm("B", 0.2))) == [help_memory(A, "A", "B")]
    shared = "0000 – 3000  A1, B1\n3001 – 6500  B1\n6501 – 9999  X1"
    assert moves(cluster(shared, leaving, calm("B", 0.1))) == [flip_off(A, "A")]
    off = "0000 – 3000  A0, B1\n3001 – 6500  B1\n6501 – 9999  X1"
    snapshot = cluster(off, leaving)
    assert moves(snapshot) == [drain(A, "A", "B")]
    assert table_after(snapshot, moves(snapshot)).startswith("\n0000 – 3000  B1\n")
    assert moves(cluster(off, leaving, empty=["A"])) == [release(A, "A")]


def test_what_a_partitioned_line_does_not_admit_is_planned_after_it_is_gathered() -> None:
    """Its home stays on, and is the only heir."""
    shared = cluster(
        "0000 – 3000  A1, B1\n3001 – 9999  X1", calm("A", draining=True), calm("B", 0.1)
    )
    assert moves(shared) == [flip_off(A, "A")]
    first, *others = shared.lines
    cut = Layout((Axis("lat", (0,), (("A", "B"), ("A",))),))
    lines = (replace(first, line=replace(first.line, layout=cut)), *others)
    (gather,) = moves(replace(shared, lines=lines))
    assert gather == Move(MoveKind.GATHER, A, 1, "A") and "partitioned" in gather.why
    leaving = (calm("A"), calm("B", draining=True), calm("X", 0.2))
    assert moves(replace(shared, lines=lines, servers=leaving)) == [flip_off(A, "B")]


def test_a_draining_server_whose_heir_is_full_gets_another_one_first() -> None:
    off = "0000 – 3000  A0, B1\n3001 – 6500  B1\n6501 – 9999  X1"
    snapshot = cluster(off, calm("A", draining=True), calm("B", memory=0.65))
    assert moves(snapshot) == [help_processing(A, "B", "X")]
