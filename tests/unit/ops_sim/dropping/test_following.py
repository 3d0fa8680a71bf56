"""Visits that are known: by hand, and beside the closed form."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from ops_sim.dropping.following import Visit, followed
from utuple.cluster.on_off_queue import OnOffQueue

VISITS = [Visit(0, 10), Visit(20, 30), Visit(40, 60)]


def test_what_arrives_while_it_is_away_waits_for_the_next_visit() -> None:
    assert followed(VISITS, [2, 12, 13], [1, 2, 3], lambda away, _: away) == [1, 10, 12]


def test_interrupted_work_goes_on_where_it_stopped() -> None:
    assert followed(VISITS, [8, 9], [5, 1], lambda away, _: away) == [15, 15]


def test_what_is_not_kept_is_never_delivered_and_what_arrives_during_a_visit_always() -> None:
    told = []

    def last(away: Sequence[int], visit: int) -> Sequence[int]:
        told.append((list(away), visit))
        return away[-1:]

    assert followed(VISITS, [5, 11, 12, 25], [1, 1, 1, 1], last) == [1, None, 9, 1]
    assert told == [([], 0), ([1, 2], 1), ([], 2)]


def test_after_the_last_visit_nothing_is_delivered() -> None:
    assert followed(VISITS, [59, 61], [2, 1], lambda away, _: away) == [None, None]


@pytest.mark.parametrize("zeta", [0.35, 1.0])
def test_on_exponential_periods_the_mean_is_that_of_the_closed_form(zeta: float) -> None:
    dice, queue, until_s = Random(4), OnOffQueue(2, 8, 20, 20, zeta), 400_000.0
    arrivals_s: list[float] = []
    visits, now_s = [], 0.0
    while now_s < until_s:
        began_s = now_s + dice.expovariate(1 / 20)
        now_s = began_s + dice.expovariate(1 / 20)
        visits.append(Visit(began_s, now_s))
    while not arrivals_s or arrivals_s[-1] < until_s:
        arrivals_s.append((arrivals_s[-1] if arrivals_s else 0.0) + dice.expovariate(2))
    works_s = [dice.expovariate(8) for _ in arrivals_s]
    joins = [dice.random() < zeta for _ in arrivals_s]
    found = followed(visits, arrivals_s, works_s, lambda away, _: [n for n in away if joins[n]])
    given = [one for one in found if one is not None]
    assert sum(given) / len(given) == pytest.approx(queue.mean_response_s, rel=0.05)
    assert len(given) / len(found) == pytest.approx(queue.success_share, rel=0.02)
