"""One hot key with several members that are on: its batches go to all of them, in proportion to their speed,
and one that is slow or has stopped does not hold up the others."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import TRUCKS, emit, space_of
from utuple.model.columns import columns_of

EVENT = {**TRUCKS, "address": "t", "data": {"kg": 1}}


def now_s() -> float:
    return asyncio.get_running_loop().time()


def many(count: int) -> list[dict[str, Any]]:
    return [EVENT] * count


def counts(cluster: TwinCluster) -> dict[str, int]:
    return {name: len(server.log) for name, server in cluster.servers.items()}


@in_virtual_time
async def test_batches_of_one_key_go_to_all_its_members_at_the_same_time() -> None:
    """As many at once as the members take calls."""
    names = [f"s{number}" for number in range(8)]
    cluster = TwinCluster(one_line(1, *names))
    events = {name: cluster.hold(name) for name in names}
    space = await space_of(cluster, batch_rows=10).open()
    await space._parts.lines.line(0, math.inf)
    sending = asyncio.create_task(space.emit_many(many(500)))
    await asyncio.sleep(0.1)
    assert {name: len(cluster.calls_to(name)) for name in names} == dict.fromkeys(names, 2)
    for event in events.values():
        event.set()
    assert await sending == 500
    assert sum(counts(cluster).values()) == 500
    await space.close()


@in_virtual_time
async def test_a_batch_is_counted_before_the_next_is_routed() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"), speeds={"a": 100.0, "b": 100.0})
    space = await space_of(cluster, batch_rows=10).open()
    await space.emit_many(many(40))
    assert counts(cluster) == {"a": 20, "b": 20}
    await space.close()


@in_virtual_time
async def test_what_an_answer_says_of_the_queue_and_what_is_on_its_way_is_not_counted_twice() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"), speeds={"a": 10.0})
    space = await space_of(cluster, batch_rows=10, few_rows=10, timeout_s=60.0).open()
    sending = asyncio.create_task(space.emit_many(many(40)))
    await asyncio.sleep(1.5)  # the first of four is answered, two are on their way
    standing = space._parts.batcher.standing(["a"])["a"]
    assert standing.load is not None and standing.load.queued == 10
    assert (standing.counted, standing.in_flight) == (10, 30)
    await sending
    await space.close()


@pytest.mark.parametrize("members", [1, 2, 4, 8])
@in_virtual_time
async def test_throughput_of_one_key_grows_with_its_members(members: int) -> None:
    names = [f"s{number}" for number in range(members)]
    cluster = TwinCluster(one_line(1, *names), speeds=dict.fromkeys(names, 1_000.0))
    space = await space_of(cluster, batch_rows=50, timeout_s=100.0).open()
    await space.emit_many(many(200 * members))  # every member has said how fast it is
    began_s = now_s()
    await space.emit_many(many(2_000 * members))
    per_s = 2_000 * members / (now_s() - began_s)
    assert per_s >= 0.95 * 1_000 * members
    await space.close()


@in_virtual_time
async def test_batches_are_spread_in_proportion_to_speed() -> None:
    speeds = {"a": 200.0, "b": 400.0, "c": 800.0, "d": 1_600.0}
    cluster = TwinCluster(one_line(1, *speeds), speeds=speeds)
    space = await space_of(cluster, batch_rows=20, timeout_s=100.0).open()
    await space.emit_many(many(9_000))
    for name, speed in speeds.items():
        share = counts(cluster)[name] / 9_000
        assert share == pytest.approx(speed / sum(speeds.values()), rel=0.15)
    assert now_s() <= 9_000 / sum(speeds.values()) * 1.1
    await space.close()


@in_virtual_time
async def test_single_events_without_order_are_spread_in_proportion_to_speed() -> None:
    speeds = {"a": 100.0, "b": 900.0}
    cluster = TwinCluster(one_line(1, *speeds), speeds=speeds)
    space = await space_of(cluster, timeout_s=100.0, choice="unordered").open()

    async def sender() -> None:
        for _ in range(20):
            await emit(space, 1)

    await asyncio.gather(*(sender() for _ in range(100)))
    assert counts(cluster)["a"] / 2_000 == pytest.approx(0.1, rel=0.35)
    await space.close()


@in_virtual_time
async def test_single_events_of_one_address_go_to_one_member_while_the_line_stands_still() -> None:
    cluster = TwinCluster(one_line(1, "a", "b", "c"))
    space = await space_of(cluster).open()
    for number in range(60):
        await emit(space, number, address=f"t{number % 12}")
    went = {
        name: {columns_of([event]).addresses[0] for _, event, _ in server.log}
        for name, server in cluster.servers.items()
    }
    assert all(went.values()) and sum(map(len, went.values())) == 12
    await space.close()


@in_virtual_time
async def test_ids_count_up_in_the_order_of_emission() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await emit(space, *range(50))
    await space.emit_many(many(300))
    ids = [event.id for _, event, _ in cluster.servers["a"].log]
    assert ids == sorted(ids) and len(set(ids)) == 350
    await space.close()


@pytest.mark.parametrize(
    ("choice", "least_over_random"),
    [("random", 0.9), ("response-time", 1.1), ("adaptive", 1.1)],
)
@in_virtual_time
async def test_with_one_slow_member_policies_that_look_beat_the_random_one(
    choice: str, least_over_random: float
) -> None:
    """BlueDove, figure 7."""
    per_s = {}
    for policy in ("random", choice):
        speeds = {"a": 1_000.0, "b": 1_000.0, "c": 1_000.0, "slow": 200.0}
        cluster = TwinCluster(one_line(1, *speeds), speeds=speeds)
        space = await space_of(cluster, batch_rows=20, timeout_s=1_000.0, choice=policy).open()
        began_s = now_s()
        await space.emit_many(many(4_000))
        per_s[policy] = 4_000 / (now_s() - began_s)
        await space.close()
    assert per_s[choice] / per_s["random"] >= least_over_random


@in_virtual_time
async def test_a_member_that_has_stopped_holds_what_it_was_sent_and_nothing_else() -> None:
    cluster = TwinCluster(one_line(1, "a", "b", "c"), speeds={"b": 1_000.0, "c": 1_000.0})
    go = cluster.hold("a")
    space = await space_of(cluster, batch_rows=50, timeout_s=60.0).open()
    sending = asyncio.create_task(space.emit_many(many(10_000)))
    await asyncio.sleep(6)
    assert sum(counts(cluster).values()) >= 10_000 - 2 * 50
    assert len(cluster.calls_to("a")) <= 2
    go.set()
    assert await sending == 10_000
    assert sum(counts(cluster).values()) == 10_000
    await space.close()


@in_virtual_time
async def test_senders_of_single_events_go_on_when_one_member_has_stopped() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"), speeds={"a": 10_000.0, "b": 10_000.0})
    space = await space_of(cluster, timeout_s=60.0).open()
    await asyncio.gather(*(emit(space, 1, 2, 3) for _ in range(20)))
    cluster.hold("a")
    done = [0] * 50

    async def sender(number: int) -> None:
        for _ in range(100):
            await emit(space, 1)
            done[number] += 1

    senders = [asyncio.create_task(sender(number)) for number in range(50)]
    await asyncio.sleep(5)
    stuck = [count for count in done if count < 100]
    assert len(stuck) <= 25, "only those whose event was on its way to it"
    for task in senders:
        task.cancel()
    await asyncio.gather(*senders, return_exceptions=True)
    await space.close()


@in_virtual_time
async def test_what_waits_behind_a_call_that_is_not_answered_goes_elsewhere() -> None:
    """It was never sent, so it may."""
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster, timeout_s=60.0, calls_in_flight=1, few_calls_in_flight=1).open()
    cluster.hold("a")
    cluster.hold("b")
    emits = [asyncio.create_task(emit(space, number)) for number in range(40)]
    await asyncio.sleep(0.2)
    cluster.held.pop("b").set()
    await asyncio.sleep(1)
    stuck = [task for task in emits if not task.done()]
    assert len(stuck) == 1
    assert len(cluster.servers["b"].log) == 39
    cluster.held["a"].set()
    await asyncio.gather(*emits)
    await space.close()


@in_virtual_time
async def test_what_has_nowhere_else_to_go_waits_for_its_server() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, timeout_s=60.0, calls_in_flight=1, few_calls_in_flight=1).open()
    go = cluster.hold("a")
    emits = [asyncio.create_task(emit(space, 0))]
    await asyncio.sleep(1)
    emits += [asyncio.create_task(emit(space, number)) for number in range(1, 10)]
    await asyncio.sleep(5)
    go.set()
    await asyncio.gather(*emits)
    assert [len(request.events.ids) // 16 for request in cluster.calls_to("a")] == [1, 9]
    await space.close()
