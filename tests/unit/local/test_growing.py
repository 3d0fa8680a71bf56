"""Servers come and go in a local cluster: the layout, the folder's memory, and the supervisor's mailbox."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignment_manager.config import Config
from assignment_manager.directory import Directory
from assignment_manager.wire import Reader
from utuple.admin.moves import ShownMove
from utuple.admin.programs import Server
from utuple.admin.snapshot import Snapshot
from utuple.admin.transport import GONE
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.errors import InvalidInput
from utuple.local.folder import ClusterFile, DataFolder, FolderError, Started
from utuple.local.layout import MAX_SERVERS, Layout, Program, Role, command_of
from utuple.local.processes import this_process
from utuple.local.supervising import requests
from utuple.local.supervising.growing import OUT_S, Growing
from utuple.local.supervising.requests import Request
from utuple.local.supervising.reuse import cluster_for, with_server, without_server
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import server_to_wire

ASKED_NOTHING: dict[str, Any] = {"servers": None, "managers": None, "port": None}


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    made = DataFolder(tmp_path / "data")
    made.make()
    return made


# --- the layout


def test_an_added_server_gets_the_next_number_and_the_first_free_port() -> None:
    layout = Layout(2).without_server("server-1").with_server()
    assert layout.server_names == ["server-2", "server-3"]
    added = layout.program("server-3")
    assert added is not None and added.address == "127.0.0.1:7411"
    assert layout.with_server("east").server_names[-1] == "east"


@given(st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=60))
def test_whoever_comes_and_goes_names_are_used_once_and_ports_by_one_at_a_time(
    steps: list[int | None],
) -> None:
    layout, ever = Layout(3), {"server-1", "server-2", "server-3"}
    for step in steps:
        names = layout.server_names
        if step is None and len(names) < MAX_SERVERS:
            layout = layout.with_server()
            (new,) = set(layout.server_names) - set(names)
            assert new not in ever
            ever.add(new)
        elif step is not None and len(names) > 1:
            layout = layout.without_server(names[step % len(names)])
        ports = [program.port for program in layout.programs]
        assert len(set(ports)) == len(ports)
        assert all(7400 <= port <= 7422 for port in ports)


TAKEN = "server-1 server-2 manager-1 sca-1 monitor-1 supervisor state".split()


@pytest.mark.parametrize("name", [*TAKEN, "", "A", "a b", "../x", "a_b", "-a", "a--b", "x" * 41])
def test_a_name_that_is_taken_was_drained_or_cannot_be_one_is_refused(name: str) -> None:
    layout = Layout(2, monitor=False).without_server("server-1")
    with pytest.raises(InvalidInput) as refused:
        layout.with_server(name)
    assert refused.value.field == "--name"


def test_a_full_machine_says_so() -> None:
    with pytest.raises(InvalidInput, match="drain one first"):
        Layout(MAX_SERVERS).with_server()


def test_the_monitor_is_told_the_managers_and_its_policy_and_can_be_left_out() -> None:
    layout = Layout(managers=1)
    monitor = layout.program("monitor-1")
    assert monitor == Program("monitor-1", Role.MONITOR, 7422)
    command = command_of(monitor, layout, python="python", policy=("stay_on_s=30.0",))
    assert (
        command
        == (
            "python -P -m load_monitor --name monitor-1 --listen 127.0.0.1:7422 "
            "--managers 127.0.0.1:7400 --stay-on-s 30.0"
        ).split()
    )
    assert Layout(monitor=False).program("monitor-1") is None


# --- what the folder remembers


def test_the_folder_remembers_who_came_and_who_left(folder: DataFolder) -> None:
    cluster = with_server(ClusterFile(Layout(2), created=True, policy=("hold_s=1.0",)), "", "")
    cluster = without_server(cluster, "server-1")
    folder.write_cluster(cluster)
    assert folder.read_cluster() == cluster
    assert cluster_for(cluster, **ASKED_NOTHING) == cluster
    assert cluster_for(cluster, servers=2, managers=None, port=None) == cluster


def test_a_folder_of_the_first_format_is_read(folder: DataFolder) -> None:
    noted = {"format": 1, "servers": 4, "managers": 2, "port": 9000, "created": True}
    (folder.path / "cluster.json").write_text(json.dumps(noted))
    assert folder.read_cluster() == ClusterFile(Layout(4, 2, 9000), created=True)


def test_databases_of_ones_own_stay_with_their_servers() -> None:
    urls = tuple(f"postgresql://host/{name}" for name in "abc")
    cluster = ClusterFile(Layout(2), urls[:2])
    with pytest.raises(FolderError, match="--database"):
        with_server(cluster, "", "")
    grown = with_server(cluster, "", urls[2])
    assert without_server(grown, "server-1").databases == urls[1:]
    with pytest.raises(FolderError, match="leave --database out"):
        with_server(ClusterFile(Layout(2)), "", urls[0])


def test_a_server_that_has_left_is_no_longer_waited_for() -> None:
    cluster = ClusterFile(Layout(3), leaving=("server-2", "server-3"))
    assert without_server(cluster, "server-2").leaving == ("server-3",)


@pytest.mark.parametrize(
    "knob", ["stay_on_s", "stay_on_s=soon", "no_such=1", "processing_stop=0.9"]
)
def test_a_policy_the_monitor_would_refuse_is_refused_at_once(knob: str) -> None:
    with pytest.raises(InvalidInput):
        cluster_for(None, **ASKED_NOTHING, policy=[knob])


def test_a_policy_is_kept_until_another_is_given() -> None:
    known = cluster_for(None, **ASKED_NOTHING, policy=["stay-on-s=30"])
    assert known.policy == ("stay_on_s=30.0",)
    assert cluster_for(known, **ASKED_NOTHING).policy == known.policy
    assert cluster_for(known, **ASKED_NOTHING, policy=["hold_s=1"]).policy == ("hold_s=1.0",)
    assert cluster_for(known, **ASKED_NOTHING, monitor=False).layout.monitor is False


def test_moves_of_drained_servers_are_kept_and_a_torn_line_is_passed_over(
    folder: DataFolder,
) -> None:
    assert folder.noted_moves() == []
    folder.note_moves([ShownMove("1", rows=3)])
    with (folder.path / "logs" / "moves.jsonl").open("ab") as file:
        file.write(b'{"id": \n')
    folder.note_moves([ShownMove("2")])
    assert folder.noted_moves() == [ShownMove("1", rows=3), ShownMove("2")]


# --- the supervisor's mailbox


class Hands:
    """A supervisor's, that only writes down."""

    def __init__(self) -> None:
        self.managers: list[str] = ["127.0.0.1:1"]
        self.leaving: tuple[str, ...] = ()
        self.removed: list[str] = []

    async def add_server(self, name: str, database: str) -> Program:
        if name == "taken":
            raise InvalidInput("--name", name, "is taken")
        return Program(name or "server-4", Role.SERVER, 7414)

    def note_leaving(self, name: str, *, leaves: bool) -> None:
        self.leaving = (name,) if leaves else ()

    async def remove_server(self, name: str) -> None:
        self.removed.append(name)

    async def add_sca(self) -> Program:
        return Layout().with_sca().of_role(Role.SCA)[-1]

    async def remove_sca(self, name: str) -> None:
        Layout().without_sca(name)


