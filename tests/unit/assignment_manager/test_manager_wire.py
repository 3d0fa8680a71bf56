"""What comes in from the network is checked: refused by field, value and rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignment_manager.config import Config
from assignment_manager.digest import Detail, Digest
from assignment_manager.directory import PassOn
from assignment_manager.gossip import Alive
from assignment_manager.manager import Rumour
from assignment_manager.peer import Peer, peer_of
from assignment_manager.wire import Reader, parsed, passed_on_to_wire, portions, rumour_to_wire
from tests.histories import History, histories
from utuple.cluster.line import Line, ServerInfo
from utuple.errors import InvalidInput, Overloaded
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb

CONFIG = replace(
    Config("m1", "127.0.0.1:0"), max_keys=3, max_lines=2, max_members=2, max_peers=4, max_servers=3
)
OWN = ServerInfo("m1", "127.0.0.1:7400", "manager", 5)
SERVER = pb.ServerInfo(name="s1", address="h:1", role="server")
MEMBER = pb.Member(name="s1", accumulatable=True)
LINE = pb.Line(start=0, last=9, epoch=1, members=[MEMBER])
ALIVE = pb.Alive(manager=pb.ServerInfo(name="m2", address="h:1", role="manager"), beat=1)

read = Reader(CONFIG)


@given(histories)
def test_a_rumour_comes_through_unchanged(history: History) -> None:
    peers = tuple((peer_of(line), at % 2 == 0) for at, line in enumerate(history.final))
    servers = (ServerInfo("s1", "h:1", "sca", 3),)
    buckets = tuple(range(256))
    detail = Detail(buckets, buckets[::-1], buckets)
    digest = Digest(1, 2, 2**64 - 1)
    rumour = Rumour((Alive(OWN, 7),), digest, detail, (7,), servers, buckets, peers)
    wide = Reader(Config("m1", "127.0.0.1:0"))
    assert wide.rumour(pb.Rumour.FromString(rumour_to_wire(rumour).SerializeToString())) == rumour


@given(histories)
def test_lines_passed_on_come_through_unchanged(history: History) -> None:
    servers = (ServerInfo("server-1", "h:1"),)
    heard: list[Line] = []
    wide = Reader(Config("m1", "127.0.0.1:0"))
    for portion in portions(PassOn("m2", tuple(history.final), servers), 2):
        by, lines, others = wide.announcement(passed_on_to_wire(OWN, portion))
        assert by == OWN
        assert others == ([] if heard else list(servers))
        heard += lines
    assert heard == history.final


def announcement(line: pb.Line | None = None, **changed: object) -> pb.Announcement:
    server = pb.ServerInfo()
    server.CopyFrom(SERVER)
    for field, value in changed.items():
        setattr(server, field, value)
    return pb.Announcement(server=server, lines=[line or LINE])


BROKEN_LINES = {
    "section": pb.Line(start=9, last=8, epoch=1, members=[MEMBER]),
    "epoch": pb.Line(start=0, last=9, epoch=0, members=[MEMBER]),
    "members": pb.Line(start=0, last=9, epoch=1),
    "member": pb.Line(start=0, last=9, epoch=1, members=[pb.Member(accumulatable=True)]),
}


@pytest.mark.parametrize("field", BROKEN_LINES)
def test_a_broken_line_is_refused(field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read.announcement(announcement(BROKEN_LINES[field]))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 2_000),
        ("address", ""),
        ("address", "nowhere"),
        ("address", "h:70000"),
        ("address", "h:٣"),
        ("role", "king"),
        ("role", "manager"),
        ("since_us", -1),
    ],
)
def test_a_broken_server_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read.announcement(announcement(None, **{field: value}))
    assert refused.value.field == f"server.{field}"


def test_an_announcement_says_whose_it_is() -> None:
    with pytest.raises(InvalidInput, match="server"):
        read.announcement(pb.Announcement(lines=[LINE]))


def test_only_managers_pass_on() -> None:
    with pytest.raises(InvalidInput, match=r"server\.role"):
        read.announcement(pb.Announcement(server=SERVER, forwarded=True))


def test_more_than_the_limits_is_refused() -> None:
    many = pb.Line(start=0, last=9, epoch=1, members=[MEMBER] * 3)
    for field, call in (
        ("keys", lambda: read.keys(pb.LookupRequest(keys=range(4)))),
        ("lines", lambda: read.announcement(pb.Announcement(server=SERVER, lines=[LINE] * 3))),
        ("members", lambda: read.announcement(announcement(many))),
        ("others", lambda: read.announcement(pb.Announcement(server=SERVER, others=[SERVER] * 4))),
        ("peers", lambda: read.rumour(pb.Rumour(alive=[ALIVE], peers=[pb.Peer(epoch=1)] * 5))),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.field == field
    with pytest.raises(Overloaded, match="4 peers"):
        read.room_for(4, 0)
    with pytest.raises(Overloaded, match="3 servers"):
        read.room_for(0, 3)
    read.room_for(3, 2)


def test_a_rumour_without_a_speaker_is_refused() -> None:
    with pytest.raises(InvalidInput, match="alive"):
        read.rumour(pb.Rumour())


def test_a_peer_may_reach_the_end_of_the_hash_space() -> None:
    rumour = pb.Rumour(alive=[ALIVE], peers=[pb.Peer(start=1, last=HASH_SPACE - 1, epoch=1)])
    assert read.rumour(rumour).peers == ((Peer(Section(1, HASH_SPACE), 1), False),)


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(InvalidInput, match="LookupRequest"):
        parsed(pb.LookupRequest, b"\xff\xff\xff\xff")


UNKNOWN = b"\x98\x06\x01"
"""Field 99, the number 1."""


def test_unknown_fields_are_refused_at_every_depth() -> None:
    with pytest.raises(InvalidInput, match="field 99"):
        parsed(pb.LookupRequest, UNKNOWN)
    with_unknown = {
        "line": pb.Line.FromString(LINE.SerializeToString() + UNKNOWN),
        "member": pb.Line(
            start=0,
            last=9,
            epoch=1,
            members=[pb.Member.FromString(MEMBER.SerializeToString() + UNKNOWN)],
        ),
    }
    for field, line in with_unknown.items():
        with pytest.raises(InvalidInput, match="field 99") as refused:
            read.announcement(announcement(line))
        assert refused.value.field == field
    server = pb.ServerInfo.FromString(SERVER.SerializeToString() + UNKNOWN)
    with pytest.raises(InvalidInput, match="field 99"):
        read.announcement(pb.Announcement(server=server))
    for rumour in (
        pb.Rumour(alive=[pb.Alive.FromString(ALIVE.SerializeToString() + UNKNOWN)]),
        pb.Rumour(alive=[ALIVE], peers=[pb.Peer.FromString(b"\x18\x01" + UNKNOWN)]),
    ):
        with pytest.raises(InvalidInput, match="field 99"):
            read.rumour(rumour)


@given(st.binary(max_size=200))
def test_whatever_bytes_come_they_are_read_or_refused(raw: bytes) -> None:
    for reading in (
        lambda: read.announcement(parsed(pb.Announcement, raw)),
        lambda: read.rumour(parsed(pb.Rumour, raw)),
        lambda: read.keys(parsed(pb.LookupRequest, raw)),
    ):
        try:
            reading()
        except InvalidInput as refused:
            assert refused.field and refused.rule


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("name", {"name": ""}),
        ("listen", {"listen": "7400"}),
        ("advertise", {"advertise": "here"}),
        ("peers", {"seeds": ("127.0.0.1:7401", "x")}),
        ("suspect_s", {"suspect_s": 0.6}),
        ("suspect_s", {"dead_s": 2.0}),
        ("ask_s", {"ask_s": 0.0}),
        ("max_keys", {"max_keys": 0}),
    ],
)
def test_settings_that_cannot_work_are_refused_at_start(
    field: str, changed: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        Config(**{"name": "m1", "listen": "127.0.0.1:7400", **changed})  # type: ignore[arg-type]
    assert refused.value.field == field
