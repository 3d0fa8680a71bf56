"""Something right for each target, to begin with."""

from __future__ import annotations

import time

from hpack import Encoder

from tests.unit.transport.rfc9113 import CALL, GRPC, POST, REQUEST
from utuple.model.area import Box, Circle
from utuple.model.columns import columns_of
from utuple.model.condition import DataCondition, Equal, OneOf, Prefix, Range
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.security.authority import new_authority
from utuple.security.grants import Action, Grant, Grants, encode, family_pattern
from utuple.security.identity import Identity, Role
from utuple.transport.http2 import frames
from utuple.transport.http2.frames import frame, rst_stream, settings, window_update
from utuple.wire.codec import columns_to_wire, templates_to_wire

TRUCK = Family("truck", "load")
_POSITION = (49.45, 11.07)


def http2() -> list[bytes]:
    encoder = Encoder()
    blocks = [encoder.encode(list(one)) for one in (REQUEST, POST, CALL, GRPC)]
    calls = b"".join(
        frame(frames.HEADERS, 4, 2 * at + 1, block)
        + frame(frames.DATA, 1, 2 * at + 1, b"\0\0\0\0\x02hi")
        for at, block in enumerate(blocks)
    )
    return [
        calls,
        settings({3: 100, 4: 1 << 20, 5: 1 << 20}) + frame(frames.SETTINGS, 1, 0) + calls,
        frame(frames.HEADERS, 0, 1, blocks[0][:7])
        + frame(frames.CONTINUATION, 4, 1, blocks[0][7:])
        + window_update(0, 5)
        + window_update(1, 5),
        calls + rst_stream(1, frames.ErrorCode.CANCEL) + frame(frames.PING, 0, 0, b"12345678"),
        frame(frames.PRIORITY, 0, 1, bytes(5)) + frames.goaway(1, frames.ErrorCode.NO_ERROR, "x"),
    ]


def headers() -> list[bytes]:
    encoder = Encoder()
    more = (
        ("grpc-timeout", "10S"),
        ("raw-bin", "AAH/"),
        ("content-length", "7"),
        ("te", "trailers"),
    )
    return [
        *(encoder.encode(list(one)) for one in (REQUEST, POST, (*GRPC, *more))),
        *(Encoder().encode(list(one), huffman=True) for one in (GRPC, (*CALL, *more))),
    ]


def messages() -> list[bytes]:
    return [
        b"\0\0\0\0\x05hello" * 3,
        b"\0\0\0\0\0",
        b"\0\0\0\x10\0" + bytes(4096),
        b"\x01\0\0\0\x01x",
    ]


def events() -> list[UTuple]:
    data = {"kg": 7, "is": True, "of": [1.5, "ü"], "raw": b"\x00"}
    return [
        UTuple(
            bytes([n]) * 16,
            TRUCK,
            Exact(f"truck-{n}", 1_700_000_000_000_000 + n, where),
            data,
            None,
            60.0,
        )
        for n, where in ((1, _POSITION), (2, None))
    ]


def templates() -> list[UTuple]:
    where: dict[str, DataCondition] = {
        "kg": Range(1, 9),
        "of": OneOf((1, "a", None)),
        "is": Equal(True),
    }
    return [
        UTuple(bytes(16), TRUCK, Template(), None, {}, 60.0, "reader"),
        UTuple(
            bytes(16),
            TRUCK,
            Template(Prefix("truck-"), area=Box(1, 2, 3, 4)),
            None,
            where,
            0.0,
            "reader",
        ),
        UTuple(
            bytes(16),
            TRUCK,
            Template(Equal("truck-1"), area=Circle(1, 2, 300.0)),
            {"go": 1},
            None,
            5.0,
        ),
    ]


def columns() -> list[bytes]:
    made = columns_of(events())
    return [columns_to_wire(made, {TRUCK: 3}).SerializeToString()]


def packed_templates() -> list[bytes]:
    halves = [packed(one) for one in templates()]
    return [templates_to_wire(halves, [1] * len(halves)).SerializeToString()]


def credentials() -> list[bytes]:
    authority = new_authority("here", int(time.time() * 1e6))
    issued = authority.issue(Identity("here", Role.DEVICE, "truck-17"), 30)
    return [issued.to_pem().encode()]


def grants() -> list[bytes]:
    families = {Action.EMIT: (family_pattern("truck/*"),), Action.WATCH: (family_pattern("a/b"),)}
    grant = Grant("truck-17", Role.DEVICE, families)
    return [encode(Grants("here").granted(grant)), b"spiffe://here/device/truck-17"]


def words() -> list[bytes]:
    said = (
        *("box:1,2,3,4", "circle:49.4,11.0,300m", "49.45,11.07", "now-5m", "2026-01-01T00:00:00Z"),
        *(
            "7d",
            "90s",
            '{"a": [1, 2.5, null]}',
            "kg > 5",
            "kg in 1..9",
            "name ^= tr",
            "1 <= kg < 9",
        ),
        *("kg in {1, 2}", "x = true", "0.5", "half", "newest 10"),
    )
    return [one.encode() for one in said]
