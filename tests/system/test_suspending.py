"""Suspension (docs/moving.md) on real processes: a member that falls silent is suspended, EFs go on without it, and
when it is back nothing it holds was missed. Two monitors watch; one is killed, and the other plans."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.waiting import until
from utuple.model.key import key_of

pytestmark = [pytest.mark.slow, pytest.mark.long]
LIMIT_S = 90.0
EVENTS = 60
KNOBS = ("--silent-s=4", "--stay-off-s=1", "--settle-s=1", "--stay-on-s=3600", "--hold-s=3600")
"""Silence counts soon, and nothing else moves."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2", "--managers", "1", "--no-monitor") as running:
        yield running


@contextmanager
def monitor(cluster: Cluster, name: str) -> Iterator[subprocess.Popen[bytes]]:
    own = ("--name", name, "--listen", "127.0.0.1:0", "--managers", cluster.at, *KNOBS)
    process = subprocess.Popen([sys.executable, "-m", "load_monitor", *own])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def made(cluster: Cluster, kind: str) -> bool:
    moves = cluster.run("moves", "--json").json()
    return any(m["kind"] == kind and m["step"] in ("committed", "done") for m in moves)


def shared_subject(cluster: Cluster) -> str:
    """Of a section of server-1 in which server-2 helps."""
    helped = cluster.run("server", "help", "server-1", "--helper", "server-2", "--json")
    assert helped.code == 0, helped.err
    (line,) = helped.json()["after"]
    start, end = int(line["start"], 16), int(line["end"], 16)
    return next(f"s{n}" for n in count() if start <= key_of(f"s{n}", "t") < end)


async def emit(space: Any, subject: str, numbers: range) -> None:
    for n in numbers:
        await space.emit(subject=subject, type="t", address="a", data={"n": n})


async def test_a_silent_member_is_suspended_and_what_it_holds_comes_when_it_is_back(
    cluster: Cluster,
) -> None:
    subject = await asyncio.to_thread(shared_subject, cluster)
    before = (await asyncio.to_thread(cluster.servers))["server-2"]["registered"]
    got = Counter[int]()

    async def take(events: Any, most: int) -> None:
        async with asyncio.timeout(LIMIT_S):
            while len(got) < most:
                got[(await anext(events)).data["n"]] += 1

    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        await emit(space, subject, range(EVENTS))
        held = (await asyncio.to_thread(cluster.servers))["server-2"]["registered"] - before
        assert 0 < held < EVENTS, "both members have taken some"
        with monitor(cluster, "monitor-1") as first, monitor(cluster, "monitor-2"):
            with stopped(cluster.pid("server-2")):
                # An EF waits for every member, until this one is suspended.
                events = await space.watch(subject=subject, type="t").open()
                assert await asyncio.to_thread(made, cluster, "suspend")
                await emit(space, subject, range(EVENTS, 2 * EVENTS))
                await take(events, 2 * EVENTS - held)
                first.kill()
            await take(events, 2 * EVENTS)
            assert await asyncio.to_thread(until, lambda: made(cluster, "return"), "it is back")
        await events.close()
    assert got == Counter(range(2 * EVENTS)), "nothing missed, nothing twice"
