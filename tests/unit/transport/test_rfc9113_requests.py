"""RFC 9113 as a server keeps it, section 8: what a request may say, and what makes it malformed."""

from __future__ import annotations

import pytest

from tests.unit.transport.rfc9113 import GRPC, POST, REQUEST, Talk
from utuple.transport.http2.frames import DATA, END_STREAM, ErrorCode, frame

Headers = tuple[tuple[str, str], ...]
METHOD, SCHEME, PATH, AUTHORITY = REQUEST

ANSWERED: dict[str, Headers] = {
    "8.1 GET": REQUEST,
    "8.1 HEAD": ((":method", "HEAD"), *REQUEST[1:]),
    "8.1 OPTIONS of everything": ((":method", "OPTIONS"), SCHEME, (":path", "*")),
    "8.2 any lower-case name and visible value": (*REQUEST, ("x-any_name.1", "a value: é?")),
    "8.2.2 te: trailers": (*REQUEST, ("te", "trailers")),
    "8.3 pseudo-headers in any order": (PATH, AUTHORITY, METHOD, SCHEME),
    "RFC 7541 6.2 user-agent twice": (*REQUEST, ("user-agent", "a"), ("user-agent", "b")),
}


@pytest.mark.parametrize("headers", ANSWERED.values(), ids=ANSWERED.keys())
async def test_a_request_that_is_well_formed_is_answered(headers: Headers) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, headers))
    assert talk.answers() and not talk.resets(), talk.goaway


RAW = {
    "RFC 7541 6.1 indexed": b"\xba",
    "RFC 7541 6.2.1 indexed name": b"\x7a\x06h2spec",
    "RFC 7541 6.2.1 indexed name, Huffman": b"\x7a\x84\x9c\x48\xac\xa4",
    "RFC 7541 6.2.1 new name": b"\x40\x06x-test\x06h2spec",
    "RFC 7541 6.2.1 new name, Huffman": b"\x40\x85\xf2\xb2\x4a\x84\xff\x84\x9c\x48\xac\xa4",
    "RFC 7541 6.2.2 indexed name": b"\x0f\x2b\x06h2spec",
    "RFC 7541 6.2.2 indexed name, Huffman": b"\x0f\x2b\x84\x9c\x48\xac\xa4",
    "RFC 7541 6.2.2 new name": b"\x00\x06x-test\x06h2spec",
    "RFC 7541 6.2.2 new name, Huffman": b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x9c\x48\xac\xa4",
    "RFC 7541 6.2.3 indexed name": b"\x1f\x2b\x06h2spec",
    "RFC 7541 6.2.3 indexed name, Huffman": b"\x1f\x2b\x84\x9c\x48\xac\xa4",
    "RFC 7541 6.2.3 new name": b"\x10\x06x-test\x06h2spec",
    "RFC 7541 6.2.3 new name, Huffman": b"\x10\x85\xf2\xb2\x4a\x84\xff\x84\x9c\x48\xac\xa4",
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
async def test_every_way_of_writing_a_header_is_read(raw: bytes) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(more=raw))
    assert talk.answers() and not talk.resets(), talk.goaway


@pytest.mark.parametrize("update", [b"\x20", b"\x20\x20"])
async def test_rfc_7541_6_3_a_table_may_be_given_up(update: bytes) -> None:
    talk = Talk()
    await talk.greet()
    block = update + talk.block(REQUEST)
    await talk.say(frame(1, 5, 1, block))
    assert talk.answers(), talk.goaway


