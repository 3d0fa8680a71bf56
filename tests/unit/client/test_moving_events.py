"""Events while load moves: they never wait for a move when some member that is on accepts them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import emit, space_of
from utuple.client.space import Space
from utuple.cluster.changes import helped
from utuple.cluster.line import Line, Member
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.section import Section

A_FEW_TENS_OF_MS = 0.05


def now_s() -> float:
    return asyncio.get_running_loop().time()


def kgs(cluster: TwinCluster, name: str) -> list[int]:
    return [utuple.data["kg"] for _, utuple, _ in cluster.servers[name].log if utuple.data]


@in_virtual_time
async def test_a_member_with_an_older_line_is_passed_over_at_once() -> None:
    cluster = TwinCluster(one_line(2, "a", "b", "c"))
    cluster.change(one_line(1, "a", "b", "c"), told=["a", "b"])
    space = await space_of(cluster).open()
    await emit(space, *range(8))
    assert now_s() == 0.0
    assert kgs(cluster, "c") == list(range(8))
    await space.close()


@in_virtual_time
async def test_a_helper_that_has_not_heard_of_its_epoch_is_passed_over_at_once() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, choice="unordered").open()
    await emit(space, 0)
    newer = helped(cluster.line, "a", "b")
    cluster.add_server("b", None)
    cluster.change(newer, told=["a"])
    await emit(space, *range(1, 9))
    assert now_s() == 0.0
    assert kgs(cluster, "a") == list(range(9))
    assert len(cluster.calls_to("b")) == 1, "and not asked again for every event"
    cluster.change(newer, told=["b"])
    await asyncio.sleep(A_FEW_TENS_OF_MS)
    await emit(space, *range(9, 30))
    assert kgs(cluster, "b"), "it is tried again soon"
    await space.close()


@in_virtual_time
async def test_when_nobody_has_heard_yet_an_event_waits_a_little_at_a_time() -> None:
    """Help for memory: the old member is off, and the helper has not heard."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, 0)
    newer = helped(cluster.line, "a", "b", memory=True)
    cluster.add_server("b", None)
    cluster.change(newer, told=["a"])
    sending = asyncio.create_task(emit(space, 1))
    await asyncio.sleep(0.4)
    assert not sending.done()
    cluster.change(newer, told=["b"])
    heard_s = now_s()
    await sending
    assert now_s() - heard_s <= A_FEW_TENS_OF_MS
    await space.close()


@in_virtual_time
async def test_a_dead_control_plane_does_not_hold_up_events_that_another_member_takes() -> None:
    """Law 6: asking an assignment manager happens beside, whatever becomes of it."""
    cluster = TwinCluster(one_line(2, "a", "b"))
    cluster.change(one_line(1, "a", "b"), told=["a"])
    space = await space_of(cluster).open()
    await emit(space, 0)
    cluster.hold_lookups = asyncio.Event()
    await emit(space, *range(1, 9))
    assert now_s() == 0.0
    assert sorted(kgs(cluster, "b")) == list(range(9))
    await space.close()


@in_virtual_time
async def test_an_event_goes_on_as_soon_as_a_newer_line_is_heard_from_anyone() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, 0)
    cluster.cut("a")
    sending = asyncio.create_task(emit(space, 1))
    await asyncio.sleep(3)  # it waits longer and longer by now
    cluster.line = one_line(2, Member("a", accumulatable=False), "b")
    cluster.add_server("b", cluster.line)
    wire = cluster.lines_on_the_wire(cluster.line)
    space._parts.lines.hear(wire.lines, wire.servers)
    heard_s = now_s()
    await sending
    assert now_s() == heard_s
    await space.close()


@in_virtual_time
async def test_an_overloaded_member_is_left_for_another() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    cluster.full.add("a")
    space = await space_of(cluster).open()
    await emit(space, *range(8))
    assert (now_s(), kgs(cluster, "b")) == (0.0, list(range(8)))
    assert len(cluster.calls_to("a")) <= 1
    await space.close()


