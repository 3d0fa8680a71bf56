"""The blocking face: the same verbs, from the same core."""

from __future__ import annotations

import inspect
import random
import threading

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from utuple.client import blocking
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.errors import Closed, InvalidInput

VERBS = ("emit", "emit_many", "watch", "read", "serve", "command", "command_many", "retry", "close")


def space_of(cluster: TwinCluster) -> blocking.Space:
    parts = put_together([MANAGER], Config(timeout_s=10), cluster, random.Random(7), lambda: 7)
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


def test_leaving_a_reading_early_is_fine() -> None:
    with space_of(TwinCluster(one_line(1, "a"))) as space:
        one = {"subject": "truck", "type": "load", "address": "t", "data": {"kg": 1}}
        space.emit_many([one] * 50)
        for event in space.read(subject="truck", type="load"):
            assert event.data == {"kg": 1}
            break
