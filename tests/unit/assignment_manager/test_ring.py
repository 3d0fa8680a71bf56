"""The ring of managers: one host for every key, fair shares, and little movement."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from assignment_manager.ring import COPIES, Ring
from utuple.model.key import HASH_SPACE

names = st.sets(st.text("abcdefgh-123", min_size=1, max_size=8), min_size=1, max_size=8)
points = st.integers(0, HASH_SPACE - 1)


@given(names, points)
def test_every_key_has_one_host_and_two_other_managers_with_copies(
    managers: set[str], point: int
) -> None:
    holders = Ring(managers).holders(point)
    assert len(holders) == len(set(holders)) == min(len(managers), 1 + COPIES)
    assert set(holders) <= managers
    assert Ring(managers).host(point) == holders[0]


@given(names, points, st.randoms(use_true_random=False))
def test_the_same_names_give_the_same_ring_whatever_their_order(
    managers: set[str], point: int, dice: Random
) -> None:
    shuffled = sorted(managers)
    dice.shuffle(shuffled)
    assert Ring(shuffled).holders(point) == Ring(sorted(managers)).holders(point)


@given(names, points)
def test_when_a_manager_goes_only_its_own_keys_move_and_to_the_first_copy(
    managers: set[str], point: int
) -> None:
    before = Ring(managers).holders(point)
    for gone in managers:
        after = Ring(managers - {gone}).holders(point)
        stay = tuple(name for name in before if name != gone)
        assert after[: len(stay)] == stay


@given(names, points)
def test_when_a_manager_comes_a_key_moves_to_it_or_not_at_all(
    managers: set[str], point: int
) -> None:
    before, after = Ring(managers).host(point), Ring(managers | {"new"}).host(point)
    assert after in (before, "new")


@given(st.integers(2, 10), st.integers(0, 1000))
def test_shares_are_fair(count: int, seed: int) -> None:
    ring = Ring(f"manager-{seed}-{number}" for number in range(count))
    dice = Random(seed)
    hosts = [ring.host(dice.randrange(HASH_SPACE)) for _ in range(2_000)]
    shares = [hosts.count(name) * count / len(hosts) for name in ring.managers]
    assert min(shares) > 0.5 and max(shares) < 1.7


def test_an_empty_ring_holds_nothing() -> None:
    assert Ring([]).holders(1) == ()
    assert Ring([]).host(1) is None
