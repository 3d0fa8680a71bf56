"""`utuple up` and `utuple down` with real processes, real PostgreSQL and real kill -9."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster import COMMAND_LIMIT_S, Cluster, free_port
from tests.waiting import until
from utuple.local.layout import Layout
from utuple.local.ports import is_free
from utuple.local.processes import start_of, strays
from utuple.runtime.postgresql.process import find_postmaster, processes_on

pytestmark = pytest.mark.slow
DATA = Path("postgres") / "data"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Not tmp_path: pytest keeps those, and they are long for a unix socket."""
    with tempfile.TemporaryDirectory(prefix="utuple-life-") as folder:
        yield Path(folder).resolve()


@pytest.fixture(scope="module")
def running(place: Path) -> Iterator[Cluster]:
    cluster = Cluster(place / "running", free_port())
    cluster.up("--no-monitor")  # the table stays as it was made
    yield cluster
    cluster.run("down")


@pytest.fixture
def new(place: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    cluster = Cluster(place / f"new-{abs(hash(request.function.__name__)) % 10_000}", free_port())
    yield cluster
    cluster.run("down")


def assert_nothing_left(cluster: Cluster, pids: dict[str, int]) -> None:
    assert {name: pid for name, pid in pids.items() if start_of(pid) is not None} == {}
    assert strays(cluster.folder) == []
    assert processes_on(cluster.folder / DATA) == []
    assert [p for p in Layout(port=cluster.port).programs if not is_free(p.port)] == []
    assert list((cluster.folder / "run").glob("*.json")) == []
    assert list(cluster.folder.rglob(".s.PGSQL*")) == []


# --- looking at a cluster that runs


def test_a_new_cluster_is_well_and_its_table_whole(running: Cluster) -> None:
    status = running.run("status", "--json")
    assert status.code == 0
    assert status.json()["well"] is True
    assert {manager["state"] for manager in status.json()["managers"]} == {"serving"}
    assert [sca["state"] for sca in status.json()["sca"]] == ["serving"]
    table = running.run("table", "--json").json()
    assert table["whole"] is True
    assert [line["home"] for line in table["lines"]] == ["server-1", "server-2", "server-3"]
    assert table["lines"][0]["start"] == "0" * 16
    assert table["lines"][-1]["end"] == "1" + "0" * 16


def test_server_list_says_what_programs_need(running: Cluster) -> None:
    servers = running.servers()
    assert sorted(servers) == ["server-1", "server-2", "server-3"]
    for name, server in servers.items():
        assert server["pid"] == running.pid(name)
        assert server["state"] == "serving"
        assert server["address"].startswith("127.0.0.1:")
        loads = {"busy", "by_cause", "queued", "arrival_per_s", "service_per_s", "commit_s"}
        assert set(server["load"]) == loads
        (flag,) = server["flags"]
        assert flag["accumulatable"] is True and flag["home"] == name
        assert server["size_bytes"] > 0


def test_flags_have_a_legend(running: Cluster) -> None:
    for command in (("status",), ("server", "list")):
        shown = running.run(*command).out
        assert "h1" in shown and "1 accumulatable, 0 not, ? suspended; h where it is home" in shown


def test_every_program_logs_to_a_file_it_sets_aside_itself(running: Cluster) -> None:
    for program in Layout(port=running.port, monitor=False).programs:
        command = Path(f"/proc/{running.pid(program.name)}/cmdline").read_text().split("\0")
        log = running.folder / "logs" / f"{program.name}.log"
        assert command[command.index("--log") + 1] == str(log)
        assert program.name in log.read_text()


def test_people_get_tables(running: Cluster) -> None:
    assert "server-2 1" in running.run("table").out
    assert "serving" in running.run("status").out
    assert "server-3" in running.run("server", "list").out


def test_a_second_up_on_the_same_folder_is_refused_with_what_to_do(running: Cluster) -> None:
    again = running.run("up", "--detach")
    assert again.code == 1
    assert "is running" in again.err and "utuple down" in again.err


def test_a_killed_server_comes_back(running: Cluster) -> None:
    before = running.pid("server-2")
    os.kill(before, signal.SIGKILL)

    def is_back() -> bool:
        server = running.servers()["server-2"]
        return server["pid"] not in (None, before) and server["state"] == "serving"

    until(is_back, "server-2 serves again, as another process")
    log = (running.folder / "logs" / "supervisor.log").read_text()
    assert "server-2 was killed by SIGKILL; starting it again in 0.1 s" in log


def test_a_killed_manager_and_a_killed_sca_server_come_back_and_know_everything(
    running: Cluster,
) -> None:
    before, table = running.pids(), running.run("table", "--json").json()
    killed = ("manager-1", "sca-1")
    for name in killed:
        os.kill(before[name], signal.SIGKILL)

    def is_well() -> bool:
        now = running.pids()
        others = all(name in now and now[name] != before[name] for name in killed)
        return others and running.run("status", "--json").code == 0

    until(is_well, "everything serves again")
    assert running.run("table", "--json").json() == table


def test_a_killed_postgresql_comes_back_under_the_servers(running: Cluster) -> None:
    postmaster = find_postmaster(running.folder / DATA)
    assert postmaster is not None
    os.kill(postmaster.pid, signal.SIGKILL)

    def is_another() -> bool:
        now = find_postmaster(running.folder / DATA)
        return now is not None and now.pid != postmaster.pid and now.is_ready

    until(is_another, "PostgreSQL runs again")
    until(lambda: running.run("status", "--json").code == 0, "every server serves again")


# --- the ways a cluster ends and begins again


def test_down_leaves_nothing_and_up_finds_everything_again(new: Cluster) -> None:
    new.up("--servers", "2", "--managers", "1")
    pids = new.pids()
    down = new.run("down")
    assert down.code == 0, down.err
    assert_nothing_left(new, pids)

    other = new.run("up", "--detach", "--servers", "3")
    assert other.code == 1
    assert "--servers 3" in other.err and "leave --servers out" in other.err

    again = new.run("up", "--detach")
    assert again.code == 0, again.err
    assert sorted(new.servers()) == ["server-1", "server-2"]
    assert "Nothing runs" not in new.run("down").out
    assert "Nothing runs" in new.run("down").out


def test_after_kill_9_of_the_supervisor_up_takes_over_and_down_ends_all(new: Cluster) -> None:
    new.up("--servers", "1", "--managers", "1")
    first = new.pids()
    os.kill(first["supervisor"], signal.SIGKILL)
    until(lambda: start_of(first["supervisor"]) is None, "the supervisor is gone")
    assert new.run("status", "--json").code == 0, "the programs live on"

    new.up()
    second = new.pids()
    assert second["supervisor"] != first["supervisor"]
    assert {**second, "supervisor": 0} == {**first, "supervisor": 0}, "the same programs go on"
    os.kill(second["server-1"], signal.SIGKILL)
    until(lambda: new.pids().get("server-1") != second["server-1"], "it is kept alive again")

    third = new.pids()
    os.kill(third["supervisor"], signal.SIGKILL)
    down = new.run("down")
    assert down.code == 0, down.err
    assert_nothing_left(new, third)


def test_in_the_foreground_ctrl_c_stops_everything(new: Cluster) -> None:
    up = new.start("up", "--port", str(new.port), "--servers", "1", "--managers", "1")
    assert up.stdout is not None
    said = []
    for line in up.stdout:
        said.append(line)
        if "Ctrl-C stops it" in line:
            break
    assert any("server-1" in line and "listens" not in line for line in said)
    pids = new.pids()
    assert new.run("status", "--json").code == 0
    up.send_signal(signal.SIGINT)
    assert up.wait(COMMAND_LIMIT_S) == 130
    assert_nothing_left(new, pids)


def test_a_taken_port_is_named_and_nothing_is_started(new: Cluster) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", new.port + 12))
        other.listen()
        up = new.run("up", "--detach", "--port", str(new.port))
        assert up.code == 1
        assert f"127.0.0.1:{new.port + 12} (for server-2)" in up.err and "--port" in up.err
    assert_nothing_left(new, {})
    assert not (new.folder / "cluster.json").exists()


def test_a_folder_of_another_version_is_refused(new: Cluster) -> None:
    new.folder.mkdir()
    (new.folder / "cluster.json").write_text(json.dumps({"format": 0}))
    up = new.run("up", "--detach")
    assert up.code == 1
    assert "another version" in up.err
    (new.folder / "cluster.json").unlink()


def test_a_program_that_cannot_start_fails_the_start_with_its_last_words(new: Cluster) -> None:
    """An installation whose psycopg is broken: only the servers need it."""
    spoilt = new.folder.parent / "spoilt"
    spoilt.mkdir()
    (spoilt / "psycopg.py").write_text("raise ImportError('broken on purpose')")
    small = ("--port", str(new.port), "--servers", "1", "--managers", "1")
    up = new.run("up", "--detach", *small, PYTHONPATH=str(spoilt))
    assert up.code == 1
    assert "server-1 dies again and again" in up.err and "broken on purpose" in up.err
    assert_nothing_left(new, {})


def test_a_stopped_cluster_starts_at_other_ports_with_all_it_had(new: Cluster) -> None:
    new.up("--servers", "2", "--managers", "1")
    event = ("--subject", "truck", "--type", "load", "--address", "truck-1", "--data", '{"kg": 1}')
    assert new.run("emit", *event).code == 0
    assert new.run("down").code == 0
    moved = Cluster(new.folder, free_port())
    moved.up()
    until(lambda: moved.run("status", "--json").code == 0, "everything serves at the new ports")
    found = moved.run("read", "--subject", "truck", "--type", "load", "--timeout", "30")
    assert json.loads(found.out)["address"] == "truck-1"
    places = [server["address"] for server in moved.servers().values()]
    assert places == [f"127.0.0.1:{moved.port + 11}", f"127.0.0.1:{moved.port + 12}"]
    assert moved.run("emit", *event).code == 0
