"""`utuple doctor`, `top`, `replay` and `map` on a real cluster; faults planted for the doctor."""

from __future__ import annotations

import gzip
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster import Cluster, running_cluster
from tests.waiting import until

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2", "--managers", "1", "--no-monitor") as cluster:
        yield cluster


def wrong(cluster: Cluster) -> dict[str, str]:
    """What the doctor finds, each with its cure."""
    found = cluster.run("doctor", "--json").json()["findings"]
    return {one["name"]: one["cure"] for one in found if not one["is_well"]}


def test_the_doctor_finds_what_is_missing_and_names_the_cure(cluster: Cluster) -> None:
    assert list(wrong(cluster)) == ["kinds of programs"]  # no load monitor, as asked for
    os.kill(cluster.pid("server-2"), signal.SIGSTOP)
    try:
        until(lambda: "programs" in wrong(cluster), "a server that does not answer is found")
        assert "logs/server-2.log" in wrong(cluster)["programs"]
    finally:
        os.kill(cluster.pid("server-2"), signal.SIGCONT)
    until(lambda: "programs" not in wrong(cluster), "and that it is back")
    elsewhere = cluster.run("doctor", "--at", "127.0.0.1:1")
    assert elsewhere.code == 1
    assert "utuple up" in elsewhere.out


def test_the_doctor_finds_a_port_that_somebody_else_has() -> None:
    with running_cluster("--servers", "1", "--managers", "1", "--no-monitor") as own:
        own.run("down")
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", own.port + 11))
            other.listen()
            found = wrong(own)
    assert "--port" in found["ports"]
    assert "assignment managers" in found


def test_a_recording_is_shown_and_replayed(cluster: Cluster, tmp_path: Path) -> None:
    rows = "".join(f"bus-{n},2026-01-31T08:00:{n:02}Z,30.2,-97.7,{n}\n" for n in range(30))
    path = tmp_path / "buses.csv.gz"
    path.write_bytes(gzip.compress(f"vehicle,time,lat,lon,mph\n{rows}bus-x,never,1,1,1\n".encode()))
    shown = cluster.run("map", str(path), "--subject", "bus", "--type", "speed", "--json").json()
    assert shown["columns"]["address"] == "vehicle"
    family = ("--subject", "bus", "--type", "speed")
    played = cluster.run("replay", str(path), *family, "--speed", "60", "--now", "--json")
    assert (played.code, played.json()) == (1, {"emitted": 30, "refused": 1})
    stored = cluster.run("read", *family).out.splitlines()
    assert len(stored) == 30
    assert "no column" in cluster.run("map", str(path)).err


def test_top_looks_once_and_ends(cluster: Cluster) -> None:
    seen = cluster.run("top", "--once")
    assert seen.code == 0
    assert "server-1" in seen.out
    assert "all well" in seen.out
