"""A program that died is started again: soon, then less and less often, afresh after a long life."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.runtime.backoff import FIRST_WAIT_S, HEALTHY_LIFE_S, LONGEST_WAIT_S, Backoff


def waits(lives_s: list[float]) -> list[float]:
    backoff, found = Backoff(), []
    for lived_s in lives_s:
        backoff = backoff.after_death(lived_s)
        found.append(backoff.wait_s)
    return found


def test_the_first_start_waits_for_nothing() -> None:
    assert Backoff().wait_s == 0


def test_waits_double_from_a_tenth_of_a_second_to_five_seconds() -> None:
    assert waits([0] * 8) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_death_after_a_long_life_is_the_first_of_a_new_series() -> None:
    assert waits([0, 0, HEALTHY_LIFE_S, 0]) == [0.1, 0.2, 0.1, 0.2]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=3000))
def test_every_wait_lies_between_the_first_and_the_longest(lives_s: list[float]) -> None:
    assert all(FIRST_WAIT_S <= wait <= LONGEST_WAIT_S for wait in waits(lives_s))
