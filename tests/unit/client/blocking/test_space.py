"""The blocking face: the same verbs, from the same core."""

from __future__ import annotations

import inspect
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from utuple.client.blocking import space as blocking
from utuple.client.blocking.worker import Worker
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.errors import (
    Closed,
    InvalidInput,
    OutcomeUnknown,
    SomeRegistered,
    Unavailable,
    WrongContext,
)

VERBS = ("emit", "emit_many", "watch", "read", "serve", "command", "command_many", "retry", "close")


LOAD: dict[str, Any] = {"subject": "truck", "type": "load", "address": "t"}


def space_of(cluster: TwinCluster, timeout_s: float = 10) -> blocking.Space:
    config = Config(timeout_s=timeout_s)
    parts = put_together([MANAGER], config, cluster, random.Random(7), lambda: 7)
    return blocking.Space(Space(parts))


def test_every_verb_has_the_arguments_of_the_asynchronous_one() -> None:
    for verb in VERBS:
        own, other = getattr(blocking.Space, verb), getattr(Space, verb)
        assert list(inspect.signature(own).parameters) == list(inspect.signature(other).parameters)
        assert own.__doc__


def test_a_program_without_an_event_loop_emits_watches_and_reads() -> None:
    with space_of(TwinCluster(one_line(1, "a", "b"))) as space:
        space.emit(subject="truck", type="load", address="t", data={"kg": 0})
        numbers = range(1, 3_000)
        one = {"subject": "truck", "type": "load", "address": "t"}
        assert space.emit_many({**one, "data": {"kg": n}} for n in numbers) == len(numbers)
        with space.watch(subject="truck", type="load", reader="dispatch") as events:
            found = []
            for event in events:
                found.append(event.data["kg"])
                event.ack()
                if len(found) == 3_000:
                    break
        assert sorted(found) == list(range(3_000))
        read = [event.data["kg"] for event in space.read(subject="truck", type="load")]
        assert sorted(read) == list(range(3_000))
        with space.watch(subject="truck", type="load", reader="dispatch") as events:
            space.emit(subject="truck", type="load", address="t", data={"kg": -1})
            assert next(events).data == {"kg": -1}, "the rest was acknowledged"


def test_acknowledging_twice_after_the_end_or_what_was_read_is_refused_where_it_is_said() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        for number in range(3):
            space.emit(**LOAD, data={"kg": number})
        with space.watch(subject="truck", type="load", reader="dispatch") as events:
            first, second, third = (next(events) for _ in range(3))
            with pytest.raises(InvalidInput, match="needs a watch with ack_within_s="):
                second.nack()
            first.ack()
            with pytest.raises(InvalidInput, match="it was acknowledged or refused already"):
                first.ack()
            second.ack()
        with pytest.raises(Closed, match=str(third.id)):
            third.ack()
        with pytest.raises(InvalidInput, match="it came by a read"):
            next(space.read(subject="truck", type="load")).ack()
        with space.watch(subject="truck", type="load", reader="dispatch") as events:
            assert next(events).data == {"kg": 2}


def test_commands_reach_a_device_in_another_thread() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        with space.serve(subject="aircon", type="power", address="room-101") as commands:
            done: list[dict[str, object]] = []
            thread = threading.Thread(target=lambda: done.append(next(commands).data))
            thread.start()
            receipt = space.command(
                subject="aircon", type="power", address="room-101", data={"on": True}
            )
            thread.join(10)
        assert receipt.handed_over == 1
        assert done == [{"on": True}]


def test_errors_come_as_they_are() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        with pytest.raises(InvalidInput):
            space.emit(subject="", type="load", address="t", data={})
    with pytest.raises(Closed):
        space.emit(subject="truck", type="load", address="t", data={})


def test_a_callers_iterable_runs_on_the_callers_thread() -> None:
    """Promise: else one that uses the space itself would wait for its own end."""
    ran_on = set()

    def twice(space: blocking.Space, **changed: str) -> Iterator[dict[str, Any]]:
        for event in space.read(subject="truck", type="load"):
            ran_on.add(threading.current_thread())
            yield {**LOAD, "data": event.data, **changed}

    with space_of(TwinCluster(one_line(1, "a"))) as space:
        space.emit_many({**LOAD, "data": {"kg": n}} for n in range(2_000))
        assert space.emit_many(twice(space, type="again")) == 2_000
        assert len(space.command_many(twice(space, type="power"))) == 2_000
        assert len(list(space.read(subject="truck", type="again"))) == 2_000
    assert ran_on == {threading.current_thread()}


def test_an_iterable_that_fails_says_how_far_it_came() -> None:
    def failing() -> Iterator[dict[str, Any]]:
        yield from ({**LOAD, "data": {"kg": n}} for n in range(700))
        raise OSError("unplugged")

    with space_of(TwinCluster(one_line(1, "a"))) as space:
        with pytest.raises(SomeRegistered) as caught:
            space.emit_many(failing())
        assert (caught.value.reached, caught.value.registered) == (700, 700)
        assert isinstance(caught.value.__cause__, OSError)