async def answered(folder: DataFolder, request: Request) -> dict[str, Any]:
    growing = Growing(folder, Hands(), lambda said: None)
    return await growing._carry_out(request)


async def test_the_supervisor_answers_what_it_can_do_and_why_it_cannot(folder: DataFolder) -> None:
    assert await answered(folder, Request("add")) == {
        "name": "server-4",
        "address": "127.0.0.1:7414",
    }
    assert "is taken" in (await answered(folder, Request("add", "taken")))["error"]
    assert "must be add" in (await answered(folder, Request("dance")))["error"]
    assert await answered(folder, Request("drain", "server-2")) == {"name": "server-2"}


def test_a_request_is_asked_and_answered_through_the_folder(folder: DataFolder) -> None:
    folder.note_started("supervisor", Started(this_process()))
    request = Request("add", "east", "postgresql://host/secret")

    def supervise() -> None:
        while not (waiting := requests.waiting(folder)):
            pass
        ((id_, asked),) = waiting
        mode = (folder.requests / f"{id_}.json").stat().st_mode
        said = {"name": "east"} if asked == request and mode & 0o077 == 0 else {"error": str(asked)}
        requests.answer(folder, id_, said)

    supervisor = threading.Thread(target=supervise)
    supervisor.start()
    assert requests.ask(folder, request) == {"name": "east"}
    supervisor.join()
    assert list(folder.requests.iterdir()) == []


