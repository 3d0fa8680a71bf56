"""Watches: stored then live, without gap or repeat, through broken streams and silent servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.replacing import replaced
from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import TRUCKS, emit, held, nothing_comes, space_of, take
from utuple.client.receiving import formal
from utuple.client.receiving.watch import Watch
from utuple.cluster.line import Member
from utuple.errors import (
    Closed,
    InvalidInput,
    NotAllowed,
    OutcomeUnknown,
    ReaderReplaced,
    Unavailable,
)
from utuple.model.condition import at_least
from utuple.model.terms import respond_within
from utuple.wire import utuple_pb2 as pb


@in_virtual_time
async def test_stored_matches_come_first_then_live_ones() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    await emit(space, 1, 2, 3)
    async with space.watch(**TRUCKS, where={"kg": at_least(2)}) as events:
        assert sorted(await take(events, 2)) == [2, 3]
        await emit(space, 1, 4)
        event = await anext(events)
        assert (event.data, event.stored, event.subject, event.type) == (
            {"kg": 4},
            False,
            "truck",
            "load",
        )
        await emit(space, 9, lifetime_s=0)
        assert await take(events, 1) == [9]
    await space.close()


@in_virtual_time
async def test_a_watch_is_registered_at_every_member_and_cancelled_everywhere_at_the_end() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS):
        assert [len(server.templates) for server in cluster.servers.values()] == [1, 1]
        assert [len(server.cursors) for server in cluster.servers.values()] == [1, 1]
    assert [len(server.templates) for server in cluster.servers.values()] == [0, 0]
    await space.close()


@in_virtual_time
async def test_a_watch_opens_by_itself_and_closes_with_the_space() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, 1)
    events = space.watch(**TRUCKS)
    assert await take(events, 1) == [1]
    await space.close()
    assert cluster.servers["a"].templates == {}
    with pytest.raises(Closed):
        await anext(events)


@in_virtual_time
async def test_a_broken_stream_goes_on_where_it_was() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        await emit(space, *range(5))
        assert await take(events, 3) == [0, 1, 2]
        cluster.cut("a")
        cluster.mend("a")
        await emit(space, 5)
        assert await take(events, 3) == [3, 4, 5]
        assert await nothing_comes(events)
        attach = [m.attach for m in cluster.servers["a"].heard if m.HasField("attach")][-1]
        assert attach.resume and attach.positions[0].seq == 5
    await space.close()


@in_virtual_time
async def test_a_named_reader_is_given_what_it_had_not_acknowledged() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, *range(6))
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 3, ack=True) == [0, 1, 2]
        assert await take(events, 2) == [3, 4]
    await space.close()
    space = await space_of(cluster, seed=8).open()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 3) == [3, 4, 5]
    await space.close()


@in_virtual_time
async def test_a_named_reader_whose_stream_breaks_before_anything_came_does_not_begin_anew() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, 0, 1)
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        await take(events, 2, ack=True)
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        cluster.cut("a")
        cluster.mend("a")
        await emit(space, 2)
        assert await take(events, 1) == [2]
    await space.close()


@in_virtual_time
async def test_cancelling_a_named_reader_forgets_it() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, reader="dispatch"):
        pass
    assert len(cluster.servers["a"].templates) == 1
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        await events.cancel()
    assert cluster.servers["a"].templates == {}
    await space.close()


@in_virtual_time
async def test_another_program_under_the_same_name_ends_the_first() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    one, other = await space_of(cluster).open(), await space_of(cluster, seed=8).open()
    async with one.watch(**TRUCKS, reader="dispatch") as events:
        async with other.watch(**TRUCKS, reader="dispatch"):
            with pytest.raises(ReaderReplaced):
                await anext(events)
    await one.close()
    await other.close()


@in_virtual_time
async def test_the_late_attach_of_a_program_s_life_before_does_not_end_its_reader() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        before = await cluster.deliver("a", sca=False)
        attach = pb.Attach(id=events._formal.utuple.id, reader="dispatch", window=10)
        await before.send(pb.FromReader(attach=attach))
        before.cancel()
        await emit(space, 1)
        assert await take(events, 1) == [1]
    await space.close()


@in_virtual_time
async def test_a_stopped_watch_holds_no_more_than_its_window_and_does_not_stop_another() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, window=10).open()
    async with space.watch(**TRUCKS) as stopped, space.watch(**TRUCKS) as running:
        for number in range(50):
            await emit(space, number)
            assert await take(running, 1) == [number]
        assert await held(stopped) == list(range(10))
        assert await take(stopped, 40) == list(range(10, 50))
    await space.close()


@in_virtual_time
async def test_a_stopped_watch_holds_a_bounded_number_however_often_its_stream_breaks() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, window=10).open()
    await emit(space, *range(100))
    async with space.watch(**TRUCKS) as events:
        assert await take(events, 6) == list(range(6))
        for _ in range(5):
            await asyncio.sleep(1)
            cluster.cut("a")
            cluster.mend("a")
        await asyncio.sleep(5)
        came = await held(events)
        assert len(came) <= 15
        assert came + await take(events, 94 - len(came)) == list(range(6, 100))
        assert await nothing_comes(events)
    await space.close()


@in_virtual_time
async def test_a_server_that_forgot_the_watch_is_told_again() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        await emit(space, 1)
        assert await take(events, 1) == [1]
        cluster.cut("a")
        cluster.servers["a"].templates.clear()  # it expired meanwhile
        cluster.mend("a")
        await emit(space, 2)
        assert await take(events, 1) == [2]
    await space.close()


@in_virtual_time
async def test_a_watch_does_not_open_while_a_member_is_silent() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    cluster.cut("b")
    with pytest.raises(OutcomeUnknown) as caught:
        async with space.watch(**TRUCKS):
            pass
    cluster.mend("b")
    events = await space.retry(caught.value)
    assert isinstance(events, Watch)
    await emit(space, 1, 2, 3)
    assert sorted(await take(events, 3)) == [1, 2, 3]
    await space.close()


@in_virtual_time
async def test_a_watch_ends_when_a_member_that_is_off_may_not_be_read_any_longer() -> None:
    """Its grant was revoked while its reading was broken off."""

    async def refuse(
        self: TwinCluster, address: str, request: pb.ReadRequest
    ) -> AsyncGenerator[pb.ReadChunk, None]:
        if address:
            raise NotAllowed("nothing is granted to it")
        yield pb.ReadChunk()

    cluster = TwinCluster(one_line(1, "b"))
    space = await space_of(cluster).open()
    await emit(space, 1, 2)
    cluster.move(one_line(2, "a", Member("b", False)))
    cluster.choking = True
    events = await space.watch(**TRUCKS).open()
    with replaced(TwinCluster, "read", refuse):
        async with asyncio.timeout(60):
            with pytest.raises(NotAllowed, match="nothing is granted"):
                await take(events, 3)
    await space.close()


@in_virtual_time
async def test_a_watch_that_reached_nobody_is_surely_not_registered() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.cut("a")
    with pytest.raises(Unavailable):
        await space.watch(**TRUCKS).open()
    await space.close()


@in_virtual_time
async def test_an_event_registered_at_two_servers_is_given_once() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    await emit(space, 1)
    for server in cluster.servers.values():
        other = [one for one in cluster.servers.values() if one is not server]
        if server.log:
            other[0].log.append((1, server.log[0][1], other[0].name))
            break
    async with space.watch(**TRUCKS) as events:
        assert await take(events, 1) == [1]
        assert await nothing_comes(events)
    await space.close()


@in_virtual_time
async def test_acknowledgements_are_flushed_when_a_watch_closes() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, acknowledge_every_s=1000).open()
    await emit(space, 1, 2)
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        await take(events, 2, ack=True)
    assert list(cluster.servers["a"].acknowledged.values()) == [2]
    await space.close()


@in_virtual_time
async def test_closing_does_not_hang_on_a_server_that_is_gone() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS):
        cluster.cut("a")
    await space.close()
    assert asyncio.get_running_loop().time() < 10


@in_virtual_time
async def test_a_watch_closed_while_it_opens_leaves_nothing_behind() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    go = cluster.hold("a")
    opening = asyncio.create_task(space.watch(**TRUCKS).open())
    await asyncio.sleep(1)
    closing = asyncio.create_task(space.close())
    go.set()
    with pytest.raises((Closed, OutcomeUnknown)):
        await opening
    await closing
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@in_virtual_time
async def test_what_is_taken_at_once_gives_the_window_back_and_counts_when_acknowledged() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, window=40).open()
    await emit(space, *range(200))
    found: list[int] = []
    async with space.watch(**TRUCKS, reader="r") as events:
        while len(found) < 200:
            some = await asyncio.wait_for(events.take(7), 60)
            assert 1 <= len(some) <= 7
            for event in reversed(some):  # in any order
                await event.ack()
            found += [event.data["kg"] for event in some]
        assert found == list(range(200))
    assert list(cluster.servers["a"].acknowledged.values()) == [200]
    await space.close()


@in_virtual_time
async def test_a_take_that_gets_nothing_in_its_time_gives_nothing_and_loses_nothing() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        began_s = asyncio.get_running_loop().time()
        assert await events.take(10, timeout_s=5) == []
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(5, abs=0.1)
        assert await events.take(10, timeout_s=0) == []
        waiting = asyncio.create_task(events.take(10, timeout_s=60))
        await emit(space, 1, 2, 3)
        found = await waiting
        while len(found) < 3:
            found += await events.take(10, timeout_s=60)
        assert [event.data["kg"] for event in found] == [1, 2, 3]
        for most in (0, -1, 1.5, True):
            with pytest.raises(InvalidInput, match="most"):
                await events.take(most)  # type: ignore[arg-type]
        for timeout_s in (-1, float("nan"), "1", True):
            with pytest.raises(InvalidInput, match="timeout_s"):
                await events.take(1, timeout_s=timeout_s)  # type: ignore[arg-type]
    with pytest.raises(Closed):
        await events.take(1, timeout_s=5)
    await space.close()


@in_virtual_time
async def test_a_delivery_that_cannot_be_read_is_told_and_not_passed_over() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        await emit(space, 1)
        assert await take(events, 1) == [1]
        server = cluster.servers["a"]
        (stream,) = server.streams
        formal = next(iter(server.cursors))
        wrong = pb.Deliveries(formals=formal, columns=pb.Columns(ids=bytes(16)))
        stream.put(pb.ToReader(deliveries=wrong))
        with pytest.raises(InvalidInput) as caught:
            await take(events, 1)
        assert caught.value.field == "families"
    await space.close()


@in_virtual_time
async def test_what_a_program_waits_for_in_take_is_not_its_work() -> None:
    """Else μ comes out as λ, and everything is dropped."""
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    await emit(space, 1, 2)
    watch = space.watch(**TRUCKS, reader="dispatch", absent=respond_within(5))
    with replaced(formal, "monotonic_s", lambda: asyncio.get_running_loop().time()):
        async with watch as events:
            for _ in range(2):
                await events.take(1, timeout_s=10)
                await asyncio.sleep(0.5)
            assert await events.take(1, timeout_s=100) == []
            await emit(space, 3)
            await events.take(1, timeout_s=100)
            assert events._formal._pace is not None
            assert events._formal._pace.per_s == pytest.approx(2)
    await space.close()
