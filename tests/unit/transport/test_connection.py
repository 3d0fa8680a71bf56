"""A connection on a wire that is a list of bytes: whatever comes, nothing breaks but the connection."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.transport.http2 import frames
from utuple.transport.http2.frames import PREFACE, FrameReader, frame, head, settings, window_update
from utuple.transport.http2.headers import encode
from utuple.transport.http2.stream import STREAM_WINDOW_BYTES, Stream
from utuple.transport.inbound import ServerConnection
from utuple.transport.messages import Unreadable, prefix
from utuple.transport.server import Server

MOST_BYTES = 1 << 20


class Wire:
    """What a transport does, as far as a connection asks."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def kinds(self) -> list[int]:
        return [one.kind for one in FrameReader(MOST_BYTES).feed(bytes(self.written))]


def opened() -> tuple[ServerConnection, Wire]:
    connection, wire = ServerConnection(Server(MOST_BYTES)), Wire()
    connection.connection_made(cast(Any, wire))
    return connection, wire


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_rubbish_closes_the_connection_or_is_waited_for_and_raises_nothing(
    pieces: list[bytes], greets: bool
) -> None:
    async def feed() -> None:
        connection, wire = opened()
        for piece in [PREFACE] * greets + pieces:
            if not wire.is_closed:
                connection.data_received(piece)
        assert connection.is_open is not wire.is_closed
        connection.abort("over")
        assert not connection.streams
        await asyncio.sleep(0)

    asyncio.run(feed())


@pytest.mark.parametrize(
    "broken",
    [
        frame(frames.CONTINUATION, 0, 1, b""),
        frame(frames.HEADERS, 0, 1, b"") + frame(frames.PING, 0, 0, bytes(8)),
        frame(frames.HEADERS, frames.END_HEADERS, 2, encode([(":path", "/x")])),
        frame(frames.HEADERS, frames.END_HEADERS, 0, b""),
        frame(frames.PING, 0, 0, b"short"),
        frame(frames.PUSH_PROMISE, 0, 1, b""),
        frame(frames.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"),
        settings({frames.MAX_FRAME_SIZE: 1}),
        settings({frames.INITIAL_WINDOW_SIZE: 1 << 31}),
        head(1 << 23, frames.HEADERS, 0, 1),
    ],
)
async def test_who_breaks_the_protocol_is_told_so_and_hung_up_on(broken: bytes) -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({}) + broken)
    assert wire.is_closed and wire.kinds()[-1] == frames.GOAWAY


async def test_who_does_not_speak_http2_is_hung_up_on() -> None:
    connection, wire = opened()
    connection.data_received(b"GET / HTTP/1.1\r\n")
    assert wire.is_closed


class Sent(Stream):
    """A stream of a connection whose peer takes little."""


def data_in(wire: Wire) -> bytes:
    came = FrameReader(MOST_BYTES).feed(bytes(wire.written))
    return b"".join(bytes(one.payload) for one in came if one.kind == frames.DATA)


