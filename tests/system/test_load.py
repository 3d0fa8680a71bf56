"""Load by cause in a real cluster: a storm of reads is seen as one, told as one, and moves nothing (section 3.4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.waiting import until
from utuple.model.key import key_of

pytestmark = pytest.mark.slow
LIMIT_S = 120.0
SUBJECT, TYPE = "truck", "load"
EVENTS, READERS = 20_000, 12
T_P = 0.7
"""`processing_start` of a running monitor."""


async def test_a_storm_of_reads_alone_is_above_t_p_and_is_told_as_such() -> None:
    with running_cluster("--servers", "2", "--managers", "1") as cluster:
        async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
            await space.emit_many(
                {"subject": SUBJECT, "type": TYPE, "address": f"t-{n}", "data": {"n": n}}
                for n in range(EVENTS)
            )
            reading = [asyncio.create_task(read_on(space)) for _ in range(READERS)]
            try:
                seen = await asyncio.to_thread(
                    until,
                    lambda: asked_too_much(cluster),
                    "the monitor tells of the reads",
                    LIMIT_S,
                )
                assert seen is not None
            finally:
                for one in reading:
                    one.cancel()
                await asyncio.gather(*reading, return_exceptions=True)
        home, advice = seen
        load = home["load"]
        assert load["busy"] > T_P and load["by_cause"]["searches"] > 0.5 * load["busy"]
        (section,) = [
            one
            for one in home["sections"]
            if int(one["start"], 16) <= key_of(SUBJECT, TYPE) < int(one["end"], 16)
        ]
        assert section["by_cause"]["searches"] > 0.5
        assert f"section {section['start']}" in advice
        assert "Helpers do not relieve it" in advice
        assert cluster.run("moves", "--json").json() == []
        assert "EFs, searches" in cluster.run("status").out
        until(lambda: not told(cluster), "the advice is withdrawn", LIMIT_S)


async def read_on(space: Any) -> None:
    """Again and again, each time all of it from the store."""
    while True:
        async for _ in space.read(
            subject=SUBJECT, type=TYPE, where={"n": utuple.at_least(EVENTS // 2)}
        ):
            pass


def told(cluster: Cluster) -> list[str]:
    status = cluster.run("status", "--json").json()
    return [said for said in status["advice"] if "EFs and searches" in said]


def asked_too_much(cluster: Cluster) -> tuple[dict[str, Any], str] | None:
    busiest = max(cluster.servers().values(), key=lambda server: server["load"]["busy"])
    advice = told(cluster)
    return (busiest, advice[0]) if advice and busiest["load"]["busy"] > T_P else None
