"""What a watch is told about drops, and how its program's pace is measured."""

from __future__ import annotations

from typing import Any

import pytest

from utuple.client.receiving.drops import Drop, Drops, Pace
from utuple.errors import InvalidInput
from utuple.model.area import Box
from utuple.model.condition import at_least, data_template, prefix
from utuple.model.utuple import Family, Template, UTuple, datetime_of
from utuple.wire import utuple_pb2 as pb

FORMAL = UTuple(
    bytes(16),
    Family("truck", "load"),
    Template(prefix("truck-"), area=Box(35, 139, 36, 140)),
    None,
    data_template({"kg": at_least(1000)}),
    60.0,
    "dispatch",
)


def told(after: int = 5, count: int = 3, origin: str = "server-1") -> pb.Dropped:
    return pb.Dropped(
        id=FORMAL.id,
        origin=origin,
        after=after,
        upto=after + 10,
        count=count,
        policy="newest(2)",
        began_us=1_000_000,
        ended_us=9_000_000,
        first_us=2_000_000,
        last_us=3_000_000,
    )


def test_each_drop_is_told_once_however_often_a_server_says_it() -> None:
    heard: list[Drop] = []
    drops = Drops(FORMAL, heard.append)
    for message in (told(), told(), told(after=9), told(origin="server-2"), told()):
        drops.tell(message)
    assert [(drop.server, drop.count) for drop in heard] == [
        ("server-1", 3),
        ("server-1", 3),
        ("server-2", 3),
    ]
    assert list(drops.last) == heard


async def later(drop: Drop) -> None:
    raise AssertionError("nobody awaits it")


@pytest.mark.parametrize("given", [5, "print", later])
def test_who_is_to_be_told_of_drops_must_be_a_plain_function(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"on_dropped.*must be a plain function"):
        Drops(FORMAL, given)


def test_a_drop_says_the_read_that_gives_them_back() -> None:
    drops = Drops(FORMAL, None)
    drops.tell(told())
    (drop,) = drops.last
    assert drop.read == {
        "subject": "truck",
        "type": "load",
        "since": datetime_of(2_000_000),
        "until": datetime_of(3_000_001),
        "address": prefix("truck-"),
        "area": Box(35, 139, 36, 140),
        "where": dict(FORMAL.where or {}),
    }
    assert drop.call.startswith("space.read(subject='truck', type='load', since=")
    assert "3 dropped by newest(2)" in str(drop) and drop.zeta is None


def test_the_pace_is_of_the_time_the_program_works_and_not_of_that_it_waits() -> None:
    pace = Pace()
    assert pace.per_s == 0
    pace.hand_out(1, 10.0)
    pace.hand_out(0, 10.5)  # done after half a second, and nothing is there
    pace.hand_out(4, 100.0)
    pace.hand_out(1, 102.0)
    assert pace.per_s == pytest.approx(5 / 2.5)


def test_a_program_that_becomes_faster_is_noticed() -> None:
    pace, now_s = Pace(), 0.0
    for each_s in (0.1, 0.01):
        for _ in range(10_000):
            pace.hand_out(1, now_s)
            now_s += each_s
    assert pace.per_s == pytest.approx(100, rel=0.05)
