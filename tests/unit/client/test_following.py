"""Watches while their line changes: help, flags and split (docs/moving.md)."""

from __future__ import annotations

import asyncio

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import (
    TRUCKS,
    emit,
    nothing_comes,
    now_s,
    put,
    registered_at,
    rest,
    space_of,
    take,
)
from utuple.cluster.changes import flagged, helped, split
from utuple.cluster.line import Line, Member
from utuple.model.key import key_of

OFF_B = one_line(2, "a", Member("b", accumulatable=False))


# --- at every member of one epoch -------------------------------------------------------------------


@in_virtual_time
async def test_a_watch_counts_only_when_every_member_of_one_epoch_has_it() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, 0)
    newer = one_line(2, "a", "b")
    cluster.add_server("b", newer)
    cluster.change(newer, told=["a"])  # our client still knows epoch 1
    async with space.watch(**TRUCKS) as events:
        assert [len(server.templates) for server in cluster.servers.values()] == [1, 1]
        await emit(space, 1, 2, 3)
        assert sorted(await take(events, 4)) == [0, 1, 2, 3]
    await space.close()


@in_virtual_time
async def test_a_member_that_has_not_heard_of_the_epoch_is_asked_until_it_has() -> None:
    cluster = TwinCluster(one_line(2, "a", "b"))
    cluster.change(one_line(1, "a"), told=["b"])
    space = await space_of(cluster).open()
    opening = asyncio.create_task(space.watch(**TRUCKS).open())
    await asyncio.sleep(0.3)
    assert not opening.done()
    cluster.change(cluster.line, told=["b"])
    heard_s = now_s()
    await opening
    assert now_s() - heard_s <= 0.05
    assert [len(server.templates) for server in cluster.servers.values()] == [1, 1]
    assert registered_at(cluster, "a") == [2], "who has accepted is not asked again"
    await space.close()


@in_virtual_time
async def test_a_member_that_is_off_gives_its_stored_matches() -> None:
    cluster = TwinCluster(OFF_B)
    put(cluster.servers["b"], 1, 2)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        await emit(space, 3)
        assert sorted(await take(events, 3)) == [1, 2, 3]
        assert (cluster.servers["b"].templates, cluster.servers["b"].reads) == ({}, 1)
    await space.close()


@in_virtual_time
async def test_a_home_that_is_off_keeps_the_watch_and_streams_to_it() -> None:
    """Decision 28: it teaches the next helper."""
    cluster = TwinCluster(one_line(2, Member("a", accumulatable=False), "b"))
    home = cluster.servers["a"]
    put(home, 1, 2)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        assert (len(home.templates), len(home.cursors), home.reads) == (1, 1, 0)
        assert await take(events, 2) == [1, 2]
        cluster.cut("a")
        home.templates.clear()  # it expired while the home was away
        cluster.mend("a")
        await asyncio.sleep(3)
        assert (len(home.templates), len(home.cursors), home.reads) == (1, 1, 0)
    assert home.templates == {}, "and it is cancelled there"
    await space.close()


@in_virtual_time
async def test_a_named_reader_known_at_a_member_that_is_off_goes_on_there() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    put(cluster.servers["b"], 1, 2)
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 1, ack=True) == [1]
    cluster.move(OFF_B)
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 1) == [2]
        assert await nothing_comes(events)
    await space.close()


# --- help -------------------------------------------------------------------------------------------


@in_virtual_time
async def test_readers_follow_a_line_that_changes_under_them() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        cluster.move(helped(cluster.line, "a", "b", memory=True))
        await asyncio.sleep(1)
        assert len(cluster.servers["b"].cursors) == 1
        await emit(space, 1)
        assert await take(events, 1) == [1]
        assert cluster.servers["a"].reads == 0, "it is attached there already"
    await space.close()


@in_virtual_time
async def test_a_helper_is_read_from_its_beginning_and_repeats_are_dropped() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    put(cluster.servers["a"], 1, 2)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        newer = helped(cluster.line, "a", "b")
        helper = cluster.add_server("b", newer)
        helper.add(cluster.servers["a"].log[0][1])  # its sender never had the answer of a
        put(helper, 3)  # by a client that was told of the epoch before us
        cluster.move(newer)
        assert sorted(await rest(events)) == [1, 2, 3]
    await space.close()


@in_virtual_time
async def test_help_costs_the_old_members_nothing() -> None:
    """They keep the watch: only the helper is asked."""
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS):
        cluster.move(helped(cluster.line, "a", "c"))
        await asyncio.sleep(1)
        cluster.move(helped(cluster.line, "a", "d"))
        await asyncio.sleep(1)
        assert [registered_at(cluster, name) for name in "abcd"] == [[1], [1], [2], [3]]
        attaches = [m for m in cluster.servers["a"].heard if m.HasField("attach")]
        assert len(attaches) == 1
    await space.close()


