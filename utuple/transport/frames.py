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

HEAD_BYTES = 9
_HEAD = Struct(">HBBBI")
_SETTING = Struct(">HI")
_NUMBER = Struct(">I")
_STREAM_MASK = 0x7FFFFFFF
_VIEWED_BYTES = 4096
"""A piece that is larger is looked at where it lies; copying a smaller one costs less than that."""


class ErrorCode(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
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


def settings_of(payload: Piece) -> dict[int, int]:
    if len(payload) % _SETTING.size:
        raise ProtocolError("SETTINGS of an odd size", ErrorCode.FRAME_SIZE_ERROR)
    return dict(_SETTING.iter_unpack(payload))


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


def unpadded(flags: int, payload: Piece) -> Piece:
    """What a HEADERS or DATA frame holds, without its padding and priority."""
    start, end = 0, len(payload)
    if flags & PADDED:
        if not end:
            raise ProtocolError("padding without its length")
        start, end = 1, end - payload[0]
    if flags & PRIORITISED:
        start += 5
    if start > end:
        raise ProtocolError("more padding than payload")
    return payload[start:end]


class FrameReader:
    """What comes in pieces of any size leaves as frames. DATA is not kept until its frame is whole."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._most = max_frame_bytes
        self._held = b""
        self._left = 0
        """Of the DATA frame that is being read."""
        self._flags = 0
        self._stream = 0

    def feed(self, data: bytes) -> list[Frame]:
        if self._held:
            data = self._held + data
        elif not self._left and (only := self._only(data)) is not None:
            return [only]
        frames: list[Frame] = []
        at, end = 0, len(data)
        while True:
            if self._left:
                size = min(self._left, end - at)
                if not size:
                    break
                self._left -= size
                flags = self._flags & ~END_STREAM if self._left else self._flags
                piece = _piece(data, at, at + size)
                frames.append(Frame(DATA, flags, self._stream, piece, size))
                at += size
                continue
            if end - at < HEAD_BYTES:
                break
            high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if length > self._most:
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
                payload = unpadded(flags, payload)
            frames.append(Frame(kind, flags, stream, payload, length))
            at = stop
        self._held = data[at:]
        return frames

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
    if stop - start < _VIEWED_BYTES:
        return data[start:stop]
    return memoryview(data)[start:stop]
