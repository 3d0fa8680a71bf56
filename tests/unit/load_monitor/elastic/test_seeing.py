"""From the planner's snapshot and an inventory to what elasticity decides by."""

from __future__ import annotations

from typing import Any

from load_monitor.elastic.seeing import HEARD_S, seen_of
from load_monitor.elastic.seen import Inventory, Machine, Provisioned, Seen
from load_monitor.planning.snapshot import UNKNOWN, ClusterSnapshot, Done, SectionLoad, ServerLoad
from utuple.cluster.line import Line, first_table
from utuple.cluster.move import Move, MoveKind

LINES = tuple(first_table(["server-1"]))
INVENTORY = Inventory(
    (Machine("machine-1", 1, 1024),),
    (Provisioned("server-1", "machine-1"), Provisioned("server-2", "machine-1")),
    7,
)


def seen(*servers: ServerLoad, lines: tuple[Line, ...] = LINES, **more: Any) -> Seen:
    rows = tuple(SectionLoad(line, (UNKNOWN,) * len(line.members)) for line in lines)
    snapshot = ClusterSnapshot(100.0, servers, rows, **more)
    return seen_of(snapshot, INVENTORY, settle_s=10.0, silent_s=15.0)


def move(member: str) -> Move:
    return Move(MoveKind.FLIP_OFF, LINES[0].section, LINES[0].epoch, member, why="")


def test_a_server_that_is_made_and_not_heard_of_does_not_serve_yet() -> None:
    found = {server.name: server for server in seen(ServerLoad("server-1", 0.5)).servers}
    assert (found["server-1"].serves, found["server-2"].serves) == (True, False)
    assert seen(ServerLoad("server-1")).next_server == 7


def test_a_silent_server_does_not_serve() -> None:
    assert not seen(ServerLoad("server-1", silent_s=16.0)).servers[0].serves


def test_a_server_that_nobody_here_made_is_seen_as_such() -> None:
    found = {s.name: s.is_ours for s in seen(ServerLoad("server-1"), ServerLoad("other")).servers}
    assert found == {"other": False, "server-1": True, "server-2": True}


def out(load: ServerLoad, *others: ServerLoad, **more: Any) -> bool:
    found = seen(load, ServerLoad("server-1"), *others, **more)
    return next(server.is_out for server in found.servers if server.name == load.name)


def test_a_server_is_out_when_it_leaves_and_nothing_needs_it_any_more() -> None:
    leaving = ServerLoad("server-2", draining=True)
    assert out(leaving)
    assert not out(ServerLoad("server-2"))
    assert not out(ServerLoad("server-2", draining=True, shipments=1))
    assert not out(ServerLoad("server-2", draining=True, silent_s=16.0))
    assert not out(leaving, under_way=(move("server-2"),))
    assert not out(
        leaving, announced=(move("server-2"),)
    )  # seed 9601900: its drain, which it was never told of
    assert not out(leaving, lines=tuple(first_table(["server-1", "server-2"])))


def test_nobody_is_out_while_somebody_is_not_heard_of() -> None:
    leaving = ServerLoad("server-2", draining=True)
    assert not out(leaving, ServerLoad("server-3", silent_s=HEARD_S + 1))


def test_load_settles_when_nothing_moves_and_the_last_move_is_long_ago() -> None:
    first = ServerLoad("server-1")
    assert seen(first).settling == ""
    assert seen(first, under_way=(move("server-1"),)).settling == "1 move is under way"
    assert seen(first, recent=(Done(move("server-1"), 95.0),)).settling == "load moved 5 s ago"
    assert seen(first, recent=(Done(move("server-1"), 90.0),)).settling == ""
