"""What was heard of lately, and what was forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.delivery.recent import RecentIds

LEAST = 4


@given(st.lists(st.lists(st.integers(0, 30), unique=True, max_size=LEAST), max_size=30))
def test_at_least_so_many_are_remembered_and_at_most_twice_as_many(
    script: list[list[int]],
) -> None:
    recent, all_of_them = RecentIds(LEAST), list[bytes]()
    for numbers in script:
        ids = [bytes([number]) for number in numbers]
        recent.add(ids)
        all_of_them += ids
        last = all_of_them[-LEAST:] if len(ids) == LEAST else all_of_them[-1:] if ids else []
        assert all(id_ in recent for id_ in last)
        assert len(recent) <= 2 * LEAST
        every = [bytes([number]) for number in range(31)]
        assert set(recent.among(every)) == {id_ for id_ in every if id_ in recent}


def test_one_by_one_the_last_ones_are_remembered_and_the_first_forgotten() -> None:
    recent = RecentIds(LEAST)
    for number in range(100):
        recent.add([bytes([number])])
        first = max(0, number + 1 - LEAST)
        assert all(bytes([one]) in recent for one in range(first, number + 1))
    assert bytes([0]) not in recent


def test_what_is_discarded_is_forgotten_however_long_it_was_known() -> None:
    recent = RecentIds(1)
    for id_ in (b"old", b"new"):
        recent.add([id_])
    for id_ in (b"old", b"new", b"never"):
        recent.discard(id_)
        assert id_ not in recent
    assert len(recent) == 0 and not recent.among([b"old", b"new"])