def test_closing_ends_the_calls_of_all_other_threads() -> None:
    """Promise: every call ends; what was sent is unknown, whatever else is closed, and nobody hangs."""
    cluster = TwinCluster(one_line(1, "a"))
    space = space_of(cluster).__enter__()
    space.emit(**LOAD, data={"kg": 0})
    watch = space.watch(subject="truck", type="load").__enter__()
    assert next(watch).data == {"kg": 0}
    cluster.hold("a")
    verbs: list[Callable[[], object]] = [
        lambda: space.emit(**LOAD, data={"kg": 1}),
        lambda: space.emit_many({**LOAD, "data": {"kg": n}} for n in range(3_000)),
        lambda: next(watch),
        lambda: next(watch),
        lambda: next(space.read(subject="truck", type="load")),
        lambda: space.watch(subject="truck", type="load").__enter__(),
        lambda: space.command(subject="truck", type="load", everywhere=True, data={}),
    ]
    with ThreadPoolExecutor(len(verbs) + 4) as pool:
        calls = [pool.submit(verb) for verb in verbs]
        while len(cluster.calls) < 4 or not all(call.running() for call in calls):
            threading.Event().wait(0.01)
        for closing in [pool.submit(space.close) for _ in range(4)]:
            closing.result(30)
        errors = [call.exception(30) for call in calls]
    assert {type(error) for error in errors} <= {Closed, OutcomeUnknown, StopIteration}, errors
    space.close()
    watch.close()
    with pytest.raises(Closed):
        space.emit_many([{**LOAD, "data": {"kg": 1}}])


@pytest.mark.parametrize("closes", ["the watch", "the space"])
def test_closing_a_watch_ends_the_iterations_of_all_threads(closes: str) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    with space_of(cluster) as space:
        watch = space.watch(subject="truck", type="load").__enter__()
        space.emit_many({**LOAD, "data": {"kg": n}} for n in range(100))
        begun = threading.Barrier(5)

        def iterate() -> list[int]:
            seen = []
            begun.wait(30)
            for delivery in watch:
                seen.append(delivery.data["kg"])
                if len(seen) == 1:
                    begun.wait(30)
            return seen

        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(iterate) for _ in range(4)]
            for _ in range(2):
                begun.wait(30)  # all have begun, and then all are within their loops
            (watch if closes == "the watch" else space).close()
            seen = [kg for call in calls for kg in call.result(30)]
        assert len(seen) == len(set(seen))
        assert list(watch) == []


def test_an_event_that_was_sent_when_its_space_closed_is_unknown_and_not_merely_closed() -> None:
    """Law 4: it may be registered."""
    cluster = TwinCluster(one_line(1, "a"))
    space = space_of(cluster).__enter__()
    cluster.hold("a")
    with ThreadPoolExecutor(1) as pool:
        emitting = pool.submit(space.emit, **LOAD, data={"kg": 1})
        while not cluster.calls:
            threading.Event().wait(0.01)
        space.close()
        error = emitting.exception(30)
    cluster.held.clear()
    assert isinstance(error, OutcomeUnknown)
    with space_of(cluster) as again:
        again.retry(error)
        assert [event.data for event in again.read(subject="truck", type="load")] == [{"kg": 1}]


def test_threads_that_iterate_one_watch_share_its_deliveries() -> None:
    with space_of(TwinCluster(one_line(1, "a", "b"))) as space:
        space.emit_many({**LOAD, "data": {"kg": n}} for n in range(5_000))
        with space.watch(subject="truck", type="load") as events:
            got: list[int] = []

            def iterate() -> None:
                for event in events:
                    got.append(event.data["kg"])
                    if len(got) == 5_000:
                        events.close()

            with ThreadPoolExecutor(4) as pool:
                for iterating in [pool.submit(iterate) for _ in range(4)]:
                    iterating.result(60)
    assert sorted(got) == list(range(5_000))


def test_a_read_that_breaks_is_told_to_every_thread_and_never_taken_for_its_end() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    with space_of(cluster, timeout_s=0.2) as space:
        space.emit_many({**LOAD, "data": {"kg": n}} for n in range(5_000))
        cluster.choking = True
        events = space.read(subject="truck", type="load")
        for _ in range(2):
            with pytest.raises(Unavailable):
                list(events)


def test_a_call_ends_even_when_the_event_loop_is_held_up() -> None:
    async def nothing() -> None:
        return

    release = threading.Event()
    worker = Worker(nothing, limit_s=0.05)
    worker.run(nothing())
    worker.post(release.wait)
    with pytest.raises(OutcomeUnknown, match=r"no answer within 0\.05 s"):
        worker.run(nothing())
    release.set()
    worker.close()
    with pytest.raises(Closed):
        worker.run(nothing())


def test_a_blocking_verb_on_the_spaces_own_loop_is_refused_and_does_not_wait_for_itself() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:

        async def misled() -> None:
            space.emit(**LOAD, data={"kg": 1})

        with pytest.raises(WrongContext, match="wait for itself"):
            space._worker.run(misled())


def test_a_space_that_is_never_used_has_no_thread() -> None:
    before = threading.active_count()
    space = space_of(TwinCluster(one_line(1, "a")))
    space.close()
    assert threading.active_count() == before
    with pytest.raises(Closed):
        space.emit(**LOAD, data={"kg": 1})


def test_leaving_a_reading_early_is_fine() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        one = {"subject": "truck", "type": "load", "address": "t", "data": {"kg": 1}}
        space.emit_many([one] * 50)
        for event in space.read(subject="truck", type="load"):
            assert event.data == {"kg": 1}
            break
