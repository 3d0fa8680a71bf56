"""Watches and readings while a server is drained: its rows go to an heir, with their origin and seqs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import TRUCKS, emit, held, nothing_comes, put, rest, space_of, take
from utuple.cluster.changes import flagged, released
from utuple.cluster.line import Line, Member

X_OFF = one_line(2, "y", Member("x", accumulatable=False))


def drained(cluster: TwinCluster, heir: str = "y") -> Line:
    line = cluster.line
    member = line.member("x")
    if member is not None and member.accumulatable:
        line = flagged(line, "x", accumulatable=False)
    line = released(line, "x")
    cluster.drain("x", heir, line)
    return line


def attaches(cluster: TwinCluster, name: str) -> list[dict[str, int]]:
    """The positions each Attach at this server named."""
    found = [m.attach for m in cluster.servers[name].heard if m.HasField("attach")]
    return [{p.origin: p.seq for p in attach.positions} for attach in found]


@in_virtual_time
async def test_what_was_not_delivered_comes_from_the_heir_and_what_was_stays_in_the_queue() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(8))
    space = await space_of(cluster, window=4).open()
    async with space.watch(**TRUCKS) as events:
        assert await take(events, 1) == [0]
        drained(cluster)
        await asyncio.sleep(1)
        assert await held(events) == list(range(1, 8)), "3 that x had sent, and the first of y"
        assert await nothing_comes(events)
    await space.close()


@pytest.mark.parametrize("named", [False, True])
@in_virtual_time
async def test_the_heir_is_told_how_far_the_drained_server_had_come(named: bool) -> None:
    """Neither a gap nor a flood of repeats, though the stream to the heir was up long before."""
    cluster = TwinCluster(one_line(1, "y", "x"))
    heir = cluster.servers["y"]
    space = await space_of(cluster, window=10).open()
    async with space.watch(**TRUCKS, reader="dispatch" if named else None) as events:
        put(heir, 1000)
        put(cluster.servers["x"], *range(300))
        assert sorted(await take(events, 301)) == [*range(300), 1000]
        put(cluster.servers["x"], *range(300, 303))
        cluster.servers["x"].streams[0].break_off()  # those may or may not have come
        drained(cluster)
        assert await rest(events) == [300, 301, 302]
        assert heir.sent["x"] < 50, "a few windows of repeats before it was told, at most"
        assert attaches(cluster, "y")[-1]["x"] >= 300
    await space.close()


@in_virtual_time
async def test_the_heir_is_not_attached_again_when_there_is_nothing_to_tell() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        put(cluster.servers["y"], 1, 2)
        drained(cluster)
        assert await rest(events) == [1, 2]
        assert len(attaches(cluster, "y")) == 1
    await space.close()


@in_virtual_time
async def test_an_heir_that_cannot_be_reached_is_told_when_it_can() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(6))
    space = await space_of(cluster, window=3).open()
    async with space.watch(**TRUCKS) as events:
        assert await take(events, 2) == [0, 1]
        cluster.cut("y")
        drained(cluster)
        await asyncio.sleep(20)
        cluster.mend("y")
        assert await rest(events) == [2, 3, 4, 5]
    await space.close()


@in_virtual_time
async def test_a_second_drain_passes_on_what_the_first_had_brought() -> None:
    cluster = TwinCluster(one_line(1, "z", "y", "x"))
    put(cluster.servers["x"], *range(10))
    put(cluster.servers["y"], *range(10, 20))
    space = await space_of(cluster, window=4).open()
    async with space.watch(**TRUCKS) as events:
        found = await take(events, 5)
        drained(cluster, "y")
        found += await take(events, 5)
        line = released(flagged(cluster.line, "y", accumulatable=False), "y")
        cluster.drain("y", "z", line)
        assert sorted(found + await rest(events)) == list(range(20))
    await space.close()


@in_virtual_time
async def test_a_reader_with_a_name_goes_on_at_the_heir_after_what_it_acknowledged() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(6))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        taken = [await anext(events) for _ in range(4)]
        await taken[0].ack()
        await asyncio.sleep(1)
        drained(cluster)
        await asyncio.sleep(1)
        assert cluster.servers["x"].streams == []
        await taken[2].ack()  # what x had delivered is acknowledged at y now
        await taken[1].ack()
        assert await rest(events) == [4, 5]
    heir = cluster.servers["y"]
    assert [seq for (_, origin), seq in heir.acknowledged.items() if origin == "x"] == [3]
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await rest(events) == [3, 4, 5]
    await space.close()


@in_virtual_time
async def test_what_only_the_drained_server_delivered_is_acknowledged_at_the_heir() -> None:
    """The heir has no reason to send it again, and must still be told."""
    cluster = TwinCluster(one_line(1, "y", "x"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        put(cluster.servers["y"], 0)
        assert await take(events, 1, ack=True) == [0]
        put(cluster.servers["x"], 1, 2)
        taken = [await anext(events) for _ in range(2)]
        cluster.cut("y")
        drained(cluster)
        cluster.mend("y")
        await asyncio.sleep(20)
        assert cluster.servers["y"].sent["x"] == 0
        for event in taken:
            await event.ack()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await nothing_comes(events)
    await space.close()


@in_virtual_time
async def test_a_stream_of_moved_rows_that_breaks_does_not_bring_back_what_was_acknowledged() -> (
    None
):
    """The heir has delivered nothing of its own in this life of the reader: there it must go on after
    what was acknowledged, and not at the beginning."""
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["y"], 1, 2)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 2, ack=True) == [1, 2]
    put(cluster.servers["x"], 3, 4)
    drained(cluster)
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 2) == [3, 4]
        cluster.cut("y")
        cluster.mend("y")
        await asyncio.sleep(3)
        assert await nothing_comes(events)
    await space.close()


@in_virtual_time
async def test_the_session_with_a_server_that_has_left_ends() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        await asyncio.sleep(1)
        cluster.cut("x")
        await asyncio.sleep(0.01)
        drained(cluster)
        await asyncio.sleep(3)  # the goodbye is given up after detach_s
        knocked = cluster.connects["x"]
        await asyncio.sleep(60)
        assert cluster.connects["x"] == knocked
        assert list(space._parts.sessions._sessions) == [("y", False)]
        put(cluster.servers["y"], 1)
        assert await rest(events) == [1]
    await space.close()


@in_virtual_time
async def test_a_server_that_leaves_while_it_is_being_connected_is_let_go() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS):
        await asyncio.sleep(1)
        go = cluster.hold("x")
        cluster.servers["x"].streams[0].break_off()
        await asyncio.sleep(1)
        drained(cluster)
        go.set()
        await asyncio.sleep(1)
        assert cluster.servers["x"].streams == []
    await space.close()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@in_virtual_time
async def test_a_member_that_is_off_and_is_drained_while_it_is_read_leaves_no_gap() -> None:
    cluster = TwinCluster(X_OFF)
    put(cluster.servers["x"], *range(20))
    space = await space_of(cluster, window=4).open()
    async with space.watch(**TRUCKS) as events:
        found = await take(events, 3)
        drained(cluster)
        assert sorted(found + await rest(events)) == list(range(20))
    await space.close()


# --- reading ----------------------------------------------------------------------------------------


async def kgs_of(cluster: TwinCluster, act_at: int, act: Callable[[], None]) -> list[int]:
    """A reading during which something happens; another watch hears of lines."""
    space = await space_of(cluster).open()
    found = []
    async with space.watch(subject="other", type="thing"):
        async for event in space.read(**TRUCKS):
            found.append(event.data["kg"])
            if len(found) == act_at:
                act()
                await asyncio.sleep(1)
    await space.close()
    return found


@in_virtual_time
async def test_a_reading_that_breaks_in_a_drain_begins_anew_without_gap_or_repeat() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(20))
    put(cluster.servers["y"], 20, 21)

    def act() -> None:
        drained(cluster)
        cluster.losing["x"] = 1

    assert sorted(await kgs_of(cluster, 5, act)) == list(range(22))


@in_virtual_time
async def test_a_reading_of_a_server_that_left_and_is_silent_now_goes_on_at_the_heir() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(20))

    def act() -> None:
        drained(cluster)
        cluster.cut("x")

    assert sorted(await kgs_of(cluster, 5, act)) == list(range(20))


@in_virtual_time
async def test_a_reading_that_ends_early_because_its_server_has_left_is_finished_at_the_heir() -> (
    None
):
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(20))

    def act() -> None:
        leaving = cluster.servers["x"]
        rows = list(leaving.log)
        drained(cluster)
        leaving.log = rows  # it deletes a little later
        asyncio.get_running_loop().call_later(0.5, rows.clear)

    assert sorted(await kgs_of(cluster, 5, act)) == list(range(20))
    assert cluster.servers["y"].reads == 2


@in_virtual_time
async def test_a_reading_does_not_fail_for_a_member_that_is_suspended_meanwhile() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(20))
    put(cluster.servers["y"], *range(20, 40))
    space = await space_of(cluster).open()
    found = []
    async for event in space.read(**TRUCKS):
        found.append(event.data["kg"])
        if len(found) == 5:
            cluster.cut("x")
            cluster.line = one_line(2, "y", Member("x", accumulatable=False, suspended=True))
            cluster.change(cluster.line, told=["y"])  # only the manager will tell us
    assert set(range(20, 40)) <= set(found)
    assert len(found) == len(set(found))
    await space.close()


@in_virtual_time
async def test_chunks_of_an_abandoned_epoch_that_were_not_given_yet_are_read_again() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    put(cluster.servers["x"], *range(10))
    put(cluster.servers["y"], *range(10, 20))
    space = await space_of(cluster, read_ahead_chunks=8).open()
    found = []
    async for event in space.read(**TRUCKS):
        found.append(event.data["kg"])
        if len(found) == 1:
            await asyncio.sleep(1)  # the queue is full of chunks
            newer = one_line(2, "y", "x", "z")
            cluster.move(newer)
            cluster.losing = {"x": 1}
    assert sorted(found) == list(range(20))
    await space.close()


@in_virtual_time
async def test_events_go_on_while_their_server_is_drained() -> None:
    cluster = TwinCluster(one_line(1, "y", "x"))
    space = await space_of(cluster).open()
    await emit(space, 0)
    began_s = asyncio.get_running_loop().time()
    drained(cluster)
    await emit(space, 1, 2, 3)
    assert asyncio.get_running_loop().time() == began_s
    assert sorted([event.data["kg"] async for event in space.read(**TRUCKS)]) == [0, 1, 2, 3]
    await space.close()
