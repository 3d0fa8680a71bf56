"""Header blocks, and what gRPC says in them: status, message, time-out, metadata. Pure.

What is written never uses HPACK's dynamic table, and peers are asked not to either: so a block means the same every
time, and is read once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence

from hpack import Decoder, HPACKError

from utuple.transport.frames import ErrorCode, ProtocolError

Header = tuple[str, str]
Metadata = tuple[tuple[str, str | bytes], ...]

MAX_BLOCK_BYTES = 64 << 10
_REMEMBERED = 256
_BINARY = "-bin"
_TIMEOUT = re.compile(r"(\d{1,8})([HMSmun])")
_UNIT_S = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def encode(headers: Iterable[Header]) -> bytes:
    """Each as a literal that no table learns."""
    parts: list[bytes] = []
    for name, value in headers:
        parts += (b"\x00", *_text(name), *_text(value))
    return b"".join(parts)


def _text(text: str) -> tuple[bytes, bytes]:
    raw = text.encode("latin-1", "replace")
    return _length(len(raw)), raw


def _length(size: int) -> bytes:
    """RFC 7541, section 5.1, with a prefix of seven bits."""
    if size < 0x7F:
        return bytes((size,))
    out, size = bytearray((0x7F,)), size - 0x7F
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


class HeaderReader:
    """Of one connection."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_BLOCK_BYTES)
        self._read: dict[bytes, Sequence[Header]] = {}

    def read(self, block: bytes) -> Sequence[Header]:
        known = self._read.get(block)
        if known is not None:
            return known
        try:
            headers = [(str(name), str(value)) for name, value in self._decoder.decode(block)]
        except (HPACKError, UnicodeDecodeError) as error:
            raise ProtocolError(f"headers: {error}", ErrorCode.COMPRESSION_ERROR) from None
        if not self._decoder.header_table.dynamic_entries:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[block] = headers
        else:
            self._read.clear()  # a known block would no longer change the table
        return headers


def timeout_to_text(timeout_s: float) -> str:
    """As gRPC writes it: eight digits and a unit."""
    microseconds = max(0, round(timeout_s * 1e6))
    if microseconds < 10**8:
        return f"{microseconds}u"
    return f"{min(microseconds // 1000, 10**8 - 1)}m"


def timeout_of(text: str) -> float:
    found = _TIMEOUT.fullmatch(text)
    if found is None:
        raise ProtocolError(f"grpc-timeout {text!r}")
    return int(found[1]) * _UNIT_S[found[2]]


def escaped_message(message: str) -> str:
    """A status message as it travels: what is not printable ASCII is percent-encoded."""
    raw = message.encode(errors="replace")
    return "".join([chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw])


def message_of(travelled: str) -> str:
    raw = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), travelled.encode(errors="replace"))
    return raw.decode(errors="replace")


def metadata_to_headers(metadata: Iterable[tuple[str, str | bytes]]) -> list[Header]:
    return [
        (name, base64.b64encode(value).decode() if isinstance(value, bytes) else value)
        for name, value in metadata
    ]


def metadata_of(headers: Iterable[Header]) -> Metadata:
    """All that is the caller's own; what cannot be read is left out."""
    found: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        if name.startswith((":", "grpc-")) or name in ("content-type", "te", "user-agent"):
            continue
        if not name.endswith(_BINARY):
            found.append((name, value))
            continue
        try:
            found.append((name, base64.b64decode(value + "=" * (-len(value) % 4))))
        except (binascii.Error, ValueError):
            continue
    return tuple(found)
