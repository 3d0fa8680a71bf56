"""`read`: stored matches of every member, once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.cluster.line import Member
from utuple.errors import InvalidInput, Unavailable
from utuple.model.condition import at_least

TRUCKS: dict[str, Any] = {"subject": "truck", "type": "load"}


def space_of(cluster: TwinCluster) -> Space:
    dice = random.Random(7)
    return Space(put_together([MANAGER], Config(timeout_s=10.0), cluster, dice, lambda: 0))


async def filled(cluster: TwinCluster, count: int) -> Space:
    space = await space_of(cluster).open()
    for number in range(count):
        await space.emit(**TRUCKS, address=f"t{number}", data={"kg": number})
    return space


async def kgs(space: Space, **more: Any) -> list[int]:
    return sorted([event.data["kg"] async for event in space.read(**TRUCKS, **more)])


@in_virtual_time
async def test_every_member_is_read_and_the_reading_ends() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 20)
    assert all(server.log for server in cluster.servers.values())
    assert await kgs(space) == list(range(20))
    assert await kgs(space, where={"kg": at_least(18)}) == [18, 19]
    await space.close()


@in_virtual_time
async def test_an_old_line_is_noticed_before_anything_is_given() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 3)
    newer = one_line(2, Member("a", accumulatable=False), "b")
    cluster.add_server("b", newer).log = [(9, cluster.servers["a"].log.pop()[1], "b")]
    cluster.change(newer, told=["a"])
    assert await kgs(space) == [0, 1, 2]
    await space.close()


@in_virtual_time
async def test_a_stream_that_breaks_is_read_again_without_repeats() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 10)
    found = []
    async for event in space.read(**TRUCKS):
        found.append(event.data["kg"])
        if len(found) == 3:
            cluster.losing["a"] = 1
        assert event.stored
        with pytest.raises(InvalidInput, match="it came by a read"):
            await event.ack()
    assert found == list(range(10))
    assert cluster.servers["a"].reads == 2
    await space.close()


@in_virtual_time
async def test_a_silent_member_makes_reading_fail_rather_than_lie() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 4)
    cluster.cut("b")
    with pytest.raises(Unavailable):
        await kgs(space)
    await space.close()


@in_virtual_time
async def test_leaving_the_loop_ends_the_reading() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 100)
    reading = space.read(**TRUCKS)
    async for _ in reading:
        break
    await reading.aclose()
    assert len(asyncio.all_tasks()) == 1
    await space.close()


@in_virtual_time
async def test_a_template_that_can_match_nothing_is_refused_at_the_call() -> None:
    space = await filled(TwinCluster(one_line(1, "a")), 0)
    with pytest.raises(InvalidInput):
        space.read(subject="truck", type="load", address="")
    await space.close()


@in_virtual_time
async def test_a_reading_that_never_comes_further_fails_in_time() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 3)
    cluster.choking = True
    with pytest.raises(Unavailable, match="never gets through"):
        await kgs(space)
    assert asyncio.get_running_loop().time() <= 10
    await space.close()


@in_virtual_time
async def test_a_server_that_is_away_is_read_when_it_is_back() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 3)
    cluster.down.add("a")
    asyncio.get_running_loop().call_later(1.0, cluster.down.discard, "a")
    assert await kgs(space) == [0, 1, 2]
    await space.close()


@in_virtual_time
async def test_a_server_that_stays_silent_takes_no_longer_than_the_time_that_was_given() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 3)
    cluster.hold("a")
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    with pytest.raises(Unavailable, match=r"no rows came within 10 s from a$"):
        await kgs(space)
    assert loop.time() - began_s <= 10.0 + 1.0
    await space.close()
