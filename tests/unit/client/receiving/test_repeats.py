"""The memory by which repeats are dropped: law 3, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from utuple.client.receiving.repeats import ENTRY_BYTES, Seen


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def new_of(seen: Seen, number: int, ids: Sequence[bytes]) -> list[int]:
    new = seen.add_all(number, ids)
    return list(range(len(ids))) if new is None else new


def test_a_hundred_watches_of_forty_thousand_events_take_some_ten_megabytes() -> None:
    seen = Seen(64 << 20)
    watches = [seen.enter() for _ in range(100)]
    for first in range(0, 40_000, 1_000):
        ids = [id_of(number) for number in range(first, first + 1_000)]
        for watch in watches:
            assert seen.add_all(watch, ids) is None
    assert seen.size_bytes < 20 << 20
    kept = {**seen._old, **seen._young}
    really = sum(map(sys.getsizeof, (seen._old, seen._young)))
    really += sum(sys.getsizeof(id_) + sys.getsizeof(bits) for id_, bits in kept.items())
    assert really < 20 << 20
    for watch in watches:
        assert seen.add_all(watch, [id_of(0), id_of(39_999)]) == []


def test_it_never_takes_more_than_its_limit_and_always_remembers_half_of_it() -> None:
    limit = 1_000 * ENTRY_BYTES
    seen = Seen(limit)
    watches = [seen.enter() for _ in range(8)]
    dice = Random(1)
    given_last: list[tuple[int, bytes]] = []
    for number in range(20_000):
        watch = dice.choice(watches)
        assert seen.add_all(watch, [id_of(number)]) is None
        given_last = [*given_last, (watch, id_of(number))][-500:]
        assert seen.size_bytes <= limit
    assert all(seen.add_all(watch, [id_]) == [] for watch, id_ in given_last[10:])


def test_who_has_a_number_after_another_is_given_what_that_one_was_given() -> None:
    """Else a new watch would miss events (law 2)."""
    seen = Seen(20 * ENTRY_BYTES)
    old = seen.enter()
    seen.add_all(old, [id_of(1)])
    seen.leave(old)
    other = seen.enter()
    for number in range(100, 200):
        seen.add_all(other, [id_of(number), id_of(1)])
        later = seen.enter()
        assert new_of(seen, later, [id_of(1)]) == [0]
        seen.leave(later)
    assert seen.enter() < 90, "numbers are used again"


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), min_size=1, max_size=5)),
        max_size=30,
    )
)
def test_each_is_given_each_id_once(steps: list[tuple[int, list[int]]]) -> None:
    """As a set of pairs, the plain way, would have it."""
    seen, plain = Seen(10**6), set[tuple[int, int]]()
    watches = [seen.enter() for _ in range(4)]
    for watch, numbers in steps:
        expected = []
        for at, number in enumerate(numbers):
            if (watch, number) not in plain:
                expected.append(at)
            plain.add((watch, number))
        assert new_of(seen, watches[watch], [id_of(number) for number in numbers]) == expected