MALFORMED: dict[str, Headers] = {
    "8.2.1 an upper-case name": (*REQUEST, ("X-TEST", "ok")),
    "8.2.1 a name with a space": (*REQUEST, ("x test", "ok")),
    "8.2.1 a name with a colon": (*REQUEST, ("x:test", "ok")),
    "8.2.1 an empty name": (*REQUEST, ("", "ok")),
    "8.2.1 a value with a line's end": (*REQUEST, ("x-test", "a\r\nb")),
    "8.2.1 a value with a zero": (*REQUEST, ("x-test", "a\0b")),
    "8.2.1 a value that begins with a space": (*REQUEST, ("x-test", " a")),
    "8.2.2 connection": (*REQUEST, ("connection", "keep-alive")),
    "8.2.2 keep-alive": (*REQUEST, ("keep-alive", "1")),
    "8.2.2 proxy-connection": (*REQUEST, ("proxy-connection", "keep-alive")),
    "8.2.2 transfer-encoding": (*REQUEST, ("transfer-encoding", "chunked")),
    "8.2.2 upgrade": (*REQUEST, ("upgrade", "websocket")),
    "8.2.2 te of anything else": (*REQUEST, ("te", "trailers, deflate")),
    "8.3 an unknown pseudo-header": (*REQUEST, (":test", "ok")),
    "8.3 a pseudo-header of responses": (*REQUEST, (":status", "200")),
    "8.3 a pseudo-header after a regular one": (METHOD, SCHEME, PATH, ("x-test", "ok"), AUTHORITY),
    "8.3.1 an empty :path": (METHOD, SCHEME, (":path", ""), AUTHORITY),
    "8.3.1 a :path without its slash": (METHOD, SCHEME, (":path", "x"), AUTHORITY),
    "8.3.1 no :method": (SCHEME, PATH, AUTHORITY),
    "8.3.1 no :scheme": (METHOD, PATH, AUTHORITY),
    "8.3.1 no :path": (METHOD, SCHEME, AUTHORITY),
    "8.3.1 :method twice": (*REQUEST, METHOD),
    "8.3.1 :scheme twice": (*REQUEST, SCHEME),
    "8.3.1 :path twice": (*REQUEST, PATH),
    "8.1.1 a content-length that is no number": (*REQUEST, ("content-length", "1x")),
    "8.1.1 two content-lengths": (*REQUEST, ("content-length", "0"), ("content-length", "1")),
    "8.1.1 a content-length without content": (*REQUEST, ("content-length", "1")),
}  # fmt: skip


@pytest.mark.parametrize("headers", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_request_that_is_malformed_is_reset_and_the_connection_goes_on(
    headers: Headers,
) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, headers))
    assert talk.resets() == [ErrorCode.PROTOCOL_ERROR], talk.goaway
    assert await talk.still_answers() and not talk.connection.streams


BODIES: dict[str, tuple[str, list[bytes]]] = {
    "longer than declared": ("1", [b"test"]),
    "longer than declared, in two frames": ("5", [b"test", b"test"]),
    "shorter than declared": ("9", [b"test"]),
}


@pytest.mark.parametrize("request_headers", [POST, GRPC], ids=["http", "grpc"])
@pytest.mark.parametrize(("declared", "pieces"), BODIES.values(), ids=BODIES.keys())
async def test_section_8_1_1_data_is_as_long_as_was_declared(
    declared: str, pieces: list[bytes], request_headers: Headers
) -> None:
    talk = Talk()
    await talk.greet()
    *first, last = pieces
    headers = (*request_headers, ("content-length", declared))
    said = [frame(DATA, 0, 1, piece) for piece in first] + [frame(DATA, END_STREAM, 1, last)]
    await talk.say(talk.headers(1, headers, ends=False), *said)
    assert talk.is_stream_error(ErrorCode.PROTOCOL_ERROR), talk.resets()


@pytest.mark.parametrize("request_headers", [POST, GRPC], ids=["http", "grpc"])
async def test_section_8_1_headers_in_the_middle_of_a_request_break_it(
    request_headers: Headers,
) -> None:
    talk = Talk()
    await talk.greet()
    again = talk.headers(1, (("x-test", "ok"),), ends=False)
    await talk.say(talk.headers(1, request_headers, ends=False), again)
    assert talk.is_stream_error(ErrorCode.PROTOCOL_ERROR)


async def test_section_8_1_pseudo_headers_in_trailers_break_it() -> None:
    talk = Talk()
    await talk.greet()
    trailers = talk.headers(1, ((":method", "200"),))
    await talk.say(talk.headers(1, GRPC, ends=False), trailers)
    assert talk.is_stream_error(ErrorCode.PROTOCOL_ERROR)


async def test_section_8_1_a_request_with_trailers_is_answered() -> None:
    talk = Talk()
    await talk.greet()
    trailers = talk.headers(1, (("x-test", "ok"),))
    await talk.say(talk.headers(1, POST, ends=False), frame(DATA, 0, 1, b"test"), trailers)
    assert talk.answers()


async def test_section_8_1_who_was_answered_and_goes_on_sending_is_told_to_stop() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, POST, ends=False), frame(DATA, 0, 1, b"test"))
    assert talk.resets() == [ErrorCode.NO_ERROR]
    await talk.say(frame(DATA, 0, 1, b"was on its way"))
    assert await talk.still_answers()
