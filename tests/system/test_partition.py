"""A line of a real cluster is partitioned by the operator, loses a member to kill -9, is cut anew where its events fall into
equal parts, and is gathered: what is watched all the while comes once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from typing import Any

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.waiting import until
from utuple.model.condition import below
from utuple.model.key import key_of

pytestmark = pytest.mark.slow
LIMIT_S = 90.0
TRUCKS: dict[str, Any] = {"subject": "truck", "type": "load"}
SILENT_S = 3.0


def test_nothing_is_missed_or_repeated_from_partition_to_gather_with_a_kill_between() -> None:
    with running_cluster("--servers", "3", "--managers", "1", "--no-monitor") as cluster:
        start = next(
            line["start"]
            for line in cluster.run("table", "--json").json()["lines"]
            if int(line["start"], 16) <= key_of("truck", "load") <= int(line["end"], 16)
        )
        home = _line(cluster, start)["home"]
        for helper in sorted({"server-1", "server-2", "server-3"} - {home}):
            order = ("help", home, "--helper", helper, "--section", start)
            assert cluster.run("server", *order).code == 0
        asyncio.run(_watched(cluster, home, start))


def _serves(cluster: Cluster, name: str) -> bool:
    return bool(cluster.servers()[name]["state"] == "serving")


def _line(cluster: Cluster, start: str) -> dict[str, Any]:
    table = cluster.run("table", "--json").json()
    return next(line for line in table["lines"] if line["start"] == start)


async def _watched(cluster: Cluster, home: str, start: str) -> None:
    async def order(*words: str) -> dict[str, Any]:
        done = await asyncio.to_thread(
            cluster.run, "server", "partition", home, "--section", start, *words, "--json"
        )
        assert done.code == 0, done.err
        return dict(done.json())

    async with utuple.connect(cluster.at, timeout_s=LIMIT_S, choice="random") as space:
        async with space.watch(**TRUCKS, where={"kg": below(10)}, reader="light") as light:
            await _emit(space, 0)
            planned = await order("--by", "data.kg:10:20", "--dry-run")
            assert not _line(cluster, start)["axes"] and planned["after"][0]["axes"]
            (after,) = (await order("--by", "data.kg:10:20"))["after"]
            assert after["axes"][0]["bounds"] == [10, 20]
            async with space.watch(**TRUCKS, where={"kg": below(5)}) as fresh:
                await _emit(space, 100)
                assert await _came(fresh) == _below(5, 0, 100)
                owner = after["axes"][0]["owners"][0][0]
                os.kill(cluster.pid(owner), signal.SIGKILL)
                await _emit(space, 200)
                await asyncio.to_thread(until, lambda: _serves(cluster, owner), f"{owner} serves")
                await order("--by", "data.kg", "--dry-run")
                moved = await order("--by", "data.kg")
                assert {move["kind"] for move in moved["moves"]} == {"recut"}
                assert moved["after"][0]["axes"][0]["bounds"] != [10, 20]
                await _emit(space, 250)
                await order("--undo")
                await _emit(space, 300)
                assert _line(cluster, start)["axes"] == []
                assert await _came(fresh) == _below(5, 200, 250, 300)
            assert await _came(light) == _below(10, 0, 100, 200, 250, 300)


def _below(kg: int, *firsts: int) -> Counter[int]:
    return Counter(first + light for first in firsts for light in range(kg))


async def _emit(space: utuple.Space, first: int) -> None:
    """One by one, each to any of the members that may take it."""
    for kg in range(30):
        event = {**TRUCKS, "address": f"t{kg}", "data": {"kg": kg, "n": first + kg}}
        await space.emit_many([event])


async def _came(events: utuple.Watch) -> Counter[int]:
    found: Counter[int] = Counter()
    while some := await events.take(1_000, timeout_s=SILENT_S):
        found.update(event.data["n"] for event in some)
    return found
