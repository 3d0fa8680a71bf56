"""Portions hold everything once, in order, and none is too large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.model.portions import portions

MOST_BYTES, MOST = 10, 3


@given(st.lists(st.integers(0, 15)))
def test_portions_hold_everything_once_and_none_is_too_large(sizes: list[int]) -> None:
    cuts = list(portions(sizes, MOST_BYTES, MOST))
    assert [size for first, end in cuts for size in sizes[first:end]] == sizes
    for first, end in cuts:
        assert 0 < end - first <= MOST
        assert end - first == 1 or sum(sizes[first:end]) <= MOST_BYTES


@given(st.lists(st.integers(0, 15)))
def test_no_portion_could_have_held_the_next_thing_too(sizes: list[int]) -> None:
    for first, end in list(portions(sizes, MOST_BYTES, MOST))[:-1]:
        assert end - first == MOST or sum(sizes[first : end + 1]) > MOST_BYTES
