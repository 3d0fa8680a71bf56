"""Received, acknowledged, seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.client.receiving.progress import OriginProgress, Progress
from utuple.client.receiving.repeats import Seen


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def position_by_hand(delivered: list[int], done: set[int]) -> int:
    """The highest seq such that everything delivered at or below it is acknowledged."""
    reached = 0
    for seq in sorted(delivered):
        if seq not in done:
            break
        reached = seq
    return reached


seqs = st.lists(st.integers(1, 60), unique=True, max_size=30)


@given(seqs, st.data())
def test_the_position_is_the_highest_with_everything_below_acknowledged(
    delivered: list[int], data: st.DataObject
) -> None:
    track = OriginProgress(limit=1000)
    for seq in delivered:
        track.delivered(seq)
    order = data.draw(st.permutations(delivered))
    done: set[int] = set()
    for seq in order[: data.draw(st.integers(0, len(order)))]:
        track.acknowledge(seq)
        done.add(seq)
        assert track.position == position_by_hand(delivered, done)
    assert track.outstanding == len(delivered) - len(done)


@given(seqs, st.integers(0, 5), st.data())
def test_beyond_the_limit_the_position_never_passes_what_is_not_acknowledged(
    delivered: list[int], limit: int, data: st.DataObject
) -> None:
    delivered.sort()
    track = OriginProgress(limit)
    for seq in delivered:
        track.delivered(seq)
    done: set[int] = set()
    for seq in data.draw(st.permutations(delivered)):
        track.acknowledge(seq)
        done.add(seq)
        assert track.position <= position_by_hand(delivered, done)
    assert track.position == max(delivered, default=0)


def new_progress() -> Progress:
    return Progress(seen=Seen(10_000_000), unacknowledged=1000)


def test_a_repeat_is_dropped_and_does_not_count_as_acknowledged() -> None:
    order = new_progress()
    assert order.arrive("a", "a", [5, 6], [id_of(1), id_of(2)]) is None, "all are news"
    assert order.arrive("a", "a", [5, 6], [id_of(1), id_of(2)]) == []
    order.acknowledge("a", 6, id_of(2))
    assert order.acknowledged("a") == {}
    order.acknowledge("a", 5, id_of(1))
    assert order.acknowledged("a") == {"a": 6}


def test_the_same_utuple_from_another_server_is_done_there_at_once() -> None:
    order = new_progress()
    order.arrive("a", "a", [5], [id_of(1)])
    assert order.arrive("b", "b", [9], [id_of(1)]) == []
    assert order.acknowledged("b") == {"b": 9}
    assert order.acknowledged("a") == {}


def test_a_stream_goes_on_after_what_came_whoever_brought_it() -> None:
    order = new_progress()
    order.arrive("a", "a", [3, 8], [id_of(1), id_of(2)])
    order.arrive("b", "x", [2], [id_of(3)])
    assert order.resume_after() == {"a": 8, "x": 2}


def test_a_server_that_has_only_delivered_for_others_has_delivered_nothing_of_its_own() -> None:
    order = new_progress()
    order.arrive("a", "a", [3], [id_of(1)])
    order.arrive("b", "x", [2], [id_of(3)])
    assert order.has_received("a") and not order.has_received("b")
    assert order.own == {"a"}


def test_the_positions_of_a_member_that_left_go_to_those_that_may_hold_its_rows() -> None:
    order = new_progress()
    order.arrive("x", "x", [1, 2, 3], [id_of(1), id_of(2), id_of(3)])
    order.acknowledge("x", 1, id_of(1))
    order.arrive("y", "x", [4], [id_of(4)])  # moved from x to y
    order.acknowledge("x", 4, id_of(4))
    assert order.acknowledged("y") == {"x": 1}, "2 and 3 are not acknowledged yet"
    assert order.acknowledged("z") == {}
    assert order.acknowledged("z", departed={"x"}) == {"x": 1}


def test_without_acknowledgements_nothing_is_followed() -> None:
    order = Progress(seen=Seen(10_000_000), unacknowledged=0)
    order.arrive("a", "a", [1, 2], [id_of(1), id_of(2)])
    order.acknowledge("a", 1, id_of(1))
    assert (order.acknowledged("a"), order.resume_after()) == ({}, {"a": 2})


def test_a_match_read_at_a_member_that_is_off_is_done_there_only_when_it_is_acknowledged() -> None:
    order = new_progress()
    assert order.arrive("off", "off", [], [id_of(1), id_of(1), id_of(2)]) == [0, 2]
    assert order.resume_after() == {}
    order.acknowledge("off", None, id_of(2))
    # the member goes on again and streams what it has: the second is done, the first is not
    assert order.arrive("off", "off", [7, 8], [id_of(2), id_of(1)]) == []
    assert order.acknowledged("off") == {"off": 7}
    order.acknowledge("off", None, id_of(1))
    assert order.acknowledged("off") == {"off": 8}


def test_a_command_that_comes_again_from_another_member_is_done_when_it_is_acknowledged() -> None:
    order = Progress(seen=Seen(10_000_000), unacknowledged=1000, by_id=True)
    order.arrive("x", "x", [3], [id_of(1)])
    for _ in range(2):
        assert order.arrive("z", "z", [9], [id_of(1)]) == []
    assert order.acknowledged("z") == {}, "the program has not acted on it yet"
    order.acknowledge("x", 3, id_of(1))
    assert order.acknowledged("z") == {"z": 9}
    assert order.acknowledged("x") == {"x": 3}


def test_a_command_that_was_acknowledged_before_is_dropped_and_done_where_it_comes() -> None:
    order = Progress(seen=Seen(10_000_000), unacknowledged=1000, by_id=True)
    order.begin_without([id_of(1), id_of(2)])
    assert order.arrive("z", "z", [8, 9], [id_of(1), id_of(3)]) == [1]
    assert order.acknowledged("z") == {"z": 8}


def test_what_is_followed_by_id_is_bounded() -> None:
    order = Progress(seen=Seen(10_000_000), unacknowledged=3, by_id=True)
    order.arrive("x", "x", list(range(1, 11)), [id_of(number) for number in range(1, 11)])
    assert len(order._open) == 3
    for number in range(1, 11):
        order.acknowledge("x", number, id_of(number))
    assert order.acknowledged("x") == {"x": 10}
    assert order._open == {}
