"""Readers that come back: what they have is not given again, and nothing else is left out."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from utuple.doors.http.verbs.resuming import HAS_MOST, Readers, Sent, id_of, tag_of


def ids(count: int) -> list[UUID]:
    return [UUID(int=number) for number in range(count)]


@given(st.integers(1, 30), st.data())
def test_after_an_id_come_exactly_those_that_were_sent_after_it(
    count: int, data: st.DataObject
) -> None:
    sent, events = Sent(), ids(count)
    for one in events:
        sent.write(one)
    at = data.draw(st.integers(0, count - 1))
    sent.acknowledge(events[at])
    sent.begin_again()
    assert [one for one in events if not sent.is_repeat(one)] == events[at + 1 :]


def test_an_unknown_id_leaves_nothing_out() -> None:
    sent = Sent()
    sent.write(UUID(int=1))
    sent.acknowledge(UUID(int=99))
    assert not sent.is_repeat(UUID(int=1))


def test_what_is_acknowledged_on_an_open_stream_is_not_remembered() -> None:
    sent = Sent()
    for one in ids(3):
        sent.write(one)
    sent.acknowledge(UUID(int=2), comes_again=False)
    assert not sent.has
    assert not sent.order


def test_events_that_never_come_again_are_not_remembered_for_ever() -> None:
    """Those of a short lifetime, which ended while the reader was away."""
    sent, newest = Sent(), UUID(int=0)
    for turn in range(5):
        for number in range(HAS_MOST // 2):
            newest = UUID(int=turn * HAS_MOST + number)
            sent.write(newest)
        sent.acknowledge(newest)
        sent.begin_again()
        assert len(sent.has) <= HAS_MOST
    assert sent.is_repeat(newest)
    assert not sent.is_repeat(UUID(int=0))


def test_readers_that_came_longest_ago_are_forgotten_first() -> None:
    readers = Readers(2)
    first = readers.of("a")
    readers.of("b")
    assert readers.of("a") is first
    readers.of("c")
    assert readers.of("a") is first
    readers.forget("a")
    assert readers.of("a") is not first


def test_an_id_tells_its_reader() -> None:
    assert id_of(tag_of("a"), UUID(int=1)) != id_of(tag_of("b"), UUID(int=1))
