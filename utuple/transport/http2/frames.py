"""HTTP/2 frames (RFC 9113, sections 4 and 6): bytes in, frames out, and back. Pure."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client says first."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE = range(9)
CONTINUATION = 9

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITISED = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(
    1, 6
)
MAX_HEADER_LIST_SIZE = 6

PING_BYTES = 8
_PRIORITY_BYTES = 5
_SIZES = {PRIORITY: _PRIORITY_BYTES, RST_STREAM: 4, PING: PING_BYTES, WINDOW_UPDATE: 4}
"""Frames that have one size only."""
_OF_STREAMS = frozenset((DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION))
_OF_CONNECTIONS = frozenset((SETTINGS, PING, GOAWAY))
_NAMES = (
    *("DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY"),
    *("WINDOW_UPDATE", "CONTINUATION"),
)

HEAD_BYTES = 9
_HEAD = Struct(">HBBBI")
_SETTING = Struct(">HI")
_NUMBER = Struct(">I")
_CONTROL_BYTES = 16 << 10
"""The most that any other frame than DATA may hold: it is kept until it is whole."""
_STREAM_MASK = 0x7FFFFFFF
_VIEWED_BYTES = 4096
"""A piece that is larger, and at least half of what came with it, is looked at where it lies. Copying a smaller one costs less,
and a view of a small part would keep all the rest."""


class ErrorCode(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ProtocolError(Exception):
    """The peer breaks the protocol: the connection cannot go on."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.PROTOCOL_ERROR) -> None:
        super().__init__(message)
        self.code = code


Piece = bytes | memoryview


class Frame(NamedTuple):
    """Of a DATA frame perhaps only a piece: its END_STREAM is with the last."""

    kind: int
    flags: int
    stream: int
    payload: Piece
    counted: int
    """Bytes it takes of the windows."""


def head(length: int, kind: int, flags: int, stream: int) -> bytes:
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return head(len(payload), kind, flags, stream) + payload


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in values.items()))


def settings_of(payload: Piece) -> list[tuple[int, int]]:
    """In their order; one may be there twice."""
    if len(payload) % _SETTING.size:
        raise ProtocolError("SETTINGS of an odd size", ErrorCode.FRAME_SIZE_ERROR)
    return list(_SETTING.iter_unpack(payload))


def name_of(kind: int) -> str:
    return _NAMES[kind] if kind < len(_NAMES) else f"frame {kind}"


def check(came: Frame) -> None:
    """What can be said of a frame by itself (RFC 9113, section 6): its size, and whether it is one of a stream."""
    kind, flags, stream, payload, _ = came
    size = _SIZES.get(kind)
    if size is not None and len(payload) != size:
        what = f"{name_of(kind)} of {len(payload)} bytes"
        raise ProtocolError(what, ErrorCode.FRAME_SIZE_ERROR)
    if (not stream and kind in _OF_STREAMS) or (stream and kind in _OF_CONNECTIONS):
        raise ProtocolError(f"{name_of(kind)} on stream {stream}")
    if kind == PUSH_PROMISE:
        raise ProtocolError("a push, which nobody asked for")
    if kind == SETTINGS and flags & ACK and payload:
        raise ProtocolError("SETTINGS that both answer and set", ErrorCode.FRAME_SIZE_ERROR)
    if kind == PRIORITY and number_of(payload) & _STREAM_MASK == stream:
        raise ProtocolError(f"stream {stream} depends on itself")


def number_of(payload: Piece) -> int:
    """Of a frame whose payload begins with one: WINDOW_UPDATE, RST_STREAM."""
    if len(payload) < _NUMBER.size:
        raise ProtocolError("a frame is too short", ErrorCode.FRAME_SIZE_ERROR)
    number: int = _NUMBER.unpack_from(payload)[0]
    return number


def window_update(stream: int, bytes_: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, _NUMBER.pack(bytes_))


