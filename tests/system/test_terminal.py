"""`utuple top`, `replay` and `map` on a real cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster import Cluster, running_cluster

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2", "--managers", "1", "--no-monitor") as cluster:
        yield cluster


def test_a_recording_is_shown_and_replayed(cluster: Cluster, tmp_path: Path) -> None:
    rows = "".join(f"bus-{n},2026-01-31T08:00:{n:02}Z,30.2,-97.7,{n}\n" for n in range(30))
    path = tmp_path / "buses.csv.gz"
    path.write_bytes(gzip.compress(f"vehicle,time,lat,lon,mph\n{rows}bus-x,never,1,1,1\n".encode()))
    shown = cluster.run("map", str(path), "--subject", "bus", "--type", "speed", "--json").json()
    assert shown["columns"]["address"] == "vehicle"
    people = cluster.run("map", str(path), "--subject", "bus", "--type", "speed").out.splitlines()
    assert "address  ← vehicle" in people
    first = json.loads(next(line for line in people if line.startswith("{")))
    assert (first["address"], first["position"], first["data"]) == (
        "bus-0",
        [30.2, -97.7],
        {"mph": 0},
    )
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
    nobody = cluster.run("top", "--once", "--at", "127.0.0.1:1")
    assert nobody.code == 1 and "no assignment manager answers" in nobody.err
