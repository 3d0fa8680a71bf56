"""Leaves by arithmetic: which bucket an expiry falls into, and that their number stays small."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from utuple.model.limits import MAX_LIFETIME_S
from utuple.store.postgres.partitions import MICROSECONDS, Leaf, leaf_named, leaf_of, place

NOW_US = 1_800_000_000_000_000
lifetimes_us = st.integers(1, MAX_LIFETIME_S * MICROSECONDS)


@given(st.lists(lifetimes_us, min_size=1, max_size=30))
def test_every_row_goes_to_one_leaf_that_holds_its_expiry(lifetimes: list[int]) -> None:
    lifetime = np.array(lifetimes, np.int64)
    expires = NOW_US + lifetime
    seen: list[int] = []
    for leaf, rows in place(lifetime, expires):
        chosen = list(range(len(lifetimes))) if rows is None else rows.tolist()
        seen += chosen
        assert all(leaf.start_us <= expires[row] < leaf.end_us for row in chosen)
    assert sorted(seen) == list(range(len(lifetimes)))


@given(
    st.one_of(
        lifetimes_us,
        st.sampled_from([3_600, 86_400, 30 * 86_400, 366 * 86_400]).map(lambda s: s * MICROSECONDS),
    )
)
def test_one_goes_where_many_like_it_go(lifetime: int) -> None:
    ((leaf, _),) = place(np.array([lifetime]), np.array([NOW_US + lifetime]))
    assert leaf_of(lifetime, NOW_US + lifetime) == leaf


@given(lifetimes_us)
def test_a_leaf_outlives_what_is_in_it_by_little(lifetime: int) -> None:
    """Space is held for at most about twice the lifetime, or five minutes."""
    ((leaf, _),) = place(np.array([lifetime]), np.array([NOW_US + lifetime]))
    assert leaf.width_s in (300, 7_200, 86_400, 15 * 86_400, 366 * 86_400)
    assert leaf.width_s * MICROSECONDS <= max(300 * MICROSECONDS, 2 * lifetime)


def test_about_two_hundred_leaves_are_alive_at_most() -> None:
    """Every lifetime at once, at one moment."""
    lifetime = np.unique(np.geomspace(1, MAX_LIFETIME_S, 200_000).astype(np.int64)) * MICROSECONDS
    assert len(place(lifetime, NOW_US + lifetime)) < 200


def test_a_leaf_is_known_by_its_name() -> None:
    for leaf in (Leaf(86_400, 20_840), Leaf(86_400, 20_840, is_moved=True)):
        assert leaf_named(leaf.name) == leaf
    assert Leaf(300, 1).name != Leaf(300, 1, is_moved=True).name
    assert leaf_named("events_old") is None
    assert leaf_named("events_300_1_other") is None
    assert leaf_named("events_300_1_moved_seq") is None
    assert leaf_named("devices_1_2") is None
