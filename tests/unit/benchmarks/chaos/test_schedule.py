"""The faults of a chaos run follow from its seed, and are of every kind."""

from __future__ import annotations

from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chaos.schedule import (
    APART_S,
    LASTS_S,
    LONG_S,
    WEIGHTS,
    Act,
    Wave,
    additions_s,
    next_wave,
    role_of,
)

TARGETS = [
    *(f"server-{n}" for n in range(1, 5)),
    *(f"postgres-{n}" for n in range(1, 5)),
    *(f"manager-{n}" for n in range(1, 4)),
    *("sca-1", "sca-2", "monitor-1", "reader-1", "reader-2", "sensors-1"),
]
seeds = st.integers(0, 1 << 32)


def waves(seed: int, count: int, targets: list[str] = TARGETS) -> list[Wave]:
    dice = Random(seed)
    return [next_wave(dice, targets) for _ in range(count)]


@given(seeds)
def test_the_same_seed_gives_the_same_waves(seed: int) -> None:
    assert waves(seed, 5) == waves(seed, 5)


def test_other_seeds_give_other_waves() -> None:
    assert len({waves(seed, 1)[0] for seed in range(50)}) == 50


@given(seeds)
def test_a_wave_harms_nothing_twice_at_once(seed: int) -> None:
    for wave in waves(seed, 10):
        for one, other in combinations(wave.faults, 2):
            assert one.target != other.target


@given(seeds)
def test_every_fault_begins_soon_and_ends(seed: int) -> None:
    for wave in waves(seed, 10):
        for fault in wave.faults:
            low_s, high_s = LASTS_S[fault.act]
            assert 0 <= fault.after_s <= APART_S
            assert low_s <= fault.for_s <= high_s or fault.for_s == LONG_S
            assert (fault.delay_s > 0) == (fault.act is Act.SLOW)


def test_in_an_hour_every_kind_of_fault_comes() -> None:
    came = {(fault.act, fault.role) for wave in waves(1, 400) for fault in wave.faults}
    assert came == set(WEIGHTS)


@given(seeds)
def test_one_sca_server_stays_when_another_leaves(seed: int) -> None:
    for wave in waves(seed, 20, ["sca-1", "sca-2", "sca-3"]):
        assert sum(fault.act is Act.LEAVE for fault in wave.faults) <= 1
    alone = [name for name in TARGETS if name != "sca-2"]
    acts = {fault.act for wave in waves(seed, 20, alone) for fault in wave.faults}
    assert Act.LEAVE not in acts


def test_what_is_not_there_is_not_harmed() -> None:
    few = ["server-1", "manager-1"]
    assert {f.target for wave in waves(1, 100, few) for f in wave.faults} == set(few)


def test_readers_are_users_so_killing_one_is_no_kill_of_the_cluster() -> None:
    faults = [fault for wave in waves(1, 400) for fault in wave.faults if fault.act is Act.KILL]
    assert {fault.role for fault in faults if not fault.is_kill} == {"reader", "sensors"}


def test_a_role_is_the_name_without_its_number() -> None:
    assert [role_of(name) for name in ("server-12", "sca-1")] == ["server", "sca"]


def test_ten_minutes_bring_more_kills_than_the_bar_asks_for() -> None:
    """Waves of 12 s, recovery and peace included, are slow ones."""
    for seed in range(20):
        kills = sum(fault.is_kill for wave in waves(seed, 50) for fault in wave.faults)
        assert kills >= 30


@given(seeds)
def test_a_run_grows_early_enough_to_show_it_and_a_short_one_does_not(seed: int) -> None:
    assert additions_s(Random(seed), 0.3) == []
    (only_s,) = additions_s(Random(seed), 10)
    assert 60 <= only_s <= 180
    first_s, second_s = additions_s(Random(seed), 60)
    assert 360 <= first_s < 1800 < second_s <= 3600 * 0.8
