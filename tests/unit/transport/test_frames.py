"""HTTP/2 frames: however the bytes are cut on their way, the same frames come out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.transport.http2 import frames
from utuple.transport.http2.frames import (
    DATA,
    END_STREAM,
    HEADERS,
    PADDED,
    PING,
    PRIORITISED,
    ErrorCode,
    FrameReader,
    ProtocolError,
    frame,
    settings,
    settings_of,
    unpadded,
)

MOST_BYTES = 20_000
sent = st.lists(
    st.tuples(
        st.sampled_from([DATA, HEADERS, PING, 77]),
        st.sampled_from([0, END_STREAM]),
        st.integers(0, 9),
        st.binary(max_size=40) | st.builds(lambda n: bytes(n), st.integers(4_000, 9_000)),
    ),
    max_size=8,
)


def cut(raw: bytes, at: list[int]) -> list[bytes]:
    ends = [0, *sorted(n % (len(raw) + 1) for n in at), len(raw)]
    return [raw[start:end] for start, end in pairwise(ends)]


@given(sent, st.lists(st.integers(0, 1 << 20), max_size=6))
def test_frames_come_out_as_they_were_sent_however_they_are_cut(
    given_frames: list[tuple[int, int, int, bytes]], at: list[int]
) -> None:
    raw = b"".join(frame(*one) for one in given_frames)
    reader = FrameReader(MOST_BYTES)
    found = [came for piece in cut(raw, at) for came in reader.feed(piece)]
    data: dict[int, bytes] = {}
    expected: dict[int, bytes] = {}
    for kind, _, stream, payload in given_frames:
        if kind == DATA:
            expected[stream] = expected.get(stream, b"") + payload
    for one in found:
        if one.kind == DATA:
            data[one.stream] = data.get(one.stream, b"") + bytes(one.payload)
            assert one.counted == len(one.payload)
    assert data == expected
    others = [(*one[:3], bytes(one.payload)) for one in found if one.kind != DATA]
    assert others == [one for one in given_frames if one[0] != DATA]
    ends = [one.stream for one in found if one.kind == DATA and one.flags & END_STREAM]
    assert ends == [one[2] for one in given_frames if one[0] == DATA and one[1] & END_STREAM]


def test_padding_is_left_out_and_still_counts_for_the_windows() -> None:
    padded = frame(DATA, PADDED, 1, bytes([3]) + b"hello" + bytes(3))
    (came,) = FrameReader(MOST_BYTES).feed(padded)
    assert (bytes(came.payload), came.counted) == (b"hello", 9)
    assert (
        unpadded(HEADERS, PADDED | PRIORITISED, 1, bytes([1]) + bytes(5) + b"ab" + bytes(1))
        == b"ab"
    )


@pytest.mark.parametrize("payload", [b"", bytes([9]) + b"short"])
def test_more_padding_than_there_is_breaks_the_protocol(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpadded(DATA, PADDED, 1, payload)


def test_a_frame_larger_than_we_take_is_refused_before_it_is_read() -> None:
    for there in (b"", bytes(101)):
        with pytest.raises(ProtocolError) as caught:
            FrameReader(100).feed(frames.head(101, DATA, 0, 1) + there)
        assert caught.value.code is ErrorCode.FRAME_SIZE_ERROR


def test_settings_go_through_and_an_odd_size_is_refused() -> None:
    said = {frames.MAX_FRAME_SIZE: 1 << 20, frames.INITIAL_WINDOW_SIZE: 7}
    (came,) = FrameReader(MOST_BYTES).feed(settings(said))
    assert settings_of(came.payload) == list(said.items())
    with pytest.raises(ProtocolError):
        settings_of(b"12345")
