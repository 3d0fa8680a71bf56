"""Registrations on their way: batches, back-pressure, lost answers, changed lines."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.routing.outcome import PendingEvents
from utuple.client.sending.emit import MOST_REFUSED
from utuple.client.space import Space
from utuple.cluster.line import Member
from utuple.errors import (
    Closed,
    InvalidInput,
    NotRegistered,
    OutcomeUnknown,
    SomeRefused,
    Unavailable,
)

NOW_US = 1_800_000_000_000_000
CONFIG = Config(timeout_s=10.0)


def space_of(cluster: TwinCluster, config: Config = CONFIG) -> Space:
    return Space(put_together([MANAGER], config, cluster, random.Random(7), lambda: NOW_US))


def event(number: int = 0, **changes: Any) -> dict[str, Any]:
    return {"subject": "truck", "type": "load", "address": "t", "data": {"kg": number}, **changes}


def kgs(cluster: TwinCluster, name: str) -> list[int]:
    return [utuple.data["kg"] for _, utuple, _ in cluster.servers[name].log if utuple.data]


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def emit_in_turn(space: Space, count: int) -> list[asyncio.Task[None]]:
    """Each in a turn of the event loop of its own."""
    emits = []
    for number in range(count):
        emits.append(asyncio.create_task(space.emit(**event(number))))
        await settle()
    return emits


@in_virtual_time
async def test_what_is_emitted_in_one_turn_of_the_event_loop_leaves_as_one_call() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await asyncio.gather(*(space.emit(**event(number)) for number in range(100)))
    assert [len(request.events.ids) // 16 for request in cluster.calls_to("a")] == [100]
    assert kgs(cluster, "a") == list(range(100))
    await space.close()


@in_virtual_time
async def test_of_those_in_one_call_each_hears_its_own_fate() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, Config(timeout_s=2.0)).open()
    given = [event(0), event(1, lifetime_s=-1), event(2, position=(91.0, 0.0)), event(3)]
    emits = [space.emit(**one) for one in given]
    first, second, third, last = await asyncio.gather(*emits, return_exceptions=True)
    assert (first, last) == (None, None)
    assert isinstance(second, InvalidInput) and second.field == "lifetime_s"
    assert isinstance(third, InvalidInput) and third.field == "position.latitude"
    assert kgs(cluster, "a") == [0, 3]
    cluster.hold("a")
    lost = await asyncio.gather(*(space.emit(**event(n)) for n in (4, 5)), return_exceptions=True)
    kept = [error.pending for error in lost if isinstance(error, OutcomeUnknown)]
    assert all(isinstance(one, PendingEvents) and len(one.columns) == 1 for one in kept)
    assert len(kept) == 2
    await space.close()


@in_virtual_time
async def test_who_gives_up_waiting_does_not_disturb_others_of_the_same_call() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    go = cluster.hold("a")
    emits = [asyncio.create_task(space.emit(**event(number))) for number in range(3)]
    await settle()
    emits[1].cancel()
    go.set()
    await asyncio.gather(emits[0], emits[2])
    assert emits[1].cancelled()
    await space.close()


@in_virtual_time
async def test_what_queues_while_calls_are_on_their_way_leaves_as_one_batch() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await space.emit(**event(-1))
    go = cluster.hold("a")
    emits = await emit_in_turn(space, 100)
    go.set()
    await asyncio.gather(*emits)
    sizes = [len(request.events.ids) // 16 for request in cluster.calls_to("a")]
    few = CONFIG.few_calls_in_flight
    assert sizes == [1, *[1] * few, 100 - few]
    assert sorted(kgs(cluster, "a")) == list(range(-1, 100))
    await space.close()


@in_virtual_time
async def test_when_many_rows_are_on_their_way_fewer_calls_are() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await space.emit(**event(-1))
    go = cluster.hold("a")
    first = asyncio.create_task(space.emit_many([event(n) for n in range(CONFIG.few_rows)]))
    await settle()
    emits = await emit_in_turn(space, 10)
    go.set()
    await asyncio.gather(first, *emits)
    sizes = [len(request.events.ids) // 16 for request in cluster.calls_to("a")]
    assert sizes == [1, CONFIG.few_rows, 1, 9]
    await space.close()


@in_virtual_time
async def test_a_batch_holds_no_more_rows_than_its_limit() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, Config(batch_rows=10)).open()
    assert await space.emit_many(event(number) for number in range(35)) == 35
    assert [len(request.events.ids) // 16 for request in cluster.calls_to("a")] == [10, 10, 10, 5]
    await space.close()


@in_virtual_time
async def test_large_events_are_sent_in_smaller_batches() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, Config(batch_bytes=1000)).open()
    await space.emit_many([event(0, data={"text": "x" * 300, "kg": 0}) for _ in range(10)])
    assert max(len(request.events.ids) // 16 for request in cluster.calls_to("a")) == 3
    assert len(kgs(cluster, "a")) == 10
    await space.close()


@in_virtual_time
async def test_a_full_queue_makes_emit_wait() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(
        cluster, Config(queued_rows=5, calls_in_flight=1, few_calls_in_flight=1)
    ).open()
    await space.emit(**event(-1))
    go = cluster.hold("a")
    emits = await emit_in_turn(space, 20)
    go.set()
    await asyncio.gather(*emits)
    assert len(kgs(cluster, "a")) == 21
    rows = [len(request.events.ids) // 16 for request in cluster.calls_to("a")]
    assert max(rows) == 5, "what had queued while the server was silent left as one call"
    await space.close()


@in_virtual_time
async def test_an_event_that_never_left_the_queue_is_surely_not_registered() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(
        cluster, Config(timeout_s=2.0, calls_in_flight=1, few_calls_in_flight=1)
    ).open()
    await space.emit(**event(0))
    cluster.hold("a")
    stuck = asyncio.create_task(space.emit(**event(1)))
    await settle()
    queued = asyncio.create_task(space.emit(**event(2)))
    with pytest.raises(OutcomeUnknown):
        await stuck
    with pytest.raises(NotRegistered):
        await queued
    await space.close()


@in_virtual_time
async def test_an_event_whose_turn_comes_too_late_is_not_sent() -> None:
    """Its answer would hardly come in time: "not registered" is better to hear than that nobody knows."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(
        cluster, Config(timeout_s=8.0, calls_in_flight=1, few_calls_in_flight=1)
    ).open()
    await space.emit(**event(0))
    go = cluster.hold("a")
    first = asyncio.create_task(space.emit(**event(1)))
    await settle()
    queued = asyncio.create_task(space.emit(**event(2)))
    await asyncio.sleep(5)
    late = asyncio.create_task(space.emit(**event(3)))
    await settle()
    go.set()
    await asyncio.gather(first, late)
    with pytest.raises(NotRegistered, match="it was not sent"):
        await queued
    assert kgs(cluster, "a") == [0, 1, 3]
    await space.close()