async def test_a_message_leaves_as_the_peer_takes_it_and_nothing_comes_between_its_pieces() -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({frames.INITIAL_WINDOW_SIZE: 10}))
    stream = Sent(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    message = bytes(range(200))
    resumed: list[bytes] = []
    stream.when_writable(lambda: resumed.append(data_in(wire)))
    stream.send(message)
    connection.data_received(window_update(1, 7))
    stream.send(b"next")
    was_writable = stream.is_writable
    assert not was_writable, "there is room, but the other is on its way"
    draining = asyncio.create_task(stream.drained())
    stream.end()
    for _ in range(30):
        connection.data_received(window_update(1, 7))
    both = prefix(message) + message + prefix(b"next") + b"next"
    assert data_in(wire) == both and resumed == [both]
    assert await draining and stream.is_writable
    ends = FrameReader(MOST_BYTES).feed(bytes(wire.written))[-1]
    assert ends.flags & frames.END_STREAM, "the end comes after what was queued"


async def test_a_socket_whose_buffer_is_full_takes_no_more_until_it_resumes() -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({}))
    stream = Sent(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    connection.pause_writing()
    stream.send(b"hello")
    was_writable = stream.is_writable
    assert not data_in(wire) and not was_writable
    connection.resume_writing()
    assert data_in(wire) == prefix(b"hello") + b"hello" and stream.is_writable


async def test_who_waits_to_write_hears_that_the_stream_is_closed() -> None:
    connection, _ = opened()
    connection.data_received(PREFACE + settings({frames.INITIAL_WINDOW_SIZE: 0}))
    stream = Sent(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    stream.send(b"hello")
    draining = asyncio.create_task(stream.drained())
    await asyncio.sleep(0)
    stream.close()
    assert not await draining and not stream.is_writable


async def test_a_peer_gets_room_for_what_was_taken_and_no_more() -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({}))
    stream = Sent(connection, 1, 8 << 20)
    connection.streams[1] = stream
    size = STREAM_WINDOW_BYTES // 8
    raw = prefix(bytes(size)) + bytes(size)
    for _ in range(7):
        for at in range(0, len(raw), 16_000):
            connection.data_received(frame(frames.DATA, 0, 1, raw[at : at + 16_000]))
    assert frames.WINDOW_UPDATE not in wire.kinds()[2:], "nobody has taken anything"
    for _ in range(7):
        assert await stream.receive() == bytes(size)
    granted = [
        frames.number_of(one.payload)
        for one in FrameReader(MOST_BYTES).feed(bytes(wire.written))
        if one.kind == frames.WINDOW_UPDATE and one.stream == 1
    ]
    assert STREAM_WINDOW_BYTES // 2 <= sum(granted) <= 7 * len(raw)


async def test_a_message_larger_than_the_window_comes_all_the_same() -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({}))
    stream = Sent(connection, 1, 64 << 20)
    connection.streams[1] = stream
    size = 2 * STREAM_WINDOW_BYTES
    connection.data_received(frame(frames.DATA, 0, 1, prefix(bytes(size))))
    for _ in range(size // 16_384):
        connection.data_received(frame(frames.DATA, 0, 1, bytes(16_384)))
    assert wire.kinds().count(frames.WINDOW_UPDATE) >= 4
    assert await stream.receive() == bytes(size)


def arrive(connection: ServerConnection, *messages: bytes) -> None:
    for message in messages:
        connection.data_received(frame(frames.DATA, 0, 1, prefix(message) + message))


async def test_messages_are_handled_as_they_come_in_order_and_kept_while_paused() -> None:
    connection, _ = opened()
    connection.data_received(PREFACE + settings({}))
    stream = Sent(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    handled: list[bytes] = []

    def handle(message: bytes) -> None:
        handled.append(message)
        if message == b"2":
            stream.pause()

    arrive(connection, b"0")
    receiving = asyncio.create_task(stream.receive_all(handle))
    await asyncio.sleep(0)
    assert handled == [b"0"], "also what came before"
    arrive(connection, b"1", b"2", b"3", b"4")
    assert handled == [b"0", b"1", b"2"]
    connection.data_received(frame(frames.DATA, frames.END_STREAM, 1, b""))
    stream.resume()
    assert handled == [b"0", b"1", b"2", b"3", b"4"]
    await receiving


async def test_what_a_handler_raises_ends_the_receiving_and_nothing_more_is_handled() -> None:
    connection, _ = opened()
    connection.data_received(PREFACE + settings({}))
    stream = Sent(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    handled: list[bytes] = []

    def handle(message: bytes) -> None:
        handled.append(message)
        raise ValueError("a message nobody can read")

    receiving = asyncio.create_task(stream.receive_all(handle))
    await asyncio.sleep(0)
    arrive(connection, b"0", b"1")
    with pytest.raises(ValueError, match="nobody can read"):
        await receiving
    assert handled == [b"0"]
    assert connection.is_open


class Refused(Sent):
    def on_unreadable(self, error: Unreadable) -> None:
        self.refused = str(error)


async def test_a_message_that_is_broken_off_at_the_end_is_refused() -> None:
    connection, _ = opened()
    connection.data_received(PREFACE + settings({}))
    stream = Refused(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    connection.data_received(frame(frames.DATA, frames.END_STREAM, 1, prefix(b"hello") + b"he"))
    assert stream.refused == "a message is broken off"


async def test_nothing_is_logged_when_much_is_written_to_a_peer_that_has_died(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """asyncio says "socket.send() raised exception." for each write after the one that failed."""
    ours, theirs = socket.socketpair()
    lost = asyncio.Event()

    class Noticed(ServerConnection):
        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            lost.set()

    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Noticed(Server(MOST_BYTES)), sock=ours)
    theirs.close()
    for _ in range(20):  # in one turn of the loop
        connection.write(window_update(0, 1))
    assert connection.is_open, "it has not heard yet"
    async with asyncio.timeout(10):
        await lost.wait()
    assert caplog.messages == []


async def test_a_ping_is_answered_with_what_it_holds() -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({}) + frame(frames.PING, 0, 0, b"12345678"))
    (answer,) = [
        one for one in FrameReader(MOST_BYTES).feed(bytes(wire.written)) if one.kind == frames.PING
    ]
    assert (answer.flags, bytes(answer.payload)) == (frames.ACK, b"12345678")


async def test_new_settings_give_room_to_streams_that_are_open() -> None:
    connection, _ = opened()
    connection.data_received(PREFACE + settings({frames.INITIAL_WINDOW_SIZE: 0}))
    stream = Sent(connection, 1, MOST_BYTES)
    connection.streams[1] = stream
    stream.send(b"hello")
    was_writable = stream.is_writable
    assert not was_writable
    connection.data_received(settings({frames.INITIAL_WINDOW_SIZE: 100}))
    assert stream.is_writable
    assert stream.window == 90


async def test_a_server_that_leaves_refuses_new_calls() -> None:
    connection, wire = opened()
    connection.data_received(PREFACE + settings({}))
    connection.leave()
    asked = encode([(":method", "POST"), (":scheme", "http"), (":path", "/x")])
    connection.data_received(frame(frames.HEADERS, frames.END_HEADERS, 1, asked))
    last = FrameReader(MOST_BYTES).feed(bytes(wire.written))[-1]
    assert last.kind == frames.RST_STREAM
    assert frames.number_of(last.payload) == frames.ErrorCode.REFUSED_STREAM
