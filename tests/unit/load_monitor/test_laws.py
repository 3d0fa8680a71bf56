"""What every plan keeps, whatever is wrong with the cluster at the same time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from load_monitor.planning.planner import plan
from load_monitor.planning.snapshot import ClusterSnapshot, MemberLoad, SectionLoad, ServerLoad
from tests.unit.load_monitor.clusters import (
    NAMES,
    NOW_S,
    POLICY,
    any_snapshots,
    moves,
    shares,
    snapshots,
)
from utuple.cluster.line import first_table
from utuple.cluster.move import Move, MoveKind, line_of, target
from utuple.cluster.table import Table


def taker_of(move: Move) -> str | None:
    """Who gets more to do by this move."""
    if move.kind is MoveKind.RETURN:
        return None
    return move.helper or move.learner


def test_the_generated_snapshots_meet_every_kind_of_move() -> None:
    kinds: set[MoveKind] = set()

    @settings(max_examples=1_000, derandomize=True)
    @given(any_snapshots)
    def look(snapshot: ClusterSnapshot) -> None:
        kinds.update(move.kind for move in moves(snapshot))

    look()
    ordered_by_others = {
        *(MoveKind.PARTITION, MoveKind.RECUT, MoveKind.GATHER, MoveKind.PRUNE),
    }
    assert kinds == set(MoveKind) - ordered_by_others


@given(any_snapshots)
def test_a_plan_leaves_a_whole_table_with_every_line_served(snapshot: ClusterSnapshot) -> None:
    table = Table(load.line for load in snapshot.lines)
    for move in moves(snapshot):
        before = line_of(move, table.overlapping(move.section))
        if move.kind is MoveKind.SPLIT:
            move = replace(move, key=(move.section.start + move.section.end) // 2)
        for line in target(move, before):
            assert line.accumulatable
            assert table.hear(line)
        assert table.is_whole


@given(any_snapshots)
def test_a_section_is_in_one_move_at_most(snapshot: ClusterSnapshot) -> None:
    sections = [move.section for move in (*snapshot.under_way, *moves(snapshot))]
    assert len(set(sections)) == len(sections)


@given(any_snapshots)
def test_nobody_near_a_threshold_silent_or_draining_gets_more_to_do(
    snapshot: ClusterSnapshot,
) -> None:
    servers = {server.name: server for server in snapshot.servers}
    for name in filter(None, map(taker_of, moves(snapshot))):
        taker = servers[name]
        assert not (taker.draining or taker.processing_high or taker.memory_high)
        assert taker.silent_s <= POLICY.silent_s
        assert taker.processing <= POLICY.helper_processing_max
        assert taker.memory <= POLICY.helper_memory_max


@given(any_snapshots)
def test_nobody_takes_from_two_at_once(snapshot: ClusterSnapshot) -> None:
    at_work = {name for move in snapshot.under_way for name in move.servers}
    takers = [name for name in map(taker_of, moves(snapshot)) if name is not None]
    assert len(set(takers)) == len(takers)
    assert not at_work.intersection(takers)


@given(any_snapshots)
def test_only_a_member_that_is_off_and_empty_is_released(snapshot: ClusterSnapshot) -> None:
    loads = {load.line.section: load for load in snapshot.lines}
    for move in moves(snapshot):
        if move.kind in (MoveKind.RELEASE, MoveKind.DRAIN):
            load = loads[move.section]
            at = [member.name for member in load.line.members].index(move.member)
            assert not load.line.members[at].accumulatable
            assert load.members[at].is_empty or move.kind is MoveKind.DRAIN


@given(any_snapshots)
def test_silence_only_ever_leads_to_suspension(snapshot: ClusterSnapshot) -> None:
    silent = {server.name for server in snapshot.servers if server.silent_s > POLICY.silent_s}
    homes = {load.line.section: load.line.home for load in snapshot.lines}
    for move in moves(snapshot):
        assert homes[move.section] not in silent
        if move.kind is MoveKind.SUSPEND:
            assert move.member in silent
        else:
            assert not silent.intersection(move.servers)


@given(snapshots(), st.randoms(use_true_random=False))
def test_a_plan_follows_from_the_snapshot_and_not_from_the_order_of_its_servers(
    snapshot: ClusterSnapshot, dice: object
) -> None:
    shuffled = list(snapshot.servers)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    again = plan(replace(snapshot, servers=tuple(shuffled)), POLICY)
    assert again.moves == plan(snapshot, POLICY).moves
    assert plan(snapshot, POLICY) == plan(snapshot, POLICY)


@given(snapshots())
def test_a_plan_that_is_under_way_is_not_made_again(snapshot: ClusterSnapshot) -> None:
    first = moves(snapshot)
    again = moves(replace(snapshot, under_way=tuple(first)))
    assert not {move.section for move in first} & {move.section for move in again}


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=len(NAMES)))
def test_nothing_moves_without_an_alarm_where_each_server_has_its_line(
    loads: list[tuple[float, float]],
) -> None:
    names = NAMES[: len(loads)]
    servers = tuple(ServerLoad(n, *load) for n, load in zip(names, loads, strict=True))
    lines = tuple(SectionLoad(line, (MemberLoad(),)) for line in first_table(names))
    assert moves(ClusterSnapshot(NOW_S, servers, lines)) == []


@given(snapshots())
def test_every_move_says_why(snapshot: ClusterSnapshot) -> None:
    assert all(move.why for move in moves(snapshot))


@given(snapshots())
def test_a_suspended_member_does_nothing_but_return(snapshot: ClusterSnapshot) -> None:
    lines = {load.line.section: load.line for load in snapshot.lines}
    for move in moves(snapshot):
        for name in move.servers:
            member = lines[move.section].member(name)
            if member is not None and member.suspended:
                assert move.kind is MoveKind.RETURN and move.member == name


@given(snapshots())
def test_a_member_goes_off_only_where_another_that_answers_stays_on(
    snapshot: ClusterSnapshot,
) -> None:
    lines = {load.line.section: load.line for load in snapshot.lines}
    answering = {s.name for s in snapshot.servers if s.silent_s <= POLICY.silent_s}
    for move in moves(snapshot):
        if move.kind in (MoveKind.FLIP_OFF, MoveKind.SUSPEND):
            assert {*lines[move.section].accumulatable} & answering - {move.member}
