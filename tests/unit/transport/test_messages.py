"""Messages on a stream: however they are cut, each comes out whole; what is too large or compressed is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.transport.messages import MessageReader, TooLarge, Unreadable, prefix

MOST_BYTES = 1_000


@given(st.lists(st.binary(max_size=60), max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_messages_come_out_as_they_were_sent_however_they_are_cut(
    messages: list[bytes], at: list[int]
) -> None:
    raw = b"".join(prefix(message) + message for message in messages)
    ends = [0, *sorted(n % (len(raw) + 1) for n in at), len(raw)]
    reader = MessageReader(MOST_BYTES)
    found: list[bytes] = []
    for start, end in pairwise(ends):
        found += reader.feed(memoryview(raw)[start:end] if start % 2 else raw[start:end])
    assert found == messages
    assert reader.is_between


def test_one_that_is_broken_off_is_noticed() -> None:
    reader = MessageReader(MOST_BYTES)
    assert reader.feed(prefix(b"hello") + b"he") == []
    assert not reader.is_between


def test_one_that_is_too_large_is_refused_by_its_prefix() -> None:
    with pytest.raises(TooLarge):
        MessageReader(MOST_BYTES).feed(prefix(bytes(MOST_BYTES + 1)))


def test_compressed_ones_are_refused() -> None:
    with pytest.raises(Unreadable):
        MessageReader(MOST_BYTES).feed(b"\x01" + bytes(4))
