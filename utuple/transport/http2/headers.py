"""Header blocks, and what gRPC says in them: status, message, time-out, metadata. Pure.

What is written never uses HPACK's dynamic table, and peers are asked not to either: so a block means the same every
time, and is read once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from hpack import Decoder, HPACKError

from utuple.transport.http2.frames import ErrorCode, ProtocolError

Header = tuple[str, str]
ProblemOf = Callable[[Sequence[Header]], str]
"""What is wrong with these headers; empty if nothing is."""
Metadata = tuple[tuple[str, str | bytes], ...]

MAX_BLOCK_BYTES = 16 << 10
"""Twice what other implementations of gRPC take by default."""
_REMEMBERED = 64
_REMEMBERED_BYTES = 512
"""Blocks up to this size, and so many of them: calls to a few methods, again and again."""
_TABLE_SIZE = re.compile(rb"\x20*[\x21-\x3f]")
"""A change of the table's size to something else than 0 (RFC 7541, section 6.3)."""
_NAME = re.compile(r":?[!#$%&'*+.^_`|~0-9a-z-]+")
_WRONG_VALUE = re.compile(r"[\x00\r\n]|^[ \t]|[ \t]$")
_PSEUDO = frozenset((":method", ":scheme", ":path", ":authority"))
_OF_CONNECTIONS = frozenset(
    ("connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade")
)
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


class Block(NamedTuple):
    """Headers as they were read. One that says the same every time is read once."""

    headers: Sequence[Header]
    fields: Mapping[str, str]
    """By name; of those that are there twice, the last."""
    problem: str
    """What is wrong with them, if anything is."""
    declared_bytes: int | None
    """What the sender says that its DATA will be."""


class HeaderReader:
    """Of one connection."""

    def __init__(self, problem_of: ProblemOf) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_BLOCK_BYTES)
        self._problem_of = problem_of
        self.is_settled = False
        """The peer knows that it is to have no table of its own."""
        self._read: dict[bytes, Block] = {}

    def read(self, block: bytes) -> Block:
        known = self._read.get(block)
        if known is not None:
            return known
        if self.is_settled and _TABLE_SIZE.match(block):
            what = "a table larger than was allowed"
            raise ProtocolError(what, ErrorCode.COMPRESSION_ERROR)
        try:
            headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in self._decoder.decode(block, raw=True)
            ]
        except HPACKError as error:
            raise ProtocolError(f"headers: {error}", ErrorCode.COMPRESSION_ERROR) from None
        read = self._block(headers)
        if self._decoder.header_table.dynamic_entries:
            self._read.clear()  # a known block would no longer change the table
        elif len(block) <= _REMEMBERED_BYTES:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[block] = read
        return read

    def _block(self, headers: Sequence[Header]) -> Block:
        problem, declared_bytes = self._problem_of(headers), None
        try:
            declared_bytes = length_of(headers)
        except ValueError as error:
            problem = problem or str(error)
        return Block(headers, dict(headers), problem, declared_bytes)


def request_problem(headers: Sequence[Header]) -> str:
    """Why these cannot begin a request (RFC 9113, sections 8.2 and 8.3); empty if they can."""
    first = list(takewhile(lambda header: header[0].startswith(":"), headers))
    pseudo = dict(first)
    if len(pseudo) < len(first) or not pseudo.keys() <= _PSEUDO:
        return f"pseudo-headers {', '.join(name for name, _ in first)}"
    if not pseudo.get(":method"):
        return "no :method"
    if not pseudo.get(":scheme") or not pseudo.get(":path", "").startswith(("/", "*")):
        return "no :scheme, or no :path that begins with /"
    return fields_problem(first, is_pseudo=True) or fields_problem(headers[len(first) :])


def response_problem(headers: Sequence[Header]) -> str:
    """The same of an answer, or of what ends it."""
    begins = bool(headers) and headers[0][0] == ":status"
    if begins and not (len(headers[0][1]) == 3 and headers[0][1].isdigit()):
        return f":status {headers[0][1]!r}"
    return fields_problem(headers[1:] if begins else headers)


def fields_problem(headers: Sequence[Header], *, is_pseudo: bool = False) -> str:
    for name, value in headers:
        if not _NAME.fullmatch(name) or (name[0] == ":") is not is_pseudo:
            return f"a field must not be called {name!r} there"
        if _WRONG_VALUE.search(value):
            return f"{name} must not be {value!r}"
        if name in _OF_CONNECTIONS or (name == "te" and value != "trailers"):
            return f"{name}: {value} has no meaning in HTTP/2"
    return ""


def length_of(headers: Sequence[Header]) -> int | None:
    """What the sender says that its DATA will be. Raises ValueError if that is no number, or two."""
    said = {value for name, value in headers if name == "content-length"}
    if not said:
        return None
    if len(said) > 1 or not (value := said.pop()).isascii() or not value.isdigit():
        raise ValueError("content-length must be one number")
    return int(value)


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
