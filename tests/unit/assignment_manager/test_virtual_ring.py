"""Several managers together, in bad weather: the DHT's promises."""

from __future__ import annotations

from random import Random

import pytest

from assignment_manager.manager import Manager
from tests.histories import SERVERS, Choice, History, history
from tests.unit.assignment_manager.virtual_ring import GOSSIP_S, TIMEOUTS, VirtualRing, Weather
from utuple.cluster.changes import helped
from utuple.cluster.line import Line, ServerInfo, first_table
from utuple.cluster.table import Table
from utuple.model.key import HASH_SPACE

FIVE = [f"manager-{number}" for number in range(1, 6)]
TABLE = first_table([f"server-{number}" for number in range(1, 31)])
STORM = Weather(lost=0.2, repeated=0.2, slow_s=1.5)
"""A fifth lost, a fifth repeated, and every message may overtake those of three rounds."""

SETTLED_S = 20.0
FULL_AGAIN_S = 10.0

seeds = pytest.mark.parametrize("seed", range(8))


def ring_of(
    names: list[str], seed: int, weather: Weather, lines: list[Line] = TABLE
) -> VirtualRing:
    ring = VirtualRing(names, seed, weather)
    ring.announced = lambda: list(lines)
    return ring


def assert_answers(ring: VirtualRing, lines: list[Line], most_asked: int) -> None:
    truth = Table(lines)
    for name in ring.managers:
        for key in ring.keys(lines):
            line, asked = ring.ask(name, key)
            assert line == truth.line_of(key), f"{name} says {line} for {key}"
            assert asked <= most_asked


def assert_held_where_they_belong(ring: VirtualRing, lines: list[Line]) -> None:
    for name, manager in ring.managers.items():
        assert manager.directory.ring.managers == set(ring.managers)
        holders = manager.directory.ring.holders
        assert list(manager.directory.lines) == [
            line for line in lines if name in holders(line.section.start)
        ]


@seeds
def test_any_key_is_answered_by_any_of_five_managers_with_one_hop_in_any_weather(seed: int) -> None:
    ring = ring_of(FIVE, seed, STORM)
    ring.run(SETTLED_S)
    assert_answers(ring, TABLE, most_asked=1)


@seeds
def test_each_line_is_with_its_host_and_two_others_and_nowhere_else(seed: int) -> None:
    ring = ring_of(FIVE, seed, Weather())
    ring.run(SETTLED_S)
    assert_held_where_they_belong(ring, TABLE)


@seeds
def test_lines_announced_to_one_manager_alone_reach_their_holders(seed: int) -> None:
    ring = ring_of(FIVE, seed, STORM)
    ring.announced_to = lambda name: name == FIVE[3]
    ring.run(SETTLED_S)
    assert_answers(ring, TABLE, most_asked=1)


@seeds
def test_a_dead_manager_is_passed_over_at_once_and_replaced_soon(seed: int) -> None:
    ring = ring_of(FIVE, seed, Weather())
    ring.run(SETTLED_S)
    ring.announced = list  # what is left must do
    ring.kill(FIVE[seed % 5])
    assert_answers(ring, TABLE, most_asked=2)
    ring.run(FULL_AGAIN_S)
    assert_held_where_they_belong(ring, TABLE)
    assert_answers(ring, TABLE, most_asked=1)


@seeds
def test_a_manager_that_comes_back_empty_under_its_name_gets_its_lines_from_the_others(
    seed: int,
) -> None:
    ring = ring_of(FIVE, seed, Weather())
    ring.run(SETTLED_S)
    ring.announced = list
    name = FIVE[seed % 5]
    ring.kill(name)
    ring.run(1.0 if seed % 2 else FULL_AGAIN_S)
    ring.start(name)
    ring.run(FULL_AGAIN_S)
    assert_held_where_they_belong(ring, TABLE)
    assert_answers(ring, TABLE, most_asked=1)


