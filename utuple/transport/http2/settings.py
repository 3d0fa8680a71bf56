"""What the ends of a connection tell each other first (RFC 9113, section 6.5). Pure."""

from __future__ import annotations

from utuple.transport.http2.frames import (
    ENABLE_PUSH,
    HEADER_TABLE_SIZE,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    ErrorCode,
    ProtocolError,
    settings,
    window_update,
)
from utuple.transport.http2.headers import MAX_BLOCK_BYTES
from utuple.transport.http2.limits import MOST_WINDOW, Limits

MAX_FRAME_BYTES = 256 << 10
"""Of DATA, that we take and that we send."""
FIRST_WINDOW = 65_535
FIRST_FRAME_BYTES = 16_384


def first_words(limits: Limits) -> bytes:
    """The settings of this end, and the connection's own window."""
    return settings(
        {
            HEADER_TABLE_SIZE: 0,
            ENABLE_PUSH: 0,
            MAX_CONCURRENT_STREAMS: limits.streams_per_connection,
            INITIAL_WINDOW_SIZE: limits.stream_window_bytes,
            MAX_FRAME_SIZE: MAX_FRAME_BYTES,
            MAX_HEADER_LIST_SIZE: MAX_BLOCK_BYTES,
        }
    ) + window_update(0, limits.connection_window_bytes - FIRST_WINDOW)


def check_setting(name: int, value: int) -> None:
    if name == INITIAL_WINDOW_SIZE and value > MOST_WINDOW:
        raise ProtocolError("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
    if name == MAX_FRAME_SIZE and not FIRST_FRAME_BYTES <= value < 1 << 24:
        raise ProtocolError(f"MAX_FRAME_SIZE {value}")
    if name == ENABLE_PUSH and value > 1:
        raise ProtocolError(f"ENABLE_PUSH {value}")
