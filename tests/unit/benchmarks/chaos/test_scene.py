"""What users of the space do: valid, various, and the same when it is read back."""

from __future__ import annotations

from random import Random

import orjson
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chaos.load import scene
from benchmarks.chaos.load.part import Part, part_from
from utuple.cluster.line import first_table
from utuple.model.key import key_of
from utuple.model.match import matches
from utuple.model.utuple import Family, Kind

FAMILIES = [Family("truck", "load"), Family("bus", "load")]
NOW_US = 1_800_000_000_000_000
seeds = st.integers(0, 1 << 32)


def test_every_server_of_the_first_table_has_families() -> None:
    found = scene.families(4, 3, "truck")
    lines = first_table(["a", "b", "c", "d"])
    counts = [sum(key_of(*family) in line.section for family in found) for line in lines]
    assert counts == [3, 3, 3, 3] and len(set(found)) == 12


@given(seeds)
def test_an_event_is_the_same_when_it_is_read_back(seed: int) -> None:
    event = scene.random_event(Random(seed), seed, FAMILIES, NOW_US)
    actual = scene.actual_of(orjson.loads(orjson.dumps(scene.written(event))))
    assert actual.kind is Kind.EA and actual.id == scene.utuple_id(seed)
    assert (actual.metadata.address, actual.data) == (event["address"], event["data"])


@given(seeds, st.booleans())
def test_a_template_is_the_same_when_it_is_read_back(seed: int, narrow: bool) -> None:
    asked = scene.random_asked(Random(seed), FAMILIES, NOW_US, narrow=narrow)
    assert scene.asked_from(orjson.loads(orjson.dumps(asked.said))) == asked
    assert asked.formal(bytes(16), "reader", 60.0).kind is Kind.EF


@given(seeds)
def test_a_command_and_its_device_are_the_same_when_they_are_read_back(seed: int) -> None:
    machines = scene.machines(Random(seed), FAMILIES, 4)
    for machine in machines:
        assert scene.machine_from(orjson.loads(orjson.dumps(machine.said))) == machine
    order = scene.random_order(Random(seed), seed, machines)
    assert scene.order_from(orjson.loads(orjson.dumps(order.said))) == order
    devices = [machine.formal(bytes(16), "device", NOW_US, 60.0) for machine in machines]
    assert any(matches(order.actual, device) for device in devices)


def test_most_templates_meet_some_events_and_few_meet_all() -> None:
    dice = Random(1)
    events = [
        scene.actual_of(scene.written(scene.random_event(dice, n, FAMILIES, NOW_US)))
        for n in range(500)
    ]
    shares = []
    for _ in range(100):
        formal = scene.random_asked(dice, FAMILIES, NOW_US).formal(bytes(16), "r", 60.0)
        mine = [event for event in events if event.family == formal.family]
        shares.append(sum(matches(event, formal) for event in mine) / len(mine))
    assert sum(share > 0 for share in shares) > 60
    assert sum(share == 1 for share in shares) < 20


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_no_two_lives_share_a_number(one: int, other: int) -> None:
    def first(life: int, program: str = "sensors-1") -> int:
        return Part(program, life, 1, ("127.0.0.1:1",), 4, "x", 1.0).first_number

    assert one == other or abs(first(one) - first(other)) >= 1 << 28
    assert first(one) != first(other, "devices-1")


def test_a_part_is_the_same_when_it_is_read_back() -> None:
    part = Part("sensors-1", 2, 7, ("127.0.0.1:1", "127.0.0.1:2"), 4, "/tmp/x", 150.0)
    assert part_from(part.argument) == part


def test_a_reader_with_a_name_asks_for_the_same_in_each_life() -> None:
    lives = [Part("reader-1", life, 7, ("127.0.0.1:1",), 4, "x", 1.0) for life in (1, 2)]
    steady = [
        scene.random_asked(life.steady_dice("seat"), FAMILIES, 0, narrow=False) for life in lives
    ]
    assert steady[0] == steady[1]
    assert lives[0].dice("seat").random() != lives[1].dice("seat").random()