@in_virtual_time
async def test_an_unreachable_member_is_tried_now_and_then_and_not_for_every_event() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    cluster.cut("a")
    space = await space_of(cluster).open()
    await emit(space, *range(50))
    assert len(cluster.calls_to("a")) <= 1
    cluster.mend("a")
    await asyncio.sleep(1)
    await emit(space, *range(50, 100))
    assert kgs(cluster, "a")
    await space.close()


@in_virtual_time
async def test_a_member_that_answers_again_is_used_again_at_once() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    cluster.losing = {"a": 1}
    space = await space_of(cluster).open()
    while cluster.losing["a"]:
        await emit(space, 0)
    assert kgs(cluster, "a") == [0], "it gave its answer when it was asked again"
    began_s = now_s()
    await emit(space, *range(1, 20))
    assert (now_s(), len(kgs(cluster, "a")) > 1) == (began_s, True)
    await space.close()


@pytest.mark.parametrize("choice", ["adaptive", "random", "least-subscriptions", "response-time"])
@in_virtual_time
async def test_every_policy_gets_events_through(choice: str) -> None:
    cluster = TwinCluster(one_line(1, "a", "b", "c"))
    space = await space_of(cluster, choice=choice).open()
    cluster.cut("a")
    await emit(space, *range(30))
    assert sorted(kgs(cluster, "b") + kgs(cluster, "c")) == list(range(30))
    await space.close()


@in_virtual_time
async def test_least_subscriptions_sends_events_where_fewer_efs_are() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster, choice="least-subscriptions").open()
    async with space.watch(subject="truck", type="load"):
        cluster.servers["a"].templates[b"more"] = next(
            iter(cluster.servers["a"].templates.values())
        )
        await emit(space, *range(20))
        assert len(kgs(cluster, "b")) >= 19
        del cluster.servers["a"].templates[b"more"]
    await space.close()


LOWER, UPPER = Section(0, HASH_SPACE // 2), Section(HASH_SPACE // 2, HASH_SPACE)


def event_in(section: Section, number: int) -> dict[str, Any]:
    types = (f"load-{n}" for n in range(100))
    type_ = next(one for one in types if key_of("truck", one) in section)
    return {"subject": "truck", "type": type_, "address": "t", "data": {"kg": number}}


def knows(space: Space, cluster: TwinCluster, *lines: Line) -> None:
    for line in lines:
        wire = cluster.lines_on_the_wire(line)
        space._parts.lines.hear(wire.lines, wire.servers)


@in_virtual_time
async def test_events_of_one_line_do_not_hurry_because_another_line_has_more_members() -> None:
    """Seed 300056: a silent lonely member was asked again and again without a wait."""
    lonely = Line(UPPER, 1, (Member("b"),))
    cluster = TwinCluster(Line(LOWER, 1, (Member("a"), Member("c"))))
    cluster.add_server("b", lonely)
    space = await space_of(cluster).open()
    knows(space, cluster, cluster.line, lonely)
    cluster.cut("b")
    sending = [
        asyncio.create_task(space.emit(**event_in(section, number)))
        for number, section in enumerate([LOWER, UPPER])
    ]
    for _ in range(100):
        await asyncio.sleep(0)
    assert kgs(cluster, "a") + kgs(cluster, "c") == [0]
    assert 1 <= len(cluster.calls_to("b")) <= 2
    cluster.mend("b")
    await asyncio.gather(*sending)
    assert kgs(cluster, "b") == [1]
    await space.close()


@in_virtual_time
async def test_a_silent_member_of_two_lines_makes_the_client_ask_for_both() -> None:
    """Seed 300056: only the line of the first family was looked up again."""
    stays, old = Line(LOWER, 1, (Member("b"),)), Line(UPPER, 1, (Member("b"),))
    cluster = TwinCluster(Line(UPPER, 2, (Member("d"),)))
    cluster.add_server("b", stays)
    space = await space_of(cluster).open()
    knows(space, cluster, stays, old)
    cluster.cut("b")
    sending = asyncio.create_task(space.emit_many([event_in(LOWER, 1), event_in(UPPER, 2)]))
    await asyncio.sleep(3)
    assert kgs(cluster, "d") == [2]
    cluster.mend("b")
    assert await sending == 2
    await space.close()
