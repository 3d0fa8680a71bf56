"""What is tried: each target reads what a stranger sends, and may refuse it by the errors it promises. Anything else is a bug."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

from google.protobuf.message import DecodeError, Message

from tests.fuzz import seeds
from tests.unit.transport.rfc9113 import Wire
from utuple.cli.verbs import parsing
from utuple.errors import UTupleError
from utuple.model.packed import checked
from utuple.security.credentials import credentials_of
from utuple.security.grants import decode
from utuple.security.identity import identity_of
from utuple.security.signed import signed_from
from utuple.transport.http2.frames import PREFACE, FrameReader, ProtocolError, check, settings
from utuple.transport.http2.headers import (
    HeaderReader,
    length_of,
    message_of,
    metadata_of,
    request_problem,
    timeout_of,
)
from utuple.transport.inbound import ServerConnection
from utuple.transport.messages import MessageReader, Unreadable
from utuple.transport.peer import peer_of
from utuple.transport.server import Server
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, refuse_unknown, taught_from_wire

MOST_BYTES = 1 << 16
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Target:
    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    refuses: tuple[type[Exception], ...]
    """What it may raise."""
    share: float = 1.0
    """Of all inputs, beside the others."""


def read_frames(data: bytes) -> None:
    reader = FrameReader(MOST_BYTES)
    cut = data[0] if data else 0
    for came in reader.feed(data[1:cut]) + reader.feed(data[cut:], 5) + reader.feed(b""):
        check(came)


@cache
def _server() -> Server:
    return Server(MOST_BYTES)


def read_connection(data: bytes) -> None:
    """A whole connection: whatever comes, it is answered or closed, and nothing is kept."""
    server, wire = _server(), Wire()
    connection = ServerConnection(server)
    connection.arrived(cast(Any, wire), peer_of(cast(Any, wire)))
    connection.connection_made(cast(Any, wire))
    connection.data_received(PREFACE + settings({}) + data)
    assert connection.is_open is not wire.is_closed
    connection.abort("over")
    assert not connection.streams and not len(server.arrivals) and not server.held_bytes


def read_headers(data: bytes) -> None:
    found = HeaderReader(request_problem).read(data).headers
    metadata_of(found)
    for name, value in found:
        message_of(value)
        if name == "grpc-timeout":
            timeout_of(value)
    with suppress(ValueError):
        length_of(found)


def read_messages(data: bytes) -> None:
    reader = MessageReader(MOST_BYTES)
    cut = data[0] if data else 0
    for piece in (data[:cut], data[cut : 2 * cut], data[2 * cut :]):
        reader.feed(piece)
    assert reader.kept_bytes <= len(data)


_PARSED: tuple[type[Message], ...] = (
    *(pb.RegisterRequest, pb.CommandRequest, pb.ReadRequest, pb.FromReader, pb.LearnRequest),
    *(pb.Announcement, pb.Rumour, pb.Move, pb.TakeRequest),
)


def read_protobuf(data: bytes) -> None:
    kind = _PARSED[data[0] % len(_PARSED)] if data else _PARSED[0]
    message = kind.FromString(data[1:])
    refuse_unknown(message, "message")


def read_columns(data: bytes) -> None:
    columns_from_wire(pb.Columns.FromString(data))


def read_templates(data: bytes) -> None:
    halves, _ = taught_from_wire(pb.Templates.FromString(data))
    for half in halves:
        checked(half)


def read_credentials(data: bytes) -> None:
    credentials_of(data.decode("ascii", errors="replace"), "fuzzed")


def read_grants(data: bytes) -> None:
    for read in (decode, signed_from, lambda given: identity_of(given.decode(errors="replace"))):
        with suppress(UTupleError):
            read(data)


def read_words(data: bytes) -> None:
    """The CLI's arguments."""
    text = data.decode(errors="replace")
    for parse in (
        *(parsing.parse_area, parsing.parse_position, parsing.parse_value, parsing.parse_absent),
        lambda given: parsing.parse_time("--since", given, NOW),
        lambda given: parsing.parse_duration_s("--lifetime", given),
        lambda given: parsing.parse_where([given]),
        lambda given: parsing.parse_address([], given),
    ):
        with suppress(UTupleError):
            parse(text)


TARGETS: dict[str, Target] = {
    "frames": Target(read_frames, seeds.http2, (ProtocolError,), 3.0),
    "connection": Target(read_connection, seeds.http2, (), 0.5),
    "headers": Target(read_headers, seeds.headers, (ProtocolError,), 2.0),
    "messages": Target(read_messages, seeds.messages, (Unreadable,), 3.0),
    "protobuf": Target(read_protobuf, seeds.columns, (DecodeError, UTupleError), 3.0),
    "columns": Target(read_columns, seeds.columns, (DecodeError, UTupleError), 2.0),
    "templates": Target(read_templates, seeds.packed_templates, (DecodeError, UTupleError), 1.0),
    "credentials": Target(read_credentials, seeds.credentials, (UTupleError,), 0.03),
    "grants": Target(read_grants, seeds.grants, (), 1.0),
    "words": Target(read_words, seeds.words, (), 0.5),
}
