"""Keys: drawn from a seed, weighed, changing by day and with the time of day."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_sim.placement.keys import Keys, between, running, weights
from ops_sim.placement.scenario import Scenario, Skew, skew_from
from ops_sim.placement.splitmix import unit, words

SMALL = Scenario(keys=500, days=9, skew=Skew("zipf", 1.1))


@given(st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_draws_follow_from_seed_and_stream_and_not_from_how_many_are_drawn(
    seed: int, stream: int
) -> None:
    assert (words(seed, stream, 9)[:4] == words(seed, stream, 4)).all()
    assert (words(seed, stream, 9) != words(seed, stream + 1, 9)).any()
    drawn = unit(seed, stream, 50)
    assert ((drawn >= 0) & (drawn < 1)).all()


@given(st.sampled_from(["even", "zipf:0.8", "zipf:1.2", "hot:0.4", "hot:1"]), st.integers(1, 300))
def test_shares_of_all_keys_sum_to_one_with_the_heaviest_first(skew: str, count: int) -> None:
    shares = weights(skew_from(skew), count)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.diff(shares) <= 1e-15).all()


@given(st.lists(st.floats(0, 1), max_size=40), st.lists(st.integers(0, 40), max_size=10))
def test_what_a_section_bears_is_the_sum_of_its_keys(parts: list[float], cuts: list[int]) -> None:
    edges = sorted({0, len(parts), *(min(cut, len(parts)) for cut in cuts)})
    found = between(running(np.array(parts)), np.array(edges))
    naive = [sum(parts[low:high]) for low, high in pairwise(edges)]
    assert found == pytest.approx(naive)


def test_keys_vanish_and_appear_and_the_load_stays_the_same() -> None:
    keys = Keys(replace(SMALL, churn=0.2))
    before = keys.weights.copy()
    keys.live(1)
    changed = before != keys.weights
    assert 0.1 < changed.mean() < 0.25
    assert sorted(before) == sorted(keys.weights)


def test_day_and_night_cancel_out_over_the_day() -> None:
    keys = Keys(replace(SMALL, night=0.5))
    keys.look(0)
    noon = keys.now
    keys.look(1)
    assert (noon != keys.now).any()
    assert (noon + keys.now) / 2 == pytest.approx(keys.mean)
