"""Watches while a member is suspended, and when it returns (docs/moving.md)."""

from __future__ import annotations

import asyncio

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import (
    TRUCKS,
    nothing_comes,
    now_s,
    put,
    registered_at,
    rest,
    space_of,
    take,
)
from utuple.cluster.changes import returned, suspended
from utuple.cluster.line import Member
from utuple.errors import OutcomeUnknown

OFF_B = one_line(2, "a", Member("b", accumulatable=False))


@in_virtual_time
async def test_a_suspended_member_is_waited_for_by_nobody_and_kept_by_those_who_had_it() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    silent = cluster.servers["b"]
    async with space.watch(**TRUCKS) as before:
        cluster.cut("b")
        put(silent, 1)  # it is cut off from us only, and goes on taking events
        cluster.move(suspended(cluster.line, "b"))
        cluster.change(one_line(1, "a", "b"), told=["b"])
        await asyncio.sleep(1)
        began_s = now_s()
        async with space.watch(**TRUCKS) as meanwhile:
            assert now_s() == began_s
            cluster.mend("b")
            assert await take(before, 1) == [1], "the old link is there again"
            assert await nothing_comes(meanwhile)
            cluster.move(returned(cluster.line, "b"))
            assert await take(meanwhile, 1) == [1]
            put(silent, 2)
            assert await take(before, 1) == await take(meanwhile, 1) == [2]
    await space.close()


@in_virtual_time
async def test_a_watch_that_waits_for_a_silent_member_goes_on_when_that_is_suspended() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    cluster.hold("b")
    opening = asyncio.create_task(space.watch(**TRUCKS).open())
    await asyncio.sleep(0.5)
    newer = suspended(cluster.line, "b")
    cluster.line = newer
    cluster.change(newer, told=["a"])  # nobody tells us
    suspended_s = now_s()
    await opening
    assert now_s() - suspended_s <= 2.0
    await space.close()


@in_virtual_time
async def test_a_watch_cut_short_by_a_newer_line_may_be_registered() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.hold("a")  # it has the EF, and does not answer
    opening = asyncio.create_task(space.watch(**TRUCKS).open())
    await asyncio.sleep(0.5)
    cluster.line = one_line(2, "b")
    cluster.add_server("b", cluster.line)
    cluster.cut("b")
    with pytest.raises(OutcomeUnknown):
        await opening
    await space.close()


@in_virtual_time
async def test_a_suspended_member_that_has_forgotten_the_watch_is_left_alone_until_it_returns() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    silent = cluster.servers["b"]
    put(silent, 1)
    async with space.watch(**TRUCKS) as events:
        assert await take(events, 1) == [1]
        cluster.cut("b")
        silent.templates.clear()
        cluster.move(suspended(cluster.line, "b"))
        cluster.mend("b")
        await asyncio.sleep(10)
        assert (silent.templates, silent.reads) == ({}, 0)
        assert registered_at(cluster, "b") == [1]
        put(silent, 2)
        cluster.move(returned(cluster.line, "b"))
        assert await rest(events) == [2]
    await space.close()


@in_virtual_time
async def test_a_member_that_is_suspended_while_it_is_read_is_not_asked_until_it_returns() -> None:
    cluster = TwinCluster(OFF_B)
    silent = cluster.servers["b"]
    put(silent, *range(8))
    space = await space_of(cluster, window=2).open()
    async with space.watch(**TRUCKS) as events:
        found = await take(events, 1)
        cluster.cut("b")
        cluster.move(suspended(cluster.line, "b"))
        found += await rest(events)
        cluster.mend("b")
        await asyncio.sleep(10)
        assert silent.reads == 1
        cluster.move(returned(cluster.line, "b"))
        assert sorted(found + await rest(events)) == list(range(8))
    await space.close()