def rst_stream(stream: int, code: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream, _NUMBER.pack(code))


def goaway(last_stream: int, code: ErrorCode, reason: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, _NUMBER.pack(last_stream) + _NUMBER.pack(code) + reason.encode())


def unpadded(kind: int, flags: int, stream: int, payload: Piece) -> Piece:
    """What a HEADERS or DATA frame holds, without its padding and priority."""
    start, end = 0, len(payload)
    if flags & PADDED:
        if not end:
            raise ProtocolError("padding without its length")
        start, end = 1, end - payload[0]
    if kind == HEADERS and flags & PRIORITISED:
        start += _PRIORITY_BYTES
        if start <= end and number_of(payload[start - _PRIORITY_BYTES :]) & _STREAM_MASK == stream:
            raise ProtocolError(f"stream {stream} depends on itself")
    if start > end:
        raise ProtocolError("more padding than payload")
    return payload[start:end]


class FrameReader:
    """What comes in pieces of any size leaves as frames. DATA is not kept until its frame is whole."""

    def __init__(self, max_frame_bytes: int, frames_per_call: int = 1) -> None:
        """A HEADERS frame counts as so many: it begins a call."""
        self._most = max_frame_bytes
        self._frames_per_call = frames_per_call
        self._held = b""
        self.has_more = False
        """Frames may be there that were not given yet: `feed(b"")` gives them."""
        self._left = 0
        """Of the DATA frame that is being read."""
        self._flags = 0
        self._stream = 0

    def feed(self, data: bytes, most: int = 1 << 30) -> list[Frame]:
        """About so many at the most; the others are kept."""
        if self._held:
            data = self._held + data
        elif not self._left and (only := self._only(data)) is not None:
            return [only]
        frames: list[Frame] = []
        at, end, given = 0, len(data), 0
        self.has_more = False
        while True:
            if given >= most:
                self.has_more = at < end
                break
            if self._left:
                size = min(self._left, end - at)
                if not size:
                    break
                self._left -= size
                flags = self._flags & ~END_STREAM if self._left else self._flags
                piece = _piece(data, at, at + size)
                frames.append(Frame(DATA, flags, self._stream, piece, size))
                given += 1
                at += size
                continue
            if end - at < HEAD_BYTES:
                break
            high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if length > (self._most if kind == DATA else min(self._most, _CONTROL_BYTES)):
                raise ProtocolError(f"a frame of {length} bytes", ErrorCode.FRAME_SIZE_ERROR)
            stream &= _STREAM_MASK
            if kind == DATA and length and not flags & PADDED:
                self._left, self._flags, self._stream = length, flags, stream
                at += HEAD_BYTES
                continue
            stop = at + HEAD_BYTES + length
            if stop > end:
                break
            payload: Piece = data[at + HEAD_BYTES : stop]
            if kind in (DATA, HEADERS):
                payload = unpadded(kind, flags, stream, payload)
            frames.append(Frame(kind, flags, stream, payload, length))
            given += self._frames_per_call if kind == HEADERS else 1
            at = stop
        self._held = data[at:]
        return frames

    def keep(self, data: bytes) -> None:
        """For later."""
        self._held += data

    def _only(self, data: bytes) -> Frame | None:
        """All there is, if it is one frame of DATA: as it mostly is."""
        if len(data) <= HEAD_BYTES:
            return None
        high, low, kind, flags, stream = _HEAD.unpack_from(data)
        length = high << 8 | low
        if (
            kind != DATA
            or flags & PADDED
            or length != len(data) - HEAD_BYTES
            or length > self._most
        ):
            return None
        payload = _piece(data, HEAD_BYTES, len(data))
        return Frame(DATA, flags, stream & _STREAM_MASK, payload, length)


def _piece(data: bytes, start: int, stop: int) -> Piece:
    if stop - start < max(_VIEWED_BYTES, len(data) // 2):
        return data[start:stop]
    return memoryview(data)[start:stop]
