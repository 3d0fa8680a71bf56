"""A blocking watch can be asked for what comes within a time, and loses nothing by it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.unit.client.blocking.test_space import space_of
from utuple.client.blocking import space as blocking
from utuple.errors import Closed, InvalidInput

LOADS: dict[str, Any] = {"subject": "truck", "type": "load"}
LONG_S = 60
"""Never waited for: something comes before."""


def emit(space: blocking.Space, *numbers: int) -> None:
    space.emit_many({**LOADS, "address": "t", "data": {"kg": n}} for n in numbers)


def kgs(events: list[blocking.Delivery]) -> list[int]:
    return [event.data["kg"] for event in events]


def test_what_does_not_come_in_its_time_is_given_to_whoever_asks_next() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space, space.watch(**LOADS) as events:
        assert events.next(timeout_s=0.01) is None
        assert events.take(10, timeout_s=0) == []
        emit(space, 1, 2, 3)
        first = events.next(timeout_s=LONG_S)
        assert first is not None and first.data == {"kg": 1}
        found: list[blocking.Delivery] = []
        while len(found) < 2:
            some = events.take(1, timeout_s=LONG_S)
            assert len(some) == 1
            found += some
        assert kgs(found) == [2, 3]
        assert events.next(timeout_s=0.01) is None
        emit(space, 4)
        assert next(events).data == {"kg": 4}


def test_a_take_gives_what_is_there_and_no_more_than_it_was_asked_for() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        emit(space, *range(5_000))
        with space.watch(**LOADS, reader="dispatch") as events:
            found: list[int] = []
            while len(found) < 5_000:
                some = events.take(700, timeout_s=LONG_S)
                assert 0 < len(some) <= 700
                found += kgs(some)
                some[-1].ack()
            assert found == list(range(5_000))


def test_who_settles_each_delivery_has_taken_no_more_than_it_was_given() -> None:
    """Those behind a poisonous event would be tried in vain whenever that kills the program, and parked with it."""
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        emit(space, *range(5))
        with space.watch(**LOADS, reader="dispatch", attempts=3) as events:
            for number in range(5):
                assert kgs(events.take(5, timeout_s=LONG_S)) == [number]


def test_threads_that_wait_for_a_time_and_threads_that_wait_for_ever_share() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space, space.watch(**LOADS) as events:
        found: list[int] = []
        enough = threading.Event()

        def take() -> None:
            while not enough.is_set():
                found.extend(kgs(events.take(3, timeout_s=0.01)))
                if len(found) >= 300:
                    enough.set()

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(0, 300, 10):
            emit(space, *range(n, n + 10))
        assert enough.wait(LONG_S)
        for thread in threads:
            thread.join(LONG_S)
        assert sorted(found) == list(range(300))


def test_a_device_takes_commands_within_a_time() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        power: dict[str, Any] = {"subject": "aircon", "type": "power", "address": "room-1"}
        with space.serve(**power) as commands:
            assert commands.next(timeout_s=0) is None
            assert space.command(**power, data={"on": True}).handed_over == 1
            [command] = commands.take(5, timeout_s=LONG_S)
            assert command.data == {"on": True}


def test_wrong_arguments_are_named_and_a_closed_watch_says_so() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        with space.watch(**LOADS) as events:
            for most in (0, -1, 2.0, True):
                with pytest.raises(InvalidInput, match="most"):
                    events.take(most)  # type: ignore[arg-type]
            for timeout_s in (-1, float("nan"), "1"):
                with pytest.raises(InvalidInput, match="timeout_s"):
                    events.next(timeout_s=timeout_s)  # type: ignore[arg-type]
        with pytest.raises(Closed):
            events.next(timeout_s=LONG_S)
        with pytest.raises(Closed):
            events.take(1, timeout_s=LONG_S)


def test_the_newest_are_read_first() -> None:
    with space_of(TwinCluster(one_line(1, "a", "b"))) as space:
        emit(space, *range(50))
        newest = [event.data["kg"] for event in space.read(**LOADS, limit=3, newest_first=True)]
        assert len(newest) == 3
        assert len(list(space.read(**LOADS, newest_first=True))) == 50
