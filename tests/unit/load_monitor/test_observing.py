"""From what servers say to the snapshot a plan is made from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.observing import (
    PENDING_S,
    PollResult,
    Report,
    SectionReport,
    SnapshotBuilder,
)
from load_monitor.planning.planner import plan
from load_monitor.planning.policy import LIVE, Policy
from load_monitor.planning.snapshot import UNKNOWN, ClusterSnapshot, Done
from load_monitor.window import Sample
from tests.unit.load_monitor.clusters import flip_off, help_processing, release, split
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

HALF = HASH_SPACE // 2
LEFT, RIGHT = Section(0, HALF), Section(HALF, HASH_SPACE)
A1, B1 = Member("A"), Member("B")
LINES = (Line(LEFT, 1, (A1,)), Line(RIGHT, 1, (B1,)))
HELP = Move(MoveKind.HELP_PROCESSING, LEFT, 1, "A", "B", why="hot")
NOW_S, NOW_US = 1_000.0, 5_000_000_000


def recorded(id_: bytes, move: Move, committed_us: int) -> MoveRecord:
    step = MoveStep.COMMITTED if committed_us else MoveStep.LEARNING
    return MoveRecord(id_, move, LINES[0], step, committed_us=committed_us)


def says(
    name: str,
    *sections: SectionReport,
    busy: float = 0.1,
    rate: float = 10.0,
    moves: tuple[MoveRecord, ...] = (),
    lines: tuple[Line, ...] = (),
    leaving: bool = False,
) -> Report:
    arrivals = {section.section: rate for section in sections}
    sample = Sample(name, busy, 0.0, 10, 1_000, arrivals)
    return Report(sample, lines, sections, moves, leaving)


def sight(*reports: Report, lines: tuple[Line, ...] = LINES, servers: str = "AB") -> PollResult:
    return PollResult(lines, frozenset(servers), reports)


def several_keys(section: Section, key: int) -> SectionReport:
    return SectionReport(section, 10, 2, is_splittable=True, some_key=key)


A = says("A", several_keys(LEFT, 5))
B = says("B", SectionReport(RIGHT, is_empty=True))


def taken(*sightings: PollResult, builder: SnapshotBuilder | None = None) -> ClusterSnapshot:
    """The snapshot after these polls, one a second, the last of them now."""
    builder = builder or SnapshotBuilder(LIVE)
    snapshots = [
        builder.snapshot(seen, NOW_S - ago, NOW_US - ago * 1_000_000)
        for ago, seen in zip(range(len(sightings) - 1, -1, -1), sightings, strict=True)
    ]
    return snapshots[-1]


def server_names(snapshot: ClusterSnapshot) -> list[str]:
    return [server.name for server in snapshot.servers]


def test_what_members_say_of_a_section_stands_beside_its_line() -> None:
    snapshot = taken(sight(A, B))
    left, right = snapshot.lines
    assert (left.line, right.line) == LINES
    assert left.members[0].rows == 10 and left.members[0].templates == 2
    assert left.members[0].arrival_per_s == 10.0
    assert left.splittable and not left.members[0].is_empty
    assert right.members[0].is_empty


def test_a_member_that_has_said_nothing_is_not_taken_for_empty() -> None:
    snapshot = taken(sight(A))
    assert snapshot.lines[1].members == (UNKNOWN,)
    assert not snapshot.lines[1].splittable


def test_silence_counts_from_when_a_server_was_first_known_of() -> None:
    snapshot = taken(sight(A), sight(A), sight(A))
    silent_s = {server.name: server.silent_s for server in snapshot.servers}
    assert silent_s == {"A": 0.0, "B": 2.0}


def test_a_monitor_that_slept_takes_nobody_else_for_silent() -> None:
    builder = SnapshotBuilder(LIVE)
    builder.snapshot(sight(A, B), NOW_S - 3_600, NOW_US)
    snapshot = builder.snapshot(sight(A), NOW_S, NOW_US)
    assert {server.name: server.silent_s for server in snapshot.servers} == {"A": 0.0, "B": 0.0}


def test_a_homes_own_line_wins_over_the_managers_older_one() -> None:
    newer = Line(LEFT, 2, (A1, B1))
    snapshot = taken(sight(says("A", lines=(newer,)), B))
    assert snapshot.lines[0].line == newer


def test_a_server_in_no_line_is_there_while_it_answers() -> None:
    z = says("Z")
    assert server_names(taken(sight(A, B, z, servers="ABZ"))) == ["A", "B", "Z"]
    polls = [sight(A, B, servers="ABZ")] * (int(LIVE.silent_s) + 2)
    assert server_names(taken(*polls)) == ["A", "B"], "stopped after a drain, or before it began"


def test_a_server_that_is_gone_is_forgotten() -> None:
    snapshot = taken(sight(A, B, says("Z", leaving=True), servers="ABZ"), sight(A, B))
    assert server_names(snapshot) == ["A", "B"]


def test_who_leaves_is_draining_until_it_is_told_to_stay() -> None:
    def draining(*sightings: PollResult) -> list[str]:
        return [server.name for server in taken(*sightings).servers if server.draining]

    leaves = says("A", leaving=True)
    assert draining(sight(leaves, B)) == ["A"]
    assert draining(sight(leaves, B), sight(B)) == ["A"], "silent for a moment"
    assert draining(sight(leaves, B), sight(A, B)) == []


# ------------------------------------------------------------------------------------------------ moves


def test_the_past_comes_from_the_homes_records_on_our_own_clock() -> None:
    ended = recorded(b"1", HELP, NOW_US - 40_000_000)
    ahead = recorded(b"2", Move(MoveKind.FLIP_OFF, LEFT, 2, "B"), NOW_US + 5_000_000)
    snapshot = taken(sight(says("A", moves=(ended, ahead)), B))
    assert set(snapshot.recent) == {
        Done(help_processing(LEFT, "A", "B"), NOW_S - 40),
        Done(flip_off(LEFT, "B", epoch=2), NOW_S),
    }
    assert snapshot.under_way == ()


def test_what_a_home_recorded_is_remembered_while_it_is_silent_and_forgotten_with_the_window() -> (
    None
):
    builder = SnapshotBuilder(LIVE)
    seen = sight(says("A", moves=(recorded(b"1", HELP, NOW_US),)), B)
    assert len(builder.snapshot(seen, NOW_S, NOW_US).recent) == 1
    assert len(builder.snapshot(sight(B), NOW_S + 10, NOW_US + 10_000_000).recent) == 1
    later_us = NOW_US + int((LIVE.limit_window_s + 1) * 1e6)
    assert builder.snapshot(sight(A, B), NOW_S + LIVE.limit_window_s, later_us).recent == ()


def test_a_move_under_way_stands_in_the_way() -> None:
    snapshot = taken(sight(says("A", moves=(recorded(b"1", HELP, 0),)), B))
    assert snapshot.under_way == (help_processing(LEFT, "A", "B"),)


@pytest.mark.parametrize("step", [MoveStep.COMMITTED, MoveStep.DONE])
def test_a_move_that_is_decided_is_being_announced_until_everybody_knows(step: MoveStep) -> None:
    record = replace(recorded(b"1", HELP, NOW_US), step=step, committed_us=NOW_US)
    snapshot = taken(sight(says("A", moves=(record,)), B))
    assert snapshot.under_way == ()
    assert snapshot.announced == ((HELP,) if step is MoveStep.COMMITTED else ())


def test_an_accepted_order_counts_as_under_way_until_its_home_shows_it_or_a_while_has_passed() -> (
    None
):
    builder = SnapshotBuilder(LIVE)
    builder.snapshot(sight(A, B), NOW_S, NOW_US)
    move = help_processing(LEFT, "A", "B")
    builder.note_accepted(b"1", move, NOW_S)
    assert builder.snapshot(sight(A, B), NOW_S + 1, NOW_US).under_way == (move,)
    late = builder.snapshot(sight(A, B), NOW_S + PENDING_S + 1, NOW_US)
    assert late.under_way == ()

    builder.note_accepted(b"2", move, NOW_S)
    shown = sight(says("A", moves=(recorded(b"2", HELP, NOW_US),)), B)
    assert builder.snapshot(shown, NOW_S + 1, NOW_US).under_way == ()


# ----------------------------------------------------------------------------------------------- orders


def test_an_order_goes_to_the_home_of_its_line() -> None:
    builder = SnapshotBuilder(LIVE)
    builder.snapshot(sight(A, B, lines=(Line(LEFT, 9, (B1, A1)), LINES[1])), NOW_S, NOW_US)
    planned = release(LEFT, "A", epoch=9)
    assert builder.addressed(planned) == ("B", planned)


def test_a_move_of_a_section_that_is_no_lines_cannot_be_ordered() -> None:
    builder = SnapshotBuilder(LIVE)
    builder.snapshot(sight(A, B), NOW_S, NOW_US)
    assert builder.addressed(release(Section(1, 2), "A")) is None


def split_key(
    *reports: Report, lines: tuple[Line, ...] = LINES, policy: Policy = LIVE
) -> int | None:
    builder = SnapshotBuilder(policy)
    builder.snapshot(sight(*reports, lines=lines), NOW_S, NOW_US)
    ordered = builder.addressed(split(LEFT, "A", "Z"))
    return ordered[1].key if ordered is not None else None


def test_section_3_6_a_split_is_at_a_key_the_overloaded_server_has_stored() -> None:
    both = (Line(LEFT, 1, (B1, A1)), LINES[1])
    assert split_key(A, B) == 5
    assert split_key(A, says("B", several_keys(LEFT, 9)), lines=both) == 5
    assert split_key(says("A"), says("B", several_keys(LEFT, 9)), lines=both) == 9


def test_a_section_where_nothing_is_stored_is_split_in_the_middle() -> None:
    empty = says("A", SectionReport(LEFT, is_empty=True))
    assert split_key(empty, B) == HALF // 2
    assert taken(sight(empty, B)).lines[0].splittable


def test_section_3_6_by_policy_a_section_is_divided_in_half() -> None:
    halving = replace(LIVE, split_at="half")
    middle = (LEFT.start + LEFT.end) // 2
    assert split_key(says("A", several_keys(LEFT, 7)), B, policy=halving) == middle


def test_a_split_waits_while_the_key_is_the_sections_start_or_nobody_names_one() -> None:
    assert split_key(says("A", several_keys(LEFT, 0)), B) is None
    assert split_key(says("A", SectionReport(LEFT, 10, some_key=5)), B) is None, "of one key"
    assert split_key(says("A"), B) is None


def test_a_hot_key_is_helped_within_ten_seconds() -> None:
    """The live policy: the server's busy share is itself an average over five seconds."""
    builder = SnapshotBuilder(LIVE)
    first: dict[int, tuple[Move, ...]] = {}
    for second in range(60):
        busy = min(1.0, second / 5)
        hot = says("A", SectionReport(LEFT, 10, some_key=5), busy=busy, rate=1_000.0)
        snapshot = builder.snapshot(sight(hot, B), NOW_S + second, NOW_US + second * 1_000_000)
        if moves := plan(snapshot, LIVE).moves:
            first = first or {second: moves}
    ((second, moves),) = first.items()
    assert moves == (help_processing(LEFT, "A", "B"),)
    assert 5 <= second <= 10