@in_virtual_time
async def test_a_call_lasts_no_longer_than_the_first_of_its_callers_waits() -> None:
    """The server is told so, and refuses in time what it would not answer in time."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.full.add("a")
    first = asyncio.create_task(space.emit(**event(1)))
    await asyncio.sleep(0.45)
    cluster.full.clear()
    await asyncio.gather(first, *await emit_in_turn(space, 2))
    assert cluster.timeouts_s[0] == pytest.approx(CONFIG.timeout_s)
    assert cluster.timeouts_s[1] == pytest.approx(CONFIG.timeout_s)
    assert cluster.timeouts_s[-1] < CONFIG.timeout_s - 0.45
    await space.close()


@in_virtual_time
async def test_a_lost_answer_is_asked_for_again_as_a_retry_and_registered_once() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    for name in ("a", "b"):
        cluster.losing[name] = 1
    await space.emit(**event(1))
    first, second = [(name, request.retry) for name, request in cluster.calls]
    assert first[1] is False
    assert second == (first[0], True)
    assert len(cluster.servers["a"].log) + len(cluster.servers["b"].log) == 1
    await space.close()


@in_virtual_time
async def test_a_member_that_stays_silent_with_our_event_is_left_for_another() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    cluster.losing["a"] = 1000
    for number in range(4):  # sooner or later one of them goes to a first
        await space.emit(**event(number))
    assert kgs(cluster, "b") == list(range(4))
    assert any(request.retry for request in cluster.calls_to("b"))
    await space.close()


@in_virtual_time
async def test_a_member_that_hangs_is_left_for_another_before_the_time_is_over() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster, Config(timeout_s=30.0, attempt_s=5.0)).open()
    cluster.hold("a")
    for number in range(4):
        await space.emit(**event(number))
    assert kgs(cluster, "b") == list(range(4))
    await space.close()


@in_virtual_time
async def test_an_unreachable_member_costs_no_wait_if_there_is_another() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    cluster.cut("a")
    began_s = asyncio.get_running_loop().time()
    for number in range(10):
        await space.emit(**event(number))
    assert asyncio.get_running_loop().time() == began_s
    assert kgs(cluster, "b") == list(range(10))
    await space.close()


@in_virtual_time
async def test_without_any_server_the_error_is_not_registered_and_comes_in_time() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.cut("a")
    with pytest.raises(Unavailable, match="nothing listens at a"):
        await space.emit(**event())
    assert asyncio.get_running_loop().time() <= CONFIG.timeout_s
    await space.close()


@in_virtual_time
async def test_an_unknown_outcome_can_be_tried_again_with_the_same_ids() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.losing["a"] = 1000
    with pytest.raises(OutcomeUnknown) as caught:
        await space.emit_many(event(number) for number in range(3))
    cluster.losing["a"] = 0
    assert await space.retry(caught.value) == 3
    assert kgs(cluster, "a") == [0, 1, 2]
    await space.close()


@in_virtual_time
async def test_only_errors_of_the_verbs_can_be_tried_again() -> None:
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    with pytest.raises(InvalidInput):
        await space.retry(OutcomeUnknown("someone else's"))
    await space.close()


@in_virtual_time
async def test_a_refusal_with_a_newer_line_is_followed_without_a_lookup() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await space.emit(**event(0))
    newer = one_line(2, Member("a", accumulatable=False), "b")
    cluster.add_server("b", newer)
    cluster.change(newer, told=["a", "b"])
    asked = cluster.lookups
    await space.emit(**event(1))
    assert (kgs(cluster, "a"), kgs(cluster, "b")) == ([0], [1])
    assert cluster.lookups == asked
    await space.close()


@in_virtual_time
async def test_a_server_that_serves_it_no_more_sends_us_back_to_the_manager() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await space.emit(**event(0))
    cluster.line = one_line(2, "b")
    cluster.add_server("b", cluster.line)
    cluster.change(cluster.line, told=["a"])
    await space.emit(**event(1))
    assert kgs(cluster, "b") == [1]
    await space.close()


@in_virtual_time
async def test_a_member_that_has_not_heard_of_the_epoch_is_passed_over() -> None:
    cluster = TwinCluster(one_line(2, "a", "b"))
    cluster.change(one_line(1, "a", "b"), told=["a"])
    space = await space_of(cluster).open()
    for number in range(8):
        await space.emit(**event(number))
    assert sorted(kgs(cluster, "b")) == list(range(8))
    await space.close()


@in_virtual_time
async def test_without_managers_known_lines_go_on() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await space.emit(**event(0))
    cluster.managers_up = False
    await space.emit(**event(1))
    assert kgs(cluster, "a") == [0, 1]
    await space.close()


@in_virtual_time
async def test_concurrent_lookups_leave_as_one() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    asked = cluster.lookups
    await asyncio.gather(*(space.emit(**event(n, subject=f"s{n}")) for n in range(50)))
    assert cluster.lookups - asked <= 2
    await space.close()


@in_virtual_time
async def test_no_manager_at_all_is_said_soon_and_says_what_to_do() -> None:
    cluster = TwinCluster(one_line(1, "a"), managers_up=False)
    with pytest.raises(Unavailable, match="utuple up"):
        await space_of(cluster).open()
    assert asyncio.get_running_loop().time() <= CONFIG.first_contact_s


@in_virtual_time
async def test_one_bad_event_among_10_000_is_refused_by_its_number_and_the_others_are_registered() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    events = [event(number) for number in range(10_000)]
    events[4_017]["position"] = (91.0, 139.0)
    with pytest.raises(SomeRefused, match=r"1 of 10000 .*events\[4017\]\.position.*: 91") as caught:
        await space.emit_many(iter(events))
    assert list(caught.value.refused) == [4_017]
    assert caught.value.registered == 9_999
    assert kgs(cluster, "a") == [number for number in range(10_000) if number != 4_017]
    await space.close()


@in_virtual_time
async def test_each_bad_event_has_its_own_reason_and_slices_of_nothing_else_stop_nobody() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, Config(batch_rows=10)).open()
    events: list[Any] = [event(number) for number in range(50)]
    events[3]["data"] = {"kg": float("nan")}
    events[17] = "no mapping"
    del events[18]["address"]
    for number in range(20, 30):
        events[number]["lifetime_s"] = -1
    with pytest.raises(SomeRefused) as caught:
        await space.emit_many(events)
    refused = caught.value.refused
    assert list(refused) == [3, 17, 18, *range(20, 30)]
    assert [refused[at].field for at in (3, 17, 18, 20)] == [  # type: ignore[attr-defined]
        "events[3].data.kg",
        "events[17]",
        "events[18].address",
        "events[20].lifetime_s",
    ]
    assert kgs(cluster, "a") == [number for number in range(50) if number not in refused]
    await space.close()


@in_virtual_time
async def test_an_unknown_outcome_names_what_was_refused_as_its_cause() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.losing["a"] = 1000
    with pytest.raises(OutcomeUnknown) as caught:
        await space.emit_many([event(0), event(1, lifetime_s=-1), event(2)])
    cause = caught.value.__cause__
    assert isinstance(cause, SomeRefused)
    assert list(cause.refused) == [1]
    cluster.losing["a"] = 0
    assert await space.retry(caught.value) == 2
    assert kgs(cluster, "a") == [0, 2]
    await space.close()


@in_virtual_time
async def test_an_iterable_of_rubbish_is_not_read_to_its_end() -> None:
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    with pytest.raises(SomeRefused) as caught:
        await space.emit_many(event(0, lifetime_s=-1) for _ in count())
    assert MOST_REFUSED <= len(caught.value.refused) <= MOST_REFUSED + Config().batch_rows
    assert caught.value.registered == 0
    await space.close()


@in_virtual_time
async def test_a_closed_space_says_so() -> None:
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    await space.close()
    await space.close()
    with pytest.raises(Closed):
        await space.emit(**event())
