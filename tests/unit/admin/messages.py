"""What the programs of a cluster say of themselves: every field set, and one program of each kind that is silent."""

from __future__ import annotations

from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, move_to_wire

HALF = HASH_SPACE // 2
LEFT, RIGHT = Section(0, HALF), Section(HALF, HASH_SPACE)
LINES = [
    Line(LEFT, 4, (Member("server-1"), Member("server-3", accumulatable=False))),
    Line(RIGHT, 2, (Member("server-1"), Member("server-2", False, True))),
]
SPLIT = Move(MoveKind.SPLIT, RIGHT, 2, "server-1", "server-4", HALF + 5, "it is new")
FLIP = Move(MoveKind.FLIP_OFF, LEFT, 4, "server-1", why="load is gone")
NOW_US = 9_000_000

RECORDS = [
    pb.MoveRecord(
        id=b"\x01",
        move=move_to_wire(SPLIT),
        step=pb.DONE,
        began_us=1_000_000,
        committed_us=3_500_000,
        ended_us=3_600_000,
        copied=12,
        rows=5,
        held_us=3_400,
        cuts=1,
    ),
    pb.MoveRecord(id=b"\x02", move=move_to_wire(FLIP), step=pb.LEARNING, began_us=8_000_000),
    pb.MoveRecord(
        id=b"\x03",
        move=move_to_wire(FLIP),
        step=pb.OVER,
        began_us=1,
        ended_us=2_000_000,
        reason="nobody there",
    ),
]
SERVER = pb.ServerStatus(
    name="server-1",
    state="serving",
    seq=77,
    load=pb.Load(queued=3, arrival_per_s=10.5, service_per_s=20.25, busy=0.5),
    by_cause=pb.LoadByCause(events=0.25, searches=0.125, deliveries=0.125),
    commit_us=2_500,
    families=[
        pb.FamilyRate(
            subject="truck",
            type="load",
            arrival_per_s=10.5,
            templates=5,
            event_templates=3,
            mean_bytes=20.5,
        )
    ],
    lines=[line_to_wire(line) for line in LINES],
    events=1,
    devices=2,
    event_templates=3,
    command_templates=4,
    size_bytes=100,
    capacity_bytes=1000,
    readers=[
        pb.ReaderStatus(
            reader="dispatch",
            formals=2,
            lag=1200,
            lag_is_more=True,
            families=[pb.Family(subject="truck", type="load")],
            expires_us=8,
            seen_us=7,
        ),
        pb.ReaderStatus(formals=1, connected=True),
    ],
    registered=7,
    delivered=9,
    pid=4711,
    since_us=5,
    address="127.0.0.1:7411",
    sections=[
        pb.SectionStatus(start=HALF, last=HASH_SPACE - 1, rows=6, templates=7, arrival_per_s=1.5)
    ],
    moves=RECORDS,
    leaving=True,
    shipments=1,
    from_servers=8,
)
SCA = pb.ScaStatus(
    state="filling", devices=3, waiting_for=["server-2"], commands=4, handed_over=5, pid=4712
)
MONITOR = pb.MonitorStatus(
    state="watching",
    pid=4713,
    since_us=1,
    polls=2,
    seen_us=3,
    accepted=4,
    refused=5,
    orders=[
        pb.Ordered(at_us=6, home="server-1", move=move_to_wire(SPLIT), reason="busy"),
        pb.Ordered(at_us=7, home="server-1", move=move_to_wire(FLIP), accepted=True),
    ],
    advice=["add a server"],
    servers=[pb.Watched(name="server-1", processing=0.5, memory=0.25, silent_s=1.5)],
    telemetry=pb.Telemetry(folder="/samples", written=1, waiting=2, dropped=3, failures=4),
)
MANAGERS = [
    pb.ManagerStatus(
        manager=pb.ServerInfo(name="manager-1", address="127.0.0.1:7400"),
        alive=True,
        peers=2,
        kept=3,
    ),
    pb.ManagerStatus(manager=pb.ServerInfo(name="manager-2", address="127.0.0.1:7401")),
]


def info(name: str) -> pb.ServerInfo:
    return pb.ServerInfo(name=name, address="127.0.0.1:7000")
