"""What the operator's commands choose and say, on snapshots of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from utuple.admin import choice
from utuple.admin.leaving import rest_of
from utuple.admin.moves import ShownMove, ends, move_of, ordered_of, sentence
from utuple.admin.programs import Load, Monitor, SectionLoad, Server, shown_line
from utuple.admin.snapshot import Snapshot, line_said
from utuple.admin.spreads import savings_said
from utuple.cli.looking.show_moves import cost, table_of_monitors, table_of_moves, told
from utuple.cli.moving.following import Told, summary
from utuple.cluster.dimension import Span
from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import KINDS, Move, MoveKind, target
from utuple.cluster.spread import Asked, Spread
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import move_to_wire

HALF = HASH_SPACE // 2
LEFT, RIGHT = Section(0, HALF), Section(HALF, HASH_SPACE)
HEX = f"{HALF:016x}"
ON_LEFT = Line(LEFT, 4, (Member("server-1"), Member("server-3", accumulatable=False)))
ON_RIGHT = Line(RIGHT, 2, (Member("server-1"), Member("server-2")))
WATCHING = Monitor("monitor-1", state="watching")


def server(name: str, busy: float = 0.2, **more: Any) -> Server:
    said: dict[str, Any] = {"state": "serving", "size_bytes": 10, "capacity_bytes": 100} | more
    return Server(name, load=Load(busy), **said)


def arrivals(left: float, right: float) -> tuple[SectionLoad, ...]:
    starts = {"0" * 16: left, HEX: right}
    return tuple(SectionLoad(start, "", arrival_per_s=rate) for start, rate in starts.items())


def cluster(*servers: Server, moves: tuple[ShownMove, ...] = ()) -> Snapshot:
    known = {name: server(name) for name in ("server-1", "server-2", "server-3")}
    known |= {said.name: said for said in servers}
    return Snapshot(True, [ON_LEFT, ON_RIGHT], list(known.values()), [], [], [WATCHING], moves)


def record(step: pb.MoveStep.ValueType = pb.DONE, **more: object) -> pb.MoveRecord:
    move = Move(MoveKind.SPLIT, RIGHT, 2, "server-1", "server-4", HALF + 5, "it is new")
    given: dict[str, object] = {"began_us": 1_000_000, "committed_us": 3_500_000} | more
    return pb.MoveRecord(id=b"\x01", move=move_to_wire(move), step=step, **given)  # type: ignore[arg-type]


# --- who helps, and with what


def test_the_section_of_most_arrivals_is_helped_with() -> None:
    assert choice.line_to_help(
        cluster(server("server-1", sections=arrivals(1, 9))), "server-1"
    ) == (ON_RIGHT)
    assert choice.line_to_help(
        cluster(server("server-1", sections=arrivals(9, 1))), "server-1"
    ) == (ON_LEFT)
    assert choice.line_to_help(cluster(), "server-2") == ON_RIGHT, "it is on nowhere else"


@pytest.mark.parametrize("start", ["0", "0000000000000000", "0x0"])
def test_a_section_is_named_by_its_start(start: str) -> None:
    busy_elsewhere = cluster(server("server-1", sections=arrivals(1, 9)))
    assert choice.line_to_help(busy_elsewhere, "server-1", start) == ON_LEFT


def test_a_section_where_the_server_is_not_on_cannot_be_helped_with() -> None:
    with pytest.raises(InvalidInput, match=HEX):
        choice.line_to_help(cluster(), "server-2", "0")
    with pytest.raises(choice.NotDone, match="no section"):
        choice.line_to_help(cluster(), "server-3")


def test_the_least_loaded_server_that_stays_and_is_not_on_helps() -> None:
    idle = server("server-4", 0.05)
    assert choice.helper_for(cluster(idle), ON_RIGHT) == "server-4"
    assert choice.helper_for(cluster(replace(idle, leaving=True)), ON_RIGHT) == "server-3"
    assert choice.helper_for(cluster(replace(idle, state="unreachable")), ON_RIGHT) == "server-3"
    assert choice.helper_for(cluster(replace(idle, size_bytes=90)), ON_RIGHT) == "server-3"
    assert choice.helper_for(cluster(server("server-3", 0.9)), ON_LEFT) == "server-2"


def test_with_nobody_left_to_help_one_is_told_to_add_a_server() -> None:
    with pytest.raises(choice.NotDone, match="utuple server add"):
        choice.helper_for(cluster(server("server-3", leaving=True)), ON_RIGHT)


def test_help_is_ordered_by_the_lines_epoch_and_fits_the_line() -> None:
    move = choice.order_for_help(ON_RIGHT, "server-1", "server-3", memory=False)
    assert (move.kind, move.epoch, move.section) == (MoveKind.HELP_PROCESSING, 2, RIGHT)
    (after,) = target(move, ON_RIGHT)
    assert after.accumulatable == ("server-1", "server-2", "server-3")
    memory = choice.order_for_help(ON_LEFT, "server-1", "server-3", memory=True)
    assert [line.accumulatable for line in target(memory, ON_LEFT)] == [("server-3",)]


@pytest.mark.parametrize("helper", ["server-2", "server-1"])
def test_who_is_on_already_cannot_help(helper: str) -> None:
    with pytest.raises(InvalidInput, match="helper"):
        choice.order_for_help(ON_RIGHT, "server-1", helper, memory=False)


def test_a_server_is_asked_for_by_a_name_that_exists_and_answers() -> None:
    with pytest.raises(InvalidInput, match="server-1, server-2, server-3"):
        choice.serving(cluster(), "server-9")
    with pytest.raises(choice.NotDone, match="start it again"):
        choice.serving(cluster(server("server-2", state="unreachable")), "server-2")


# --- who may leave, and who has


def test_the_last_server_that_stays_may_not_leave() -> None:
    leaving = (server("server-1", leaving=True), server("server-2", state="unreachable"))
    with pytest.raises(choice.NotDone, match="last server"):
        choice.may_leave(cluster(*leaving), "server-3")
    choice.may_leave(cluster(leaving[0]), "server-3")


def test_without_a_monitor_nothing_would_ever_be_drained() -> None:
    choice.require_monitor(cluster())
    for state in ("unreachable", "waiting"):
        with pytest.raises(choice.NotDone, match="load_monitor"):
            choice.require_monitor(replace(cluster(), monitors=[replace(WATCHING, state=state)]))


def test_a_server_has_left_when_it_is_in_no_line_and_in_no_move() -> None:
    assert str(rest_of("server-1", cluster())) == "in 2 sections (2 on, 0 off)"
    assert str(rest_of("server-3", cluster())) == "in 1 section (0 on, 1 off)"
    moving = move_of(record(pb.COMMITTED), "server-1", 0)
    rest = rest_of("server-4", cluster(server("server-4"), moves=(moving,)))
    assert not rest.is_out and "[committed]" in str(rest)
    over = move_of(record(), "server-1", 0)
    assert rest_of("server-4", cluster(server("server-4"), moves=(over,))).is_out


def test_a_server_that_does_not_answer_has_not_left_whatever_the_table_says() -> None:
    assert not rest_of("server-4", cluster(server("server-4", state="unreachable"))).is_out
    assert not rest_of("server-4", cluster()).is_out
    torn = replace(cluster(server("server-4")), whole=False)
    assert not rest_of("server-4", torn).is_out, "a part of the table is not known"


# --- moves in words


def test_a_move_is_shown_with_what_it_was_for_and_what_it_cost() -> None:
    shown = move_of(record(copied=12, held_us=3_400, rows=5, cuts=1), "server-1", 0)
    assert shown.id == "01" and shown.home == "server-1" and shown.step == "done"
    assert (shown.kind, shown.why, shown.seconds) == ("split", "it is new", 2.5)
    assert (shown.start, shown.end) == (HEX, f"{HASH_SPACE:016x}")
    assert ends(shown) == (HEX, "f" * 16)
    assert shown.key == f"{HALF + 5:016x}"
    assert cost(shown) == "12 EFs and CAs copied, held back 3 ms, 5 uTuples brought"
    assert "it is new" in told(shown) and "2.50 s" in told(shown)
    assert "12 EFs and CAs copied" in summary(shown)
    assert table_of_moves([shown]).row_count == 1


def test_a_move_under_way_counts_until_now_and_one_given_up_until_then() -> None:
    under_way = record(pb.LEARNING, committed_us=0)
    assert move_of(under_way, "server-1", 9_000_000).seconds == 8.0
    given_up = record(pb.OVER, committed_us=0, ended_us=2_000_000, reason="nobody there")
    shown = move_of(given_up, "server-1", 9_000_000)
    assert (shown.seconds, shown.step) == (1.0, "over")
    assert "nobody there" in told(shown)


def test_a_move_that_is_made_is_reported_when_all_were_told_or_somebody_does_not_hear() -> None:
    def is_reported(step: pb.MoveStep.ValueType, now_us: int) -> bool:
        return move_of(record(step), "server-1", now_us).is_settled(now_us)

    assert is_reported(pb.DONE, 3_500_001)
    assert not is_reported(pb.COMMITTED, 3_500_001)
    assert is_reported(pb.COMMITTED, 9_000_000)
    assert not is_reported(pb.LEARNING, 9_000_000)
    assert not is_reported(pb.OVER, 9_000_000)


@pytest.mark.parametrize("kind", MoveKind)
def test_every_kind_of_move_has_a_sentence_that_names_who_is_in_it(kind: MoveKind) -> None:
    helper = "server-2" if KINDS[kind].has_helper else ""
    move = Move(kind, RIGHT, 2, "server-1", helper, HALF + 5)
    shown = ordered_of(pb.Ordered(move=move_to_wire(move)))
    assert shown.kind == kind.value
    has_key = kind in (MoveKind.SPLIT, MoveKind.MERGE)
    assert shown.key == (f"{HALF + 5:016x}" if has_key else None)
    said = sentence(shown)
    assert "server-1" in said and helper in said
    assert said != f"{kind.value} server-1", "the sentence of an unknown kind"


def test_a_line_is_said_as_the_table_shows_it() -> None:
    assert line_said(ON_LEFT) == (f"{'0' * 16} – {HALF - 1:016x}  epoch 4  server-1 1, server-3 0")


def test_a_partitioned_line_is_said_with_its_axes() -> None:
    cut = Layout((Axis("data.kg", (5,), (("server-1",), ("server-1",))),))
    line = replace(ON_LEFT, layout=cut)
    assert line_said(line).endswith("server-1 1, server-3 0; by data.kg in 2")
    (axis,) = shown_line(line).axes
    assert (axis.dimension, axis.bounds, axis.owners) == ("data.kg", (5,), cut.axes[0].owners)
    assert shown_line(ON_LEFT).axes == ()


THREE = Line(Section(0, HALF), 4, (Member("h"), Member("a"), Member("b"), Member("off", False)))


def test_bounds_on_the_command_line_are_a_layout_whose_segments_the_others_own_in_turn() -> None:
    layout = choice.layout_of(THREE, "data.kg:10:20.5,address:m")
    by_kg, by_address = layout.axes
    assert (by_kg.dimension, by_kg.cuts) == ("data.kg", (10, 20.5))
    assert by_kg.owners == (("a", "h"), ("b", "h"), ("a", "h"))
    assert (by_address.cuts, by_address.owners) == (("m",), (("b", "h"), ("a", "h")))
    assert target(Move(MoveKind.PARTITION, THREE.section, 4, "h", layout=layout), THREE)


@pytest.mark.parametrize(
    ("by", "rule"),
    [
        ("data.kg", "say where data.kg is cut"),
        ("data.kg:heavy", "'heavy' must be a number"),
        ("speed:5", "must be address, lat, lon, time or data.FIELD"),
        ("lat:5:4", "must ascend"),
        ("lat:nan", "finite"),
    ],
)
def test_bounds_that_make_no_layout_are_refused_in_words(by: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        choice.layout_of(THREE, by)


def test_a_line_that_the_home_serves_alone_is_not_partitioned() -> None:
    with pytest.raises(InvalidInput, match="add help first"):
        choice.layout_of(ON_LEFT, "lat:0")


def test_after_a_gather_all_that_were_on_come_on_again() -> None:
    cut = replace(THREE, layout=choice.layout_of(THREE, "lat:0"))
    names = cut.accumulatable
    *_, line = choice.lines_to_come(cut, lambda now: choice.next_to_gather(now, names))
    assert line.accumulatable == ("h", "a", "b") and not line.layout.axes


def test_a_line_that_is_partitioned_is_cut_elsewhere_and_only_who_keeps_more_learns() -> None:
    cut = replace(THREE, layout=choice.layout_of(THREE, "lat:0"))
    moved = choice.layout_of(THREE, "lat:5")
    order = choice.next_to_cut(cut, moved)
    assert order is not None
    assert (order.kind, order.member, order.learner) == (MoveKind.RECUT, "h", "a")
    assert target(order, cut)[0].layout == moved
    assert choice.next_to_cut(cut, cut.layout) is None
    swapped = choice.layout_of(
        replace(THREE, members=(*THREE.members[:1], *THREE.members[:0:-1])), "lat:0"
    )
    *_, last = choice.lines_to_come(cut, lambda line: choice.next_to_cut(line, swapped))
    assert (last.layout, last.epoch) == (swapped, cut.epoch + 2)
    first = choice.next_to_cut(THREE, moved)
    assert first is not None
    assert first.kind is MoveKind.PARTITION


def test_the_monitor_is_shown_with_its_last_order() -> None:
    move = ordered_of(pb.Ordered(move=record().move, reason="busy"))
    asked = replace(WATCHING, orders=(move,))
    assert table_of_monitors([]) is None
    table = table_of_monitors([WATCHING, asked])
    assert table is not None
    without, refused = map(str, table.columns[-1].cells)
    assert without == "none" and "busy" in refused


def test_the_same_is_not_said_twice_and_advice_not_for_its_numbers() -> None:
    heard: list[str] = []
    tell = Told(heard.append)
    for said in ("a", "a", "b"):
        tell(said)
    tell("silent for 1 s", "silent")
    tell("silent for 2 s", "silent")
    assert heard == ["a", "b", "silent for 1 s"]


def test_without_bounds_a_dimension_is_cut_where_events_fall_into_equal_parts() -> None:
    seen = Spread(values=tuple({"data.kg": kg} for kg in range(10)))
    (axis,) = choice.layout_of(THREE, "data.kg", seen).axes
    assert axis.cuts == (5,) and axis.owners == (("a", "h"), ("b", "h"))
    with pytest.raises(InvalidInput, match="must be address, lat, lon"):
        choice.layout_of(THREE, "speed", seen)


def test_a_dry_run_says_what_is_saved() -> None:
    formals: tuple[Asked, ...] = ({"data.kg": (Span(0, 3),)}, {"data.kg": (Span(7, 8),)}, {}, {})
    seen = Spread(4, formals, tuple({"data.kg": kg} for kg in range(10)))
    said = "; ".join(savings_said(seen, choice.layout_of(THREE, "data.kg:5", seen), THREE))
    assert "they ask for data.kg 50%" in said
    assert "a keeps 75% of the EFs instead of all; of the EAs, by data.kg 50%" in said
    assert "an EF is registered at 2.5 servers instead of 3" in said
    assert "do not ask for it: data.kg 50%" in said
    assert savings_said(Spread(), choice.layout_of(THREE, "lat:5"), THREE) == [
        "what it saves is not known: no EF of the section was seen"
    ]
