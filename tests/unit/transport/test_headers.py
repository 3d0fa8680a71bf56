"""Header blocks: what we write any HPACK decoder reads, what others write we read, and gRPC's own words."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from utuple.transport.http2.frames import ProtocolError
from utuple.transport.http2.headers import (
    HeaderReader,
    encode,
    escaped_message,
    message_of,
    metadata_of,
    metadata_to_headers,
    request_problem,
    timeout_of,
    timeout_to_text,
)

names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=300)
blocks = st.lists(st.tuples(names, values), max_size=6)


@given(blocks)
def test_what_we_write_any_decoder_reads(headers: list[tuple[str, str]]) -> None:
    assert [(str(name), str(value)) for name, value in Decoder().decode(encode(headers))] == headers


@given(st.lists(blocks, max_size=5), st.booleans())
def test_what_others_write_we_read_also_when_they_use_the_table_and_repeat_themselves(
    several: list[list[tuple[str, str]]], huffman: bool
) -> None:
    encoder, reader = Encoder(), HeaderReader(request_problem)
    for headers in [*several, *several]:
        assert list(reader.read(encoder.encode(headers, huffman=huffman))[0]) == headers


def test_a_block_that_says_the_same_every_time_is_read_once() -> None:
    reader, block = HeaderReader(request_problem), encode([("a", "b")])
    assert reader.read(block) is reader.read(block)


def test_rubbish_breaks_the_protocol_and_nothing_else() -> None:
    with pytest.raises(ProtocolError):
        HeaderReader(request_problem).read(b"\xff\xff\xff\xff\xff")


@given(st.text(max_size=50))
def test_a_status_message_travels_whatever_it_holds(message: str) -> None:
    travelled = escaped_message(message)
    assert travelled.isascii() and travelled.isprintable()
    assert message_of(travelled) == message.encode(errors="replace").decode()


@pytest.mark.parametrize(
    ("text", "seconds"), [("5S", 5.0), ("250m", 0.25), ("99999999n", 0.099999999), ("1H", 3600.0)]
)
def test_time_outs_of_others_are_read(text: str, seconds: float) -> None:
    assert timeout_of(text) == pytest.approx(seconds)


@given(st.floats(0, 10**7))
def test_a_time_out_travels_as_at_most_eight_digits_and_a_unit(seconds: float) -> None:
    text = timeout_to_text(seconds)
    assert len(text) <= 9
    assert timeout_of(text) == pytest.approx(min(seconds, 99_999.999), abs=1e-3)


@pytest.mark.parametrize("text", ["", "5", "S", "123456789S", "-1S", "5s"])
def test_a_time_out_that_is_none_breaks_the_protocol(text: str) -> None:
    with pytest.raises(ProtocolError):
        timeout_of(text)


@given(st.lists(st.tuples(names.map(lambda name: f"x{name}-bin"), st.binary(max_size=40))))
def test_binary_metadata_travels(given_metadata: list[tuple[str, bytes]]) -> None:
    headers = metadata_to_headers(given_metadata)
    assert metadata_of([(":status", "200"), ("grpc-status", "0"), *headers]) == tuple(
        given_metadata
    )


def test_a_block_that_would_teach_the_table_is_read_again_once_there_is_one() -> None:
    no_table, a_table, newest = b"\x20", b"\x3f\xe1\x1f", b"\xbe"
    first, second = b"\x40\x01a\x01b", b"\x40\x01c\x01d"
    reader = HeaderReader(request_problem)
    reader.read(no_table)
    assert list(reader.read(first)[0]) == [("a", "b")]
    reader.read(a_table + second)
    reader.read(first)
    assert list(reader.read(newest)[0]) == [("a", "b")]