def test_a_refusal_is_raised_where_it_was_asked(folder: DataFolder) -> None:
    folder.note_started("supervisor", Started(this_process()))

    def supervise() -> None:
        while not (waiting := requests.waiting(folder)):
            pass
        requests.answer(folder, waiting[0][0], {"error": "no room"})

    supervisor = threading.Thread(target=supervise)
    supervisor.start()
    with pytest.raises(FolderError, match="no room"):
        requests.ask(folder, Request("add"))
    supervisor.join()


def test_without_a_supervisor_one_is_told_how_to_start_a_cluster_or_a_server(
    folder: DataFolder,
) -> None:
    with pytest.raises(FolderError, match=r"utuple up.*python -m utuple\.server"):
        requests.ask(folder, Request("add"))


def test_a_supervisor_that_does_not_answer_is_not_waited_for_for_ever(
    folder: DataFolder,
) -> None:
    folder.note_started("supervisor", Started(this_process()))
    with pytest.raises(FolderError, match="has not answered"):
        requests.ask(folder, Request("add"), limit_s=0.1)
    assert list(folder.requests.iterdir()) == []


def test_what_was_asked_of_an_earlier_supervisor_is_forgotten(folder: DataFolder) -> None:
    (folder.requests / "1.json").write_text('{"verb": "add"}')
    os.utime(folder.requests / "1.json", (1, 1))
    (folder.requests / "2.json").write_text('{"verb": "drain", "name": "x"}')
    asked = [request for _, request in requests.waiting(folder)]
    assert asked == [Request("add"), Request("drain", "x")], "the oldest first"
    requests.forget_all(folder)
    assert requests.waiting(folder) == []


# --- who has left is stopped


def seen(*, leaving: bool = True, shipments: int = 0, in_line: bool = False) -> Snapshot:
    server = Server("server-2", state="serving", leaving=leaving, shipments=shipments)
    line = Line(Section(0, HASH_SPACE), 1, (Member("server-2" if in_line else "server-1"),))
    return Snapshot(True, [line], [server], [], [])


@pytest.mark.parametrize(
    ("snapshot", "stopped_after_s"),
    [
        (seen(), OUT_S),
        (seen(shipments=1), None),
        (seen(in_line=True), None),
        (seen(leaving=False), None),
    ],
)
def test_a_server_is_stopped_some_time_after_it_has_left_and_not_before(
    folder: DataFolder, snapshot: Snapshot, stopped_after_s: float | None
) -> None:
    growing = Growing(folder, Hands(), lambda said: None)
    out = [second for second in range(100) if growing.have_left(("server-2",), snapshot, second)]
    assert out[:1] == ([stopped_after_s] if stopped_after_s is not None else [])


def test_the_time_a_server_has_been_out_counts_anew_when_it_was_back(folder: DataFolder) -> None:
    growing = Growing(folder, Hands(), lambda said: None)
    names = ("server-2",)
    assert growing.have_left(names, seen(), 0.0) == []
    assert growing.have_left(names, seen(in_line=True), 5.0) == []
    assert growing.have_left(names, seen(), OUT_S + 1) == []
    assert growing.have_left(names, seen(), 2 * OUT_S + 2) == ["server-2"]


def test_managers_forget_a_drained_server_until_one_of_its_name_starts_again() -> None:
    def announced(role: str, since_us: int) -> pb.Announcement:
        info = ServerInfo("server-2", "127.0.0.1:7412", role, since_us)
        return pb.Announcement(server=server_to_wire(info))

    directory, read = Directory("manager-1"), Reader(Config("manager-1", "127.0.0.1:7400"))
    roles = []
    for role, since_us in (("server", 1), (GONE, 5), ("server", 1), ("server", 9)):
        server, _, _ = read.announcement(announced(role, since_us))
        directory.hear_servers([server])
        roles.append(directory.servers["server-2"].role)
    assert roles == ["server", "gone", "gone", "server"]


async def test_the_supervisor_adds_an_sca_server_and_keeps_the_last_one(folder: DataFolder) -> None:
    added = await answered(folder, Request("add-sca"))
    assert added == {"name": "sca-2", "address": "127.0.0.1:7423"}
    refused = await answered(folder, Request("remove-sca", "sca-1"))
    assert "is the last sCA server" in refused["error"]
    unknown = await answered(folder, Request("remove-sca", "sca-9"))
    assert "sca: 'sca-9' is refused: must be one of sca-1" in unknown["error"]
