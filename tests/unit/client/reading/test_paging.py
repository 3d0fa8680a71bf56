"""`read` in order of time: the newest or oldest of all members, once each, whatever happens in between."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.server import time_and_id
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.reading.paging import Key, MemberPage, Row, merged
from utuple.client.receiving.delivery import Chunk
from utuple.client.space import Space
from utuple.cluster.line import Member
from utuple.errors import InvalidInput, Unavailable
from utuple.model.columns import Columns
from utuple.model.condition import at_least
from utuple.model.utuple import UTuple

TRUCKS: dict[str, Any] = {"subject": "truck", "type": "load"}
START = datetime(2026, 1, 1, tzinfo=UTC)


# --- the merge -------------------------------------------------------------------------------------

NOBODY = Chunk(Columns(), "a", "a", stored=True)
member_keys = st.lists(st.tuples(st.integers(0, 4), st.binary(min_size=1, max_size=1)), max_size=12)


def page_of(keys: list[Key], rows: int, after: Key | None, *, newest_first: bool) -> MemberPage:
    """As a member answers."""
    found = sorted(keys, reverse=newest_first)
    if after is not None:
        found = [key for key in found if (key < after if newest_first else key > after)]
    given = [Row(key, NOBODY, 0) for key in found[:rows]]
    return MemberPage(given, len(given) == rows)


@given(
    members=st.lists(member_keys, min_size=1, max_size=4),
    rows=st.integers(1, 5),
    newest_first=st.booleans(),
)
def test_merged_pages_are_all_rows_of_all_members_in_order_once(
    members: list[list[Key]], rows: int, newest_first: bool
) -> None:
    """Members may hold a row twice (a lost attempt and its retry), and the same row (a move)."""
    expected = sorted({key for keys in members for key in keys}, reverse=newest_first)
    found: list[Key] = []
    is_over = False
    while not is_over:
        after = found[-1] if found else None
        pages = [page_of(keys, rows, after, newest_first=newest_first) for keys in members]
        certain, is_over = merged(pages, newest_first=newest_first)
        assert certain or is_over, "it comes further with every page"
        found += [row.key for row in certain]
    assert found == expected


# --- through the client ----------------------------------------------------------------------------


def space_of(cluster: TwinCluster, **knobs: Any) -> Space:
    config = Config(**{"timeout_s": 10.0, "page_rows": 4, **knobs})
    return Space(put_together([MANAGER], config, cluster, random.Random(7), lambda: 0))


async def filled(cluster: TwinCluster, count: int, **knobs: Any) -> Space:
    """Their times lie in another order than they are registered in, and some are the same."""
    space = await space_of(cluster, **knobs).open()
    for n in range(count):
        time = START + timedelta(seconds=n * 7 % count // 2)
        await space.emit(**TRUCKS, address=f"t-{n}", time=time, data={"kg": n})
    return space


def of_all(cluster: TwinCluster) -> list[UTuple]:
    """Everything stored, in order of time."""
    events = {e.id: e for server in cluster.servers.values() for _, e, _ in server.log}
    return sorted(events.values(), key=time_and_id)


async def kgs(space: Space, **asked: Any) -> list[int]:
    return [event.data["kg"] async for event in space.read(**TRUCKS, **asked)]


def kgs_of(events: list[UTuple]) -> list[int]:
    return [event.data["kg"] for event in events if event.data is not None]


@in_virtual_time
@pytest.mark.parametrize("members", ["a", "ab", "abc"])
@pytest.mark.parametrize("limit", [1, 3, 4, 5, 20, 99, None])
async def test_the_newest_and_the_oldest_of_all_members_come_in_order(
    members: str, limit: int | None
) -> None:
    cluster = TwinCluster(one_line(1, *members))
    space = await filled(cluster, 30)
    assert all(server.log for server in cluster.servers.values())
    expected = kgs_of(of_all(cluster))
    assert await kgs(space, limit=limit, newest_first=True) == expected[::-1][:limit]
    if limit is not None:
        assert await kgs(space, limit=limit) == expected[:limit]
        heavy = [kg for kg in expected[::-1] if kg >= 15]
        asked: dict[str, Any] = {"where": {"kg": at_least(15)}, "newest_first": True}
        assert await kgs(space, limit=limit, **asked) == heavy[:limit]
    await space.close()


@in_virtual_time
async def test_a_limit_asks_for_no_more_than_so_many() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 50, page_rows=1_000)
    assert len(await kgs(space, limit=3, newest_first=True)) == 3
    assert cluster.servers["a"].page_rows == [3]
    await space.close()


@in_virtual_time
async def test_a_page_is_cut_where_it_has_many_bytes_and_goes_on_there() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 20, page_rows=100, page_bytes=25)
    assert await kgs(space, newest_first=True) == kgs_of(of_all(cluster))[::-1]
    assert len(cluster.servers["a"].page_rows) > 3
    await space.close()


@in_virtual_time
async def test_rows_that_are_at_two_members_come_once() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 20)
    cluster.servers["a"].log += cluster.servers["b"].log
    cluster.servers["b"].log += cluster.servers["b"].log
    assert await kgs(space, newest_first=True) == kgs_of(of_all(cluster))[::-1]
    await space.close()


@in_virtual_time
async def test_what_moves_between_two_pages_is_found_once() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 30)
    expected, found = kgs_of(of_all(cluster))[::-1], []
    async for event in space.read(**TRUCKS, newest_first=True):
        found.append(event.data["kg"])
        if len(found) == 9:
            cluster.servers["b"].take_from(cluster.servers["a"])
            cluster.change(one_line(2, "b"), told=["b"])
    assert found == expected
    await space.close()


@in_virtual_time
async def test_an_old_line_and_members_that_are_off_are_read_too() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 9)
    newer = one_line(2, Member("a", accumulatable=False), "b")
    cluster.add_server("b", newer).log = [(9, cluster.servers["a"].log.pop()[1], "b")]
    cluster.change(newer, told=["a"])
    assert await kgs(space, limit=9, newest_first=True) == kgs_of(of_all(cluster))[::-1]
    await space.close()


@in_virtual_time
async def test_a_stream_that_breaks_is_asked_again_and_a_silent_member_fails() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 20)
    cluster.losing["a"] = 1
    assert await kgs(space, newest_first=True) == kgs_of(of_all(cluster))[::-1]
    cluster.cut("b")
    with pytest.raises(Unavailable):
        await kgs(space, limit=1, newest_first=True)
    await space.close()


@in_virtual_time
async def test_a_wrong_limit_is_refused_at_the_call() -> None:
    space = await filled(TwinCluster(one_line(1, "a")), 3)
    for limit in (0, -1, 1.5, True, "9", np.array([1, 2])):
        with pytest.raises(InvalidInput, match="limit") as caught:
            space.read(**TRUCKS, limit=limit)  # type: ignore[arg-type]
        assert caught.value.field == "limit"
    with pytest.raises(InvalidInput, match="newest_first"):
        space.read(**TRUCKS, newest_first="yes")  # type: ignore[arg-type]
    assert len(await kgs(space, limit=np.int64(2))) == 2
    await space.close()
