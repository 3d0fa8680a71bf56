"""A partitioned line (paper 002): each event goes to a member that owns a segment of its value, and a watch is kept by those
it overlaps, whatever the line was before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import TRUCKS, emit, put, registered_at, rest, space_of, take
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.past import History, Past
from utuple.model.condition import at_least, below, between
from utuple.wire import utuple_pb2 as pb

NAMES = ("home", "light", "heavy")
BY_KG = Layout((Axis("data.kg", (50,), (("light", "home"), ("heavy", "home"))),))


AFTER_HELP = (Past(NO_LAYOUT),)


def partitioned(epoch: int = 1, past: History = ()) -> Line:
    return replace(one_line(epoch, *NAMES), layout=BY_KG, past=past)


def event(kg: Any, **changes: Any) -> dict[str, Any]:
    return {**TRUCKS, "address": "t", "data": {"kg": kg}, **changes}


def went(cluster: TwinCluster) -> dict[str, list[Any]]:
    return {
        name: sorted((one.data or {})["kg"] for _, one, _ in server.log)
        for name, server in cluster.servers.items()
    }


@in_virtual_time
async def test_each_event_goes_to_an_owner_of_its_segment() -> None:
    cluster = TwinCluster(partitioned())
    space = await space_of(cluster, batch_rows=10).open()
    await space.emit_many(event(kg) for kg in range(100))
    await emit(space, *range(100, 120))
    found = went(cluster)
    assert sorted(kg for part in found.values() for kg in part) == list(range(120))
    assert max(found["light"]) < 50 <= min(found["heavy"])
    assert found["light"] and found["heavy"] and found["home"], "each takes some, by its wait"
    await space.close()


@in_virtual_time
async def test_an_event_without_a_value_may_go_to_any_owner() -> None:
    cluster = TwinCluster(partitioned())
    space = await space_of(cluster, batch_rows=1).open()
    await space.emit_many(event("text", address=f"t{number}") for number in range(30))
    assert all(went(cluster).values())
    await space.close()


@in_virtual_time
async def test_while_an_owner_is_down_the_home_takes_what_lies_in_its_segment() -> None:
    """Law 5: registering never stops. Nothing waits for a member that cannot take it."""
    cluster = TwinCluster(partitioned())
    cluster.down.add("heavy")
    space = await space_of(cluster, batch_rows=10, timeout_s=5.0).open()
    async with asyncio.timeout(2.0):
        await space.emit_many(event(kg) for kg in range(40, 60))
        await emit(space, 99)
    assert {*range(50, 60), 99} <= set(went(cluster)["home"])
    await space.close()


@in_virtual_time
async def test_while_every_owner_is_down_an_event_waits_and_is_not_tried_without_a_pause() -> None:
    cluster = TwinCluster(partitioned())
    cluster.down |= {"heavy", "home"}
    space = await space_of(cluster, timeout_s=30.0).open()
    emitting = asyncio.create_task(emit(space, 99))
    await asyncio.sleep(3.0)
    assert not emitting.done() and sum(cluster.connects.values()) < 100
    assert not went(cluster)["light"], "it does not keep what may match"
    cluster.down.clear()
    await emitting
    await space.close()


@in_virtual_time
async def test_an_event_that_was_under_way_follows_the_line_that_is_partitioned_meanwhile() -> None:
    cluster = TwinCluster(one_line(1, *NAMES))
    space = await space_of(cluster).open()
    await emit(space, 1)
    cluster.change(partitioned(2), told=NAMES)
    await asyncio.gather(*(emit(space, kg, address=f"t{kg}") for kg in range(40, 60)))
    found = went(cluster)
    assert max(found["light"]) < 50 <= min(kg for kg in found["heavy"] if kg != 1)
    await space.close()


@in_virtual_time
async def test_a_watch_is_kept_where_it_overlaps_and_read_where_it_does_not() -> None:
    """What lies elsewhere was stored before the line was partitioned."""
    cluster = TwinCluster(partitioned(past=AFTER_HELP))
    put(cluster.servers["light"], 70)
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, where={"kg": at_least(60)}) as heavy:
        async with space.watch(**TRUCKS, where={"kg": below(10)}):
            assert [len(registered_at(cluster, name)) for name in NAMES] == [2, 1, 1]
        assert await take(heavy, 1) == [70]
        await emit(space, 5, 61, 62)
        assert sorted(await rest(heavy)) == [61, 62]
    await space.close()


@in_virtual_time
async def test_where_nothing_is_left_of_earlier_layouts_a_watch_and_a_read_visit_keepers_alone() -> (
    None
):
    cluster = TwinCluster(partitioned())
    put(cluster.servers["heavy"], 70)
    cluster.down.add("light")
    space = await space_of(cluster, timeout_s=5.0).open()
    async with asyncio.timeout(3.0), space.watch(**TRUCKS, where={"kg": at_least(60)}) as heavy:
        assert await take(heavy, 1) == [70]
        found = [one.data["kg"] async for one in space.read(**TRUCKS, where={"kg": at_least(60)})]
        assert found == [70]
    assert not cluster.connects["light"]
    await space.close()


@in_virtual_time
async def test_who_may_hold_events_of_an_earlier_layout_is_visited_for_these_alone() -> None:
    """The boundary was at 20. `light` has said that it holds none of the events before."""
    before = Layout((Axis("data.kg", (20,), (("light", "home"), ("heavy", "home"))),))
    cluster = TwinCluster(partitioned(past=(Past(before, (("heavy", 9),)),)))
    put(cluster.servers["heavy"], 30)
    space = await space_of(cluster).open()
    found = [one.data["kg"] async for one in space.read(**TRUCKS, where={"kg": between(25, 35)})]
    assert found == [30]
    cluster.down.add("heavy")
    async with asyncio.timeout(2.0), space.watch(**TRUCKS, where={"kg": below(10)}):
        pass
    await space.close()


@in_virtual_time
async def test_a_server_that_forgets_what_is_not_in_its_share_is_left_and_not_asked_again() -> None:
    cluster = TwinCluster(one_line(1, *NAMES))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, where={"kg": at_least(60)}) as heavy:
        cluster.move(partitioned(2, AFTER_HELP))
        cluster.move(partitioned(3))
        await rest(heavy)
        light, calls = cluster.servers["light"], len(cluster.calls_to("light"))
        ((id_, cursor),) = light.cursors.items()
        del light.cursors[id_], light.templates[id_]
        unknown = pb.Attached(id=id_, unknown=True, generation=cursor.generation)
        cursor.stream.put(pb.ToReader(attached=unknown))
        await emit(space, 61)
        assert await rest(heavy, 30.0) == [61]
        assert not light.templates and not light.cursors and len(cluster.calls_to("light")) == calls
    await space.close()


@in_virtual_time
async def test_a_reader_gets_everything_once_from_help_to_partition_and_back() -> None:
    cluster = TwinCluster(one_line(1, *NAMES))
    space = await space_of(cluster).open()
    async with space.watch(**TRUCKS, where={"kg": at_least(50)}, reader="scales") as events:
        await emit(space, 51, 52)
        cluster.move(partitioned(2, AFTER_HELP))
        await emit(space, 53, 54)
        alone = one_line(3, "home", Member("light", False), Member("heavy", False))
        cluster.move(alone)
        await emit(space, 55)
        cluster.move(one_line(4, "home", "light", Member("heavy", False)))
        await emit(space, 56, 57)
        assert sorted(await rest(events)) == [51, 52, 53, 54, 55, 56, 57]
    await space.close()
