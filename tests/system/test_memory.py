"""Memory help from end to end (section 3.5 and A.3): a real store passes T_m, another server takes over what comes, the full
one keeps what it has, expiry empties it, and it leaves. And the other way round, without thrashing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.waiting import until
from utuple.model.key import key_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "filling_up.py"
SUBJECT = "tank"
LIFETIME_S = 60.0
LIMIT_S = 150.0
DROPPED_S = 500.0
"""What has expired is dropped with its partition, five minutes wide, a minute and a half after its end at the latest."""
KNOBS = {"settle_s": 3, "smoothing_s": 1, "stay_on_s": 10, "stay_off_s": 5, "calm_s": 3}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    knobs = [f"--policy={name}={value}" for name, value in KNOBS.items()]
    with running_cluster(
        "--servers", "2", "--managers", "1", "--capacity", "10MB", *knobs
    ) as running:
        yield running


def fill(cluster: Cluster, megabytes: float, lifetime_s: float = LIFETIME_S) -> int:
    """As many events, by the example."""
    options = ("--at", cluster.at, "--mb", str(megabytes), "--lifetime-s", str(lifetime_s))
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE), *options, "--mb-per-s", "2"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout.splitlines()[-1].split()[0])


def members(cluster: Cluster) -> dict[str, bool]:
    """Of the line of the example's events: who takes what comes. Home first."""
    key = key_of(SUBJECT, "level")
    for line in cluster.run("table", "--json").json()["lines"]:
        if int(line["start"], 16) <= key < int(line["end"], 16):
            return {member["name"]: member["accumulatable"] for member in line["members"]}
    raise AssertionError("the table has no such line")


def moves(cluster: Cluster) -> Counter[str]:
    """How many of each kind were made in that line. A server that has left its last line is given another one."""
    key = key_of(SUBJECT, "level")
    made = (one for one in cluster.run("moves", "--json").json() if one["step"] == "done")
    return Counter(
        one["kind"] for one in made if int(one["start"], 16) <= key < int(one["end"], 16)
    )


def memory(cluster: Cluster, name: str) -> float:
    server = cluster.servers()[name]
    return float(server["size_bytes"] / server["capacity_bytes"])


async def found(cluster: Cluster) -> Counter[int]:
    async with utuple.connect(cluster.at, timeout_s=60) as space:
        return Counter(
            [event.data["n"] async for event in space.read(subject=SUBJECT, type="level")]
        )


def test_a_store_above_t_m_is_helped_keeps_what_it_has_and_is_released_when_that_expired(
    cluster: Cluster,
) -> None:
    ((full, _),) = members(cluster).items()
    (other,) = set(cluster.servers()) - {full}
    assert {one["capacity_bytes"] for one in cluster.servers().values()} == {10_000_000}
    emitted = fill(cluster, 10.0)
    until(lambda: members(cluster) == {full: False, other: True}, "figure 4", LIMIT_S)
    assert memory(cluster, full) > 0.8
    held = cluster.servers()[full]["events"]
    emitted_more = fill(cluster, 1.0)
    until(lambda: cluster.servers()[other]["events"] >= emitted_more, "they went to the helper")
    assert cluster.servers()[full]["events"] == held, (
        "the full one keeps what it has, and takes no more"
    )
    there = asyncio.run(found(cluster))
    assert set(there) == set(range(emitted)), "and is searched all the while"
    until(
        lambda: members(cluster) == {other: True},
        "A.3: it has expired, and the first leaves",
        LIMIT_S,
    )
    assert moves(cluster) == {"help-memory": 1, "release": 1}


@pytest.mark.long
def test_and_back_when_the_other_is_full_and_the_first_is_empty_again(cluster: Cluster) -> None:
    ((full, _),) = members(cluster).items()
    (empty,) = set(cluster.servers()) - {full}
    until(lambda: memory(cluster, empty) < 0.6, "what has expired was dropped", DROPPED_S)
    before = moves(cluster)
    fill(cluster, 10.0)
    until(lambda: members(cluster) == {full: False, empty: True}, "figure 4 again", LIMIT_S)
    until(lambda: members(cluster) == {empty: True}, "A.3 again", LIMIT_S)
    once_each = {"help-memory": 1, "release": 1}
    made = cluster.run("moves").out
    assert moves(cluster) - before == once_each, f"nothing comes and goes:\n{made}"


def test_a_capacity_that_cannot_be_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    with running_cluster("--servers", "1", "--managers", "1", "--no-monitor") as cluster:
        fill(cluster, 8.0, lifetime_s=3_600.0)
        until(lambda: cluster.servers()["server-1"]["size_bytes"] > 5_000_000, "it is stored")
        assert cluster.run("down").code == 0
        noted = (cluster.folder / "cluster.json").read_bytes()
        for given, said in {
            "0": "must be at least 4MB",
            "-1MB": "must be a size such as 200MB",
            "server-7=1GB": "must name one of server-1",
            "5MB": "that server-1 holds already",
        }.items():
            ran = cluster.run("up", "--detach", "--capacity", given)
            assert ran.code == 1 and "--capacity" in ran.err and said in ran.err, ran.err
        ran = cluster.run("up", "--detach", "--policy", "memory_start=1.5")
        assert ran.code == 1 and "memory_start" in ran.err
        assert (cluster.folder / "cluster.json").read_bytes() == noted
        cluster.up("--capacity", "server-1=50MB")
        assert cluster.servers()["server-1"]["capacity_bytes"] == 50_000_000
        kept: dict[str, Any] = json.loads((cluster.folder / "cluster.json").read_text())
        assert kept["capacity"] == {"server-1": 50_000_000}