@seeds
def test_a_manager_that_joins_takes_its_share_and_the_others_drop_it(seed: int) -> None:
    ring = ring_of(FIVE[:4], seed, Weather())
    ring.run(SETTLED_S)
    ring.announced = list
    ring.start(FIVE[4])
    ring.run(FULL_AGAIN_S)
    assert_held_where_they_belong(ring, TABLE)
    assert_answers(ring, TABLE, most_asked=1)


@seeds
def test_when_all_managers_start_again_empty_announcements_fill_them(seed: int) -> None:
    ring = ring_of(FIVE[:3], seed, Weather(lost=0.05, repeated=0.1, slow_s=0.2))
    ring.run(SETTLED_S)
    for name in FIVE[:3]:
        ring.kill(name)
    for name in FIVE[:3]:
        ring.start(name)
    ring.run(FULL_AGAIN_S)
    assert_answers(ring, TABLE, most_asked=1)


@seeds
def test_news_heard_on_one_side_of_a_cut_is_everywhere_after_it_and_no_epoch_falls(
    seed: int,
) -> None:
    ring = ring_of(FIVE, seed, STORM)
    ring.run(SETTLED_S)
    ring.cut(FIVE[:2], FIVE[2:])
    newer = [helped(line, line.home, "server-99") for line in TABLE]
    ring.announced_to = lambda name: False
    for name in FIVE[:2]:
        for line in newer:
            ring.managers[name].hear_announcement(_home_of(line), [line])
    ring.run(SETTLED_S)
    ring.cut()
    ring.announced_to = lambda name: name in FIVE[2:]  # late: the old table again
    epochs = {name: _epochs(manager) for name, manager in ring.managers.items()}
    for _ in range(40):
        ring.run(0.5)
        for name, manager in ring.managers.items():
            now = _epochs(manager)
            assert all(map(int.__ge__, now, epochs[name]))
            epochs[name] = now
    assert_answers(ring, newer, most_asked=1)


@seeds
def test_the_highest_epochs_win_while_the_table_changes_under_way(seed: int) -> None:
    ring = ring_of(FIVE, seed, STORM)
    told = _some_history(seed)
    ring.announced = lambda: list(told.ever)  # every line that was ever true, again and again
    ring.run(SETTLED_S)
    assert_answers(ring, told.final, most_asked=1)


def test_a_suspected_manager_is_asked_last() -> None:
    ring = ring_of(FIVE, 1, Weather())
    ring.run(SETTLED_S)
    ring.kill(FIVE[1])
    manager, order = ring.managers[FIVE[0]], [FIVE[1], FIVE[2], FIVE[3]]
    assert manager.in_asking_order(order, ring.now_s) == order
    ring.run(TIMEOUTS.suspect_s + 4 * GOSSIP_S)  # its last beat may still travel for a few rounds
    assert manager.in_asking_order(order, ring.now_s) == [FIVE[2], FIVE[3], FIVE[1]]


def test_the_same_seed_gives_the_same_run() -> None:
    def seen() -> list[list[Line]]:
        ring = ring_of(FIVE, 7, STORM)
        ring.run(3.0)
        return [list(manager.directory.lines) for manager in ring.managers.values()]

    assert seen() == seen()


def test_what_no_one_announced_is_answered_by_no_one() -> None:
    ring = ring_of(FIVE, 1, Weather(), TABLE[:-1])
    ring.run(SETTLED_S)
    assert {ring.ask(name, HASH_SPACE - 1) for name in FIVE} == {(None, 0)}
    assert not any(m.directory.peers.overlapping(TABLE[-1].section) for m in ring.managers.values())


def _home_of(line: Line) -> ServerInfo:
    return ServerInfo(line.home, f"{line.home}:1")


def _epochs(manager: Manager) -> list[int]:
    """The highest epoch it knows of, at each section of the table."""
    known = (manager.directory.peers.overlapping(line.section) for line in TABLE)
    return [min((peer.epoch for peer in peers), default=0) for peers in known]


def _some_history(seed: int) -> History:
    dice = Random(seed)
    picked = [
        Choice(
            dice.randrange(99),
            dice.randrange(8),
            dice.randrange(99),
            dice.randrange(6),
            dice.randrange(1, 99),
        )
        for _ in range(40)
    ]
    return history(len(SERVERS), True, picked)