def test_a_new_server_is_given_half_a_section_at_once() -> None:
    snapshot = taken(sight(A, B, says("Z"), servers="ABZ"))
    assert plan(snapshot, LIVE).moves == (split(LEFT, "A", "Z"),)


def test_a_new_server_waits_where_the_only_sections_are_idle_and_of_one_key() -> None:
    """It would be sent off again, and welcomed again, for ever."""
    one_key = says("A", SectionReport(LEFT, 10, some_key=5), busy=0.0, rate=0.0)
    lines = (Line(Section(0, HASH_SPACE), 1, (A1,)),)
    snapshot = taken(sight(one_key, says("Z"), lines=lines, servers="AZ"))
    assert plan(snapshot, LIVE).moves == ()


def test_what_a_server_was_drained_of_is_known_as_long_as_it_is() -> None:
    drained = replace(says("Z"), left=(LEFT,))
    builder = SnapshotBuilder(LIVE)
    snapshot = taken(sight(A, B, drained, servers="ABZ"), builder=builder)
    assert {load.name: load.left for load in snapshot.servers} == {"A": (), "B": (), "Z": (LEFT,)}
    silent = taken(sight(A, B, servers="ABZ"), builder=builder)
    assert {load.name: load.left for load in silent.servers}["Z"] == (LEFT,)