@in_virtual_time
async def test_many_watches_follow_a_few_at_a_time() -> None:
    """Deliveries are not held up by thousands of watches that all have something to do."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    watches = [space.watch(**TRUCKS) for _ in range(250)]
    await asyncio.gather(*(watch.open() for watch in watches))
    newer = helped(cluster.line, "a", "b")
    cluster.add_server("b", newer)
    cluster.change(newer, told=["a"])
    wire = cluster.lines_on_the_wire(newer)
    space._parts.lines.hear(wire.lines, wire.servers)
    assert sum(watch._following is not None for watch in watches) == 100
    await watches[-1].close()  # it listens no more when its turn comes
    await asyncio.sleep(1)
    assert len(cluster.servers["b"].cursors) == 249
    await space.close()


@in_virtual_time
async def test_who_has_missed_an_epoch_registers_everywhere_again() -> None:
    """A member may have gone off and on in between."""
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS):
        cluster.move(one_line(3, "a", "b"))
        await asyncio.sleep(1)
        assert [registered_at(cluster, name) for name in "ab"] == [[1, 3], [1, 3]]
    await space.close()


@in_virtual_time
async def test_a_helper_that_has_not_heard_yet_is_attached_as_soon_as_it_has() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        newer = helped(cluster.line, "a", "b")
        helper = cluster.add_server("b", None)
        cluster.change(newer, told=["a"])
        cluster.announce(newer)
        await asyncio.sleep(0.2)
        await emit(space, 1)
        assert await take(events, 1) == [1], "the old members go on meanwhile"
        cluster.change(newer, told=["b"])
        put(helper, 2)
        heard_s = now_s()
        assert await take(events, 1) == [2]
        assert now_s() - heard_s <= 0.05
    await space.close()


@in_virtual_time
async def test_a_silent_new_member_does_not_keep_the_others_from_being_read() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        cluster.down.add("b")
        cluster.move(one_line(3, "a", "b", "c"))
        await asyncio.sleep(1)
        put(cluster.servers["c"], 1)
        assert await take(events, 1) == [1]
        cluster.mend("b")
        await asyncio.sleep(30)
        put(cluster.servers["b"], 2)
        assert await take(events, 1) == [2]
        assert registered_at(cluster, "c") == [3]
    await space.close()


@in_virtual_time
async def test_a_watch_that_was_not_told_of_a_new_line_finds_out_by_itself() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        cluster.line = one_line(2, "a", "b")
        cluster.add_server("b", cluster.line)
        cluster.change(cluster.line, told=["a"])
        await asyncio.sleep(40)
        assert len(cluster.servers["b"].cursors) == 1
        await emit(space, *range(6))
        assert sorted(await take(events, 6)) == list(range(6))
    await space.close()


@in_virtual_time
async def test_a_member_whose_address_comes_later_is_attached_when_it_is_known() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        cluster.hidden.add("b")
        cluster.move(helped(cluster.line, "a", "b"))
        began_s = now_s()
        await emit(space, *range(8))
        assert now_s() == began_s, "events go to the member that is known"
        assert await take(events, 8) == list(range(8))
        cluster.hidden.clear()  # the assignment manager has heard where it is
        await asyncio.sleep(3)
        put(cluster.servers["b"], 9)
        assert await take(events, 1) == [9]
    await space.close()


# --- flags ------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_member_that_goes_off_and_on_again_gets_the_watch_again() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        put(cluster.servers["b"], 1)
        cluster.move(flagged(cluster.line, "b", accumulatable=False))
        await asyncio.sleep(1)
        put(cluster.servers["b"], 2)  # of a client with the older line, just before it heard
        cluster.move(flagged(cluster.line, "b", accumulatable=True))
        await asyncio.sleep(1)
        put(cluster.servers["b"], 3)
        assert await rest(events) == [1, 2, 3]
        assert registered_at(cluster, "b") == [1, 3]
        assert cluster.servers["b"].reads == 0
    await space.close()


@in_virtual_time
async def test_a_watch_opened_while_a_member_was_off_is_brought_there_when_it_goes_on() -> None:
    cluster = TwinCluster(OFF_B)
    put(cluster.servers["b"], 1, 2)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        assert await take(events, 2) == [1, 2]
        cluster.move(flagged(cluster.line, "b", accumulatable=True))
        await asyncio.sleep(1)
        put(cluster.servers["b"], 3)
        assert await rest(events) == [3], "what was read before is not given again"
        assert registered_at(cluster, "b") == [3]
    await space.close()


@in_virtual_time
async def test_a_member_that_stays_off_is_read_once() -> None:
    cluster = TwinCluster(OFF_B)
    put(cluster.servers["b"], 1)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS) as events:
        for helper in "cde":
            cluster.move(helped(cluster.line, "a", helper))
            await asyncio.sleep(1)
        assert cluster.servers["b"].reads == 1
        cluster.move(Line(cluster.line.section, 9, cluster.line.members))
        put(cluster.servers["b"], 2)  # it was on in an epoch that we have missed
        assert sorted(await rest(events)) == [1, 2]
        assert cluster.servers["b"].reads == 2
    await space.close()


@in_virtual_time
async def test_what_a_reader_has_not_acknowledged_of_a_member_that_was_off_comes_again() -> None:
    """It was read there, not streamed; then the member goes on and streams it anew."""
    cluster = TwinCluster(OFF_B)
    put(cluster.servers["b"], 1, 2)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await take(events, 1, ack=True) == [1]
        cluster.move(flagged(cluster.line, "b", accumulatable=True))
        await asyncio.sleep(1)
        assert await take(events, 1) == [2], "in the program's hands, and the program ends"
    async with space.watch(**TRUCKS, reader="dispatch") as events:
        assert await rest(events) == [2]
    await space.close()


# --- split ------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_watch_follows_its_key_into_the_half_of_a_split() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    put(cluster.servers["a"], 1)
    async with space.watch(**TRUCKS) as events, space.watch(subject="c", type="d") as others:
        mine, theirs = key_of("truck", "load"), key_of("c", "d")
        halves = split(cluster.line, max(mine, theirs), "a", "z")
        half = next(half for half in halves if mine in half.section)
        cluster.move(half)
        await asyncio.sleep(1)
        put(cluster.servers["b"], 2)
        await emit(space, 3, 4, 5)
        assert sorted(await rest(events)) == [1, 2, 3, 4, 5]
        assert others._line is not None and others._line.epoch == 1, "its half is as it was"
        assert ("z" in events._formal.servers) is (mine > theirs)
    await space.close()
