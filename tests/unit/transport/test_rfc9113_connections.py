"""RFC 9113 as a server keeps it, section by section: frames, streams and the connection (sections 3 to 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.transport.rfc9113 import GRPC, POST, REQUEST, Talk
from utuple.transport.http2 import frames
from utuple.transport.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITISED,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    frame,
    head,
    rst_stream,
    settings,
    window_update,
)
from utuple.transport.http2.settings import MAX_FRAME_BYTES

PROTOCOL = ErrorCode.PROTOCOL_ERROR
SIZE = ErrorCode.FRAME_SIZE_ERROR
FLOW = ErrorCode.FLOW_CONTROL_ERROR
CLOSED = ErrorCode.STREAM_CLOSED
COMPRESSION = ErrorCode.COMPRESSION_ERROR
MOST = (1 << 31) - 1
ON_ITSELF = (1).to_bytes(4) + b"\xff"
ON_NOTHING = bytes(4) + b"\xff"

Said = Callable[[Talk], bytes]


def prioritised(talk: Talk, priority: bytes, flags: int = 0, number: int = 1) -> bytes:
    whole = END_HEADERS | END_STREAM | PRIORITISED | flags
    return frame(HEADERS, whole, number, priority + talk.block(REQUEST))


def padded(talk: Talk, padding: int, said: int) -> bytes:
    payload = bytes((said,)) + talk.block(REQUEST) + bytes(padding)
    return frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, payload)


def in_pieces(talk: Talk, *sizes: int, ends: bool = True) -> bytes:
    """A request whose headers go on in CONTINUATION frames."""
    block, said, kind = talk.block((*REQUEST, ("x-long", "y" * 200))), b"", HEADERS
    for size in sizes:
        flags = END_STREAM if kind == HEADERS and ends else 0
        said += frame(kind, flags, 1, block[:size])
        block, kind = block[size:], CONTINUATION
    return said + frame(kind, END_HEADERS, 1, block)


# Each is said after the greeting, and the server answers the call on stream 1.
ANSWERED: dict[str, Said] = {
    "4.1 a frame of unknown type": lambda t: frame(0x16, 0, 0, b"what") + t.headers(),
    "4.1 undefined flags": lambda t: frame(PING, 0x16, 0, bytes(8)) + t.headers(),
    "4.1 the reserved bit": lambda t: head(8, PING, 0, 1 << 31) + bytes(8) + t.headers(),
    "4.3 headers that are empty at first": lambda t: in_pieces(t, 0, 5),
    "5.1 PRIORITY on an idle stream": lambda t: frame(PRIORITY, 0, 1, ON_NOTHING) + t.headers(),
    "5.1 PRIORITY on a stream half closed": lambda t: t.headers() + frame(PRIORITY, 0, 1, ON_NOTHING),
    "5.1 PRIORITY on a closed stream": lambda t: (
        t.headers(1, POST, ends=False) + frame(DATA, END_STREAM, 1, b"") + frame(PRIORITY, 0, 1, ON_NOTHING)
    ),
    "5.1 WINDOW_UPDATE on a stream half closed": lambda t: t.headers() + window_update(1, 1),
    "5.1 RST_STREAM on a stream half closed": lambda t: t.headers() + rst_stream(1, ErrorCode.CANCEL),
    "5.1.1 numbers may be skipped": lambda t: t.headers(1) + t.headers(7),
    "5.3 a priority in HEADERS": lambda t: prioritised(t, ON_NOTHING),
    "5.3 a dependency on a stream that is not there": lambda t: prioritised(t, bytes(3) + b"\x05\x00"),
    "5.5 an unknown frame": lambda t: t.headers() + frame(0xFF, 0xFF, 1, b"extension"),
    "6.1 DATA of a request": lambda t: t.headers(1, POST, ends=False) + frame(DATA, END_STREAM, 1, b"test"),
    "6.1 DATA in several frames": lambda t: (
        t.headers(1, POST, ends=False) + frame(DATA, 0, 1, b"te") + frame(DATA, END_STREAM, 1, b"st")
    ),
    "6.1 DATA with padding": lambda t: (
        t.headers(1, POST, ends=False) + frame(DATA, END_STREAM | PADDED, 1, b"\x03test" + bytes(3))
    ),
    "4.2 DATA of 2^14 bytes": lambda t: (
        t.headers(1, POST, ends=False) + frame(DATA, END_STREAM, 1, bytes(1 << 14))
    ),
    "6.1 DATA of the largest size": lambda t: (
        t.headers(1, POST, ends=False) + frame(DATA, END_STREAM, 1, bytes(MAX_FRAME_BYTES))
    ),
    "6.2 HEADERS": lambda t: t.headers(),
    "6.2 HEADERS with padding": lambda t: padded(t, 4, 4),
    "6.2 HEADERS with a priority and padding": lambda t: frame(
        HEADERS,
        END_HEADERS | END_STREAM | PADDED | PRIORITISED,
        1,
        b"\x02" + ON_NOTHING + t.block(REQUEST) + bytes(2),
    ),
    "6.3 PRIORITY with the least weight": lambda t: frame(PRIORITY, 0, 3, bytes(5)) + t.headers(),
    "6.3 PRIORITY with the greatest weight": lambda t: frame(PRIORITY, 0, 3, ON_NOTHING) + t.headers(),
    "6.3 PRIORITY that depends on another stream": lambda t: frame(PRIORITY, 0, 3, (1).to_bytes(4) + b"\xff") + t.headers(),
    "6.3 PRIORITY that is exclusive": lambda t: frame(PRIORITY, 0, 3, b"\x80\0\0\0\x10") + t.headers(),
    "6.5.2 an unknown setting": lambda t: settings({0xFF: 1}) + t.headers(),
    "6.5.2 settings of every kind": lambda t: (
        settings({1: 4096, 2: 0, 3: 100, 4: 1 << 20, 5: 1 << 20, 6: 1 << 14}) + t.headers()
    ),
    "6.7 an answer to a ping that was not sent": lambda t: frame(PING, ACK, 0, bytes(8)) + t.headers(),
    "6.9 WINDOW_UPDATE on the connection": lambda t: window_update(0, 1) + t.headers(),
    "6.9 WINDOW_UPDATE on a stream": lambda t: t.headers(1, POST, ends=False) + window_update(1, 1),
    "6.10 one CONTINUATION": lambda t: in_pieces(t, 10),
    "6.10 several CONTINUATIONs": lambda t: in_pieces(t, 10, 10, 10),
    "7 RST_STREAM with an unknown code": lambda t: (
        t.headers(1, POST, ends=False) + frame(RST_STREAM, 0, 1, b"\0\0\0\xff")
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", ANSWERED.values(), ids=ANSWERED.keys())
async def test_what_the_rfc_allows_is_answered_and_the_connection_goes_on(said: Said) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(said(talk))
    assert talk.answers(), talk.goaway
    assert await talk.still_answers()


# Each is said after the greeting; the connection ends with this error.
BROKEN: dict[str, tuple[Said, ErrorCode]] = {
    "4.2 HEADERS larger than they may be": (lambda t: head(16_385, HEADERS, 5, 1) + bytes(16_385), SIZE),
    "4.2 DATA larger than MAX_FRAME_SIZE": (
        lambda t: t.headers(1, POST, ends=False) + head(MAX_FRAME_BYTES + 1, DATA, 0, 1), SIZE),
    "4.3 a header block that is none": (lambda t: frame(HEADERS, 5, 1, b"\x00\x00\x01"), COMPRESSION),
    "4.3 PRIORITY between headers": (
        lambda t: frame(HEADERS, 0, 1, t.block(REQUEST)) + frame(PRIORITY, 0, 1, ON_NOTHING), PROTOCOL),
    "4.3 HEADERS of another stream between headers": (
        lambda t: frame(HEADERS, 0, 1, t.block(REQUEST)) + t.headers(3), PROTOCOL),
    "5.1 DATA on an idle stream": (lambda t: frame(DATA, END_STREAM, 1, b"test"), PROTOCOL),
    "5.1 RST_STREAM on an idle stream": (lambda t: rst_stream(1, ErrorCode.CANCEL), PROTOCOL),
    "5.1 WINDOW_UPDATE on an idle stream": (lambda t: window_update(1, 100), PROTOCOL),
    "5.1 CONTINUATION on an idle stream": (lambda t: frame(CONTINUATION, 4, 1, t.block(REQUEST)), PROTOCOL),
    "5.1 DATA on a closed stream": (lambda t: t.headers() + frame(DATA, END_STREAM, 1, b"test"), CLOSED),
    "5.1 HEADERS on a closed stream": (lambda t: t.headers() + t.headers(), CLOSED),
    "5.1 CONTINUATION on a closed stream": (
        lambda t: t.headers() + frame(CONTINUATION, 4, 1, t.block(REQUEST)), PROTOCOL),
    "5.1 DATA after RST_STREAM": (
        lambda t: t.headers(1, POST, ends=False) + rst_stream(1, ErrorCode.CANCEL) + frame(DATA, 0, 1, b"x"), CLOSED),
    "5.1 HEADERS after RST_STREAM": (
        lambda t: t.headers(1, POST, ends=False) + rst_stream(1, ErrorCode.CANCEL) + t.headers(), CLOSED),
    "5.1 CONTINUATION after RST_STREAM": (
        lambda t: t.headers(1, POST, ends=False) + rst_stream(1, ErrorCode.CANCEL)
        + frame(CONTINUATION, 4, 1, b""), PROTOCOL),
    "5.1.1 an even number": (lambda t: t.headers(2), PROTOCOL),
    "5.1.1 a number below the last": (lambda t: t.headers(5) + t.headers(3), PROTOCOL),
    "5.3.1 HEADERS that depend on themselves": (lambda t: prioritised(t, ON_ITSELF), PROTOCOL),
    "5.3.1 PRIORITY that depends on itself": (lambda t: frame(PRIORITY, 0, 1, ON_ITSELF), PROTOCOL),
    "5.5 an unknown frame between headers": (
        lambda t: frame(HEADERS, 0, 1, t.block(REQUEST)) + frame(0xFF, 0, 1, b"x"), PROTOCOL),
    "6.1 DATA on stream 0": (lambda t: frame(DATA, END_STREAM, 0, b"test"), PROTOCOL),
    "6.1 more padding than DATA": (
        lambda t: t.headers(1, POST, ends=False) + frame(DATA, END_STREAM | PADDED, 1, b"\x09test"), PROTOCOL),
    "6.2 HEADERS without an end, then PRIORITY": (
        lambda t: frame(HEADERS, END_STREAM, 1, t.block(REQUEST)) + frame(PRIORITY, 0, 1, ON_NOTHING), PROTOCOL),
    "6.2 HEADERS without an end, then another stream": (
        lambda t: frame(HEADERS, END_STREAM, 1, t.block(REQUEST)) + frame(DATA, 0, 3, b""), PROTOCOL),
    "6.2 HEADERS on stream 0": (lambda t: t.headers(0), PROTOCOL),
    "6.2 more padding than HEADERS": (lambda t: frame(HEADERS, 5 | PADDED, 1, b"\x10abc"), PROTOCOL),
    "6.3 PRIORITY on stream 0": (lambda t: frame(PRIORITY, 0, 0, ON_NOTHING), PROTOCOL),
    "6.3 PRIORITY of another size": (lambda t: frame(PRIORITY, 0, 1, bytes(4)), SIZE),
    "6.4 RST_STREAM on stream 0": (lambda t: rst_stream(0, ErrorCode.CANCEL), PROTOCOL),
    "6.4 RST_STREAM of another size": (lambda t: t.headers() + frame(RST_STREAM, 0, 1, bytes(3)), SIZE),
    "6.5 SETTINGS that answer and set": (lambda t: frame(SETTINGS, ACK, 0, bytes(6)), SIZE),
    "6.5 SETTINGS on a stream": (lambda t: frame(SETTINGS, 0, 1, bytes(6)), PROTOCOL),
    "6.5 SETTINGS of an odd size": (lambda t: frame(SETTINGS, 0, 0, bytes(3)), SIZE),
    "6.5.2 ENABLE_PUSH of 2": (lambda t: settings({2: 2}), PROTOCOL),
    "6.5.2 INITIAL_WINDOW_SIZE too large": (lambda t: settings({4: 1 << 31}), FLOW),
    "6.5.2 MAX_FRAME_SIZE too small": (lambda t: settings({5: 16_383}), PROTOCOL),
    "6.5.2 MAX_FRAME_SIZE too large": (lambda t: settings({5: 1 << 24}), PROTOCOL),
    "6.5.3 a wrong value before a right one": (
        lambda t: frame(SETTINGS, 0, 0, b"\0\x05\0\0\0\0\0\x05\0\0\x40\0"), PROTOCOL),
    "6.6 PUSH_PROMISE from a client": (lambda t: frame(frames.PUSH_PROMISE, 4, 1, bytes(4)), PROTOCOL),
    "6.7 PING on a stream": (lambda t: frame(PING, 0, 1, bytes(8)), PROTOCOL),
    "6.7 PING of another size": (lambda t: frame(PING, 0, 0, bytes(6)), SIZE),
    "6.8 GOAWAY on a stream": (lambda t: frame(frames.GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    "6.9 WINDOW_UPDATE of 0": (lambda t: window_update(0, 0), PROTOCOL),
    "6.9 WINDOW_UPDATE of another size": (lambda t: frame(WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    "6.9.1 the connection's window above the most": (lambda t: window_update(0, MOST) * 2, FLOW),
    "6.9.2 a stream's window above the most by SETTINGS": (
        lambda t: settings({4: 0}) + t.headers(1, GRPC, ends=False) + window_update(1, MOST) + settings({4: 1}), FLOW),
    "6.10 CONTINUATION that is followed by DATA": (
        lambda t: frame(HEADERS, 0, 1, t.block(REQUEST)) + frame(DATA, 0, 1, b""), PROTOCOL),
    "6.10 CONTINUATION on stream 0": (
        lambda t: frame(HEADERS, 0, 1, t.block(REQUEST)) + frame(CONTINUATION, 4, 0, b""), PROTOCOL),
    "6.10 CONTINUATION after HEADERS that had ended": (
        lambda t: t.headers() + frame(CONTINUATION, 4, 1, t.block(REQUEST)), PROTOCOL),
    "6.10 CONTINUATION after CONTINUATION that had ended": (
        lambda t: in_pieces(t, 10) + frame(CONTINUATION, 4, 1, b""), PROTOCOL),
    "6.10 CONTINUATION after DATA": (
        lambda t: t.headers(1, POST, ends=False) + frame(DATA, 0, 1, b"x") + frame(CONTINUATION, 4, 1, b""), PROTOCOL),
    "RFC 7541 2.3.3 an index beyond the tables": (lambda t: t.headers(more=b"\xff\x00"), COMPRESSION),
    "RFC 7541 2.3.3 a name beyond the tables": (lambda t: t.headers(more=b"\x7f\x40\x01x"), COMPRESSION),
    "RFC 7541 4.2 a table's size at the end": (lambda t: t.headers(more=b"\x20"), COMPRESSION),
    "RFC 7541 5.2 Huffman padding longer than 7 bits": (
        lambda t: t.headers(more=b"\x00\x85\xf2\xb2\x4a\x84\xff\x85\x9c\x48\xac\xa4\xff"), COMPRESSION),
    "RFC 7541 5.2 Huffman padding of zeros": (
        lambda t: t.headers(more=b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x9c\x48\xa8"), COMPRESSION),
    "RFC 7541 5.2 Huffman's end of string": (
        lambda t: t.headers(more=b"\x00\x85\xf2\xb2\x4a\x84\xff\x87\xff\xff\xff\xfa\x9c\x48\xac"), COMPRESSION),
    "RFC 7541 6.1 index 0": (lambda t: t.headers(more=b"\x80"), COMPRESSION),
    "RFC 7541 6.3 a table larger than was allowed": (
        lambda t: frame(HEADERS, 5, 1, b"\x21" + t.block(REQUEST)), COMPRESSION),
}  # fmt: skip


@pytest.mark.parametrize(("said", "code"), BROKEN.values(), ids=BROKEN.keys())
async def test_what_the_rfc_forbids_ends_the_connection_with_its_error(
    said: Said, code: ErrorCode
) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(said(talk))
    assert talk.is_connection_error(code), talk.goaway
    assert not talk.connection.streams and not talk.server.connections, "nothing is kept"


# Each is said after the greeting; stream 1 ends with this error.
STREAM_BROKEN: dict[str, tuple[Said, ErrorCode]] = {
    "5.1 DATA on a stream half closed": (
        lambda t: settings({4: 0}) + t.headers() + frame(DATA, END_STREAM, 1, b"test"), CLOSED),
    "5.1 HEADERS on a stream half closed": (lambda t: settings({4: 0}) + t.headers() + t.headers(), CLOSED),
    "5.1 CONTINUATION on a stream half closed": (
        lambda t: settings({4: 0}) + t.headers() + frame(CONTINUATION, 4, 1, t.block(REQUEST)), PROTOCOL),
    "6.9 WINDOW_UPDATE of 0 on a stream": (
        lambda t: t.headers(1, POST, ends=False) + window_update(1, 0), PROTOCOL),
    "6.9 WINDOW_UPDATE of 0 on a call": (
        lambda t: t.headers(1, GRPC, ends=False) + window_update(1, 0), PROTOCOL),
    "6.9.1 a stream's window above the most": (
        lambda t: t.headers(1, POST, ends=False) + window_update(1, MOST) * 2, FLOW),
    "6.9.1 a call's window above the most": (
        lambda t: t.headers(1, GRPC, ends=False) + window_update(1, MOST) * 2, FLOW),
}  # fmt: skip


@pytest.mark.parametrize(("said", "code"), STREAM_BROKEN.values(), ids=STREAM_BROKEN.keys())
async def test_what_breaks_a_stream_ends_it_with_its_error(said: Said, code: ErrorCode) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(said(talk))
    assert talk.is_stream_error(code), (talk.resets(), talk.goaway)


async def test_section_3_4_the_server_says_its_settings_first() -> None:
    talk = Talk()
    await talk.say(PREFACE, settings({}))
    first = frames.FrameReader(1 << 20).feed(bytes(talk.wire.written))[0]
    assert (first.kind, first.flags) == (SETTINGS, 0)


async def test_section_3_4_who_does_not_begin_with_the_preface_is_hung_up_on() -> None:
    talk = Talk()
    await talk.say(b"INVALID CONNECTION PREFACE\r\n\r\n")
    assert talk.wire.is_closed


@pytest.mark.parametrize("first", [frame(PING, 0, 0, bytes(8)), frame(SETTINGS, ACK, 0)])
async def test_section_3_4_the_client_must_begin_with_settings(first: bytes) -> None:
    talk = Talk()
    await talk.say(PREFACE, first)
    assert talk.is_connection_error(PROTOCOL)


async def test_section_5_1_2_more_streams_than_allowed_are_refused_one_by_one() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(settings({frames.INITIAL_WINDOW_SIZE: 0}))
    most = talk.limits.streams_per_connection
    block = frame(HEADERS, END_HEADERS | END_STREAM, 1, talk.block(REQUEST))[9:]
    for number in range(1, 2 * most + 2, 2):
        await talk.say(frame(HEADERS, END_HEADERS | END_STREAM, number, block))
    assert talk.is_stream_error(ErrorCode.REFUSED_STREAM, number=2 * most + 1)
    assert len(talk.connection.streams) == most


async def test_section_5_4_1_a_connection_error_is_said_before_it_is_closed() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(frame(PING, 0, 0, bytes(6)))
    last = frames.FrameReader(1 << 20).feed(bytes(talk.wire.written))[-1]
    assert last.kind == frames.GOAWAY and talk.wire.is_closed


async def test_section_6_5_3_settings_are_taken_in_their_order_and_answered() -> None:
    talk = Talk()
    await talk.greet()
    answers = len([one for one in talk.heard(SETTINGS) if one.flags & ACK])
    await talk.say(frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\x64\0\x04\0\0\0\x01"), talk.headers())
    assert len([one for one in talk.heard(SETTINGS) if one.flags & ACK]) == answers + 1
    assert talk.data_sizes() == [1], "the second value counts"


async def test_section_6_9_1_no_more_is_sent_than_a_window_of_one_byte_takes() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(settings({frames.INITIAL_WINDOW_SIZE: 1}), talk.headers())
    assert talk.data_sizes() == [1]
    await talk.say(window_update(1, 3))
    assert talk.data_sizes() == [1, 3]


async def test_section_6_9_1_a_message_leaves_also_by_windows_smaller_than_its_prefix() -> None:
    talk = Talk()
    await talk.greet()
    asked = frame(DATA, END_STREAM, 1, b"\0\0\0\0\x05hello")
    await talk.say(settings({4: 2}), talk.headers(1, GRPC, ends=False), asked)
    for _ in range(8):
        await talk.say(window_update(1, 1))
    sent = b"".join(bytes(one.payload) for one in talk.heard(DATA, 1))
    assert sent == b"\0\0\0\0\x05hello" and talk.data_sizes() == [2, *[1] * 8]


async def test_section_6_9_2_new_settings_change_windows_that_are_open() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(settings({4: 0}), talk.headers())
    assert not talk.data_sizes()
    await talk.say(settings({4: 1}))
    assert talk.data_sizes() == [1]


async def test_section_6_9_2_a_window_may_become_negative_and_is_kept_so() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(settings({4: 3}), talk.headers(), settings({4: 2}), window_update(1, 2))
    assert talk.data_sizes() == [3, 1]


async def test_section_6_7_a_ping_is_answered_with_what_it_holds() -> None:
    talk = Talk()
    await talk.greet()
    assert await talk.still_answers()


@pytest.mark.parametrize("code", [0, 0xFF])
async def test_section_6_8_a_client_that_leaves_is_let_go_when_its_calls_are_over(
    code: int,
) -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(
        talk.headers(1, GRPC, ends=False), frame(frames.GOAWAY, 0, 0, bytes(7) + bytes((code,)))
    )
    was_closed = talk.wire.is_closed
    await talk.say(frame(DATA, END_STREAM, 1, b""))
    assert not was_closed and talk.is_connection_error(ErrorCode.NO_ERROR)


async def test_section_6_9_1_who_sends_more_than_a_stream_was_granted_is_hung_up_on() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, GRPC, ends=False))
    talk.connection.streams[1].pause()
    for message in [b"\0\0\0\x40\0" + bytes(1 << 14)] * 300:
        if not talk.wire.is_closed:
            talk.connection.data_received(frame(DATA, 0, 1, message))
    assert talk.is_connection_error(FLOW)
