"""Nothing that grows with its input keeps a server's event loop from its other work for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

import grpc
import orjson
import pytest

from tests.embedded import database, postgres, shared_database
from tests.system.pausing import MeasuringLoop, measured_server
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.model.columns import columns_of
from utuple.model.key import HASH_SPACE
from utuple.model.limits import MAX_ALTERNATIVES, MAX_CONDITIONS, MAX_TEMPLATE_BYTES
from utuple.model.packed import Packed
from utuple.model.section import Section
from utuple.model.utuple import Exact, Family, Kind, UTuple
from utuple.runtime.channel import open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire
from utuple.wire.codec import columns_to_wire, templates_to_wire
from utuple.wire.utuple_pb2_grpc import ServerStub

if TYPE_CHECKING:
    from utuple.wire.utuple_pb2_grpc import ServerAsyncStub

pytestmark = pytest.mark.slow
__all__ = ["database", "postgres", "shared_database"]

MOST_S = 0.12
"""Of processor time in one turn of the loop. On a quiet machine the worst is a quarter of this; processor time grows when
other programs crowd the caches. Before there were limits on templates it was 0.3 to 17 s."""

FAMILY = Family("pause", "t")
_numbers = count(1)
Call = Callable[["ServerAsyncStub"], Awaitable[object]]


@pytest.fixture(scope="module")
def server(shared_database: str) -> Iterator[tuple[str, MeasuringLoop]]:
    with measured_server(shared_database) as running:
        yield running


@pytest.fixture
async def stub(server: tuple[str, MeasuringLoop]) -> AsyncIterator[ServerAsyncStub]:
    async with open_channel(server[0]) as channel:
        async with asyncio.timeout(60):
            await channel.channel_ready()
        asked: ServerAsyncStub = ServerStub(channel)
        line = Line(Section(0, HASH_SPACE), 1, (Member("server-1"),))
        info = ServerInfo("server-1", server[0], "server", 1)
        adopt = pb.AdoptRequest(lines=[line_to_wire(line)], servers=[server_to_wire(info)])
        await asked.Adopt(adopt, timeout=60)
        yield asked


def json(value: object) -> bytes:
    return orjson.dumps(value)


ANYWHERE = json({"address": ["any"], "since_us": None, "until_us": None, "area": None})
FIELDS: dict[str, object] = {
    f"field-{number}": [
        ["range", number, number + 1],
        ["equal", f"text {number}"],
        ["one_of", number, "text", None],
        ["range", "a", f"b{number}"],
        ["type", "bytes"],
        ["absent"],
    ][number % 6]
    for number in range(20_000)
}


def some_fields(many: int) -> bytes:
    return json(dict(list(FIELDS.items())[:many]))


def texts(size: int, most: int = MAX_ALTERNATIVES) -> list[str]:
    many = min(most, (MAX_TEMPLATE_BYTES - 1_000) // (size + 3))
    return [f"{number:0{size}}" for number in range(many)]


def addresses(size: int) -> bytes:
    return json(orjson.loads(ANYWHERE) | {"address": ["one_of", *texts(size)]})


TEMPLATES: dict[str, tuple[bytes, bytes]] = {
    "as many conditions as there may be": (ANYWHERE, some_fields(MAX_CONDITIONS)),
    "one condition more": (ANYWHERE, some_fields(MAX_CONDITIONS + 1)),
    "1,000 conditions": (ANYWHERE, some_fields(1_000)),
    "20,000 conditions": (ANYWHERE, some_fields(20_000)),
    "as many values as there may be": (ANYWHERE, json({"f": ["one_of", *texts(5)]})),
    "as many numbers as there may be": (ANYWHERE, json({"f": ["one_of", *range(10_000)]})),
    "many values that are long": (ANYWHERE, json({"f": ["one_of", *texts(1_000)]})),
    "values that are lists": (
        ANYWHERE,
        json({"f": ["one_of", *[[n, [n]] for n in range(10_000)]]}),
    ),
    "more values than there may be": (ANYWHERE, json({"f": ["one_of", *range(150_000)]})),
    "a long value": (ANYWHERE, json({"f": ["equal", "x" * (MAX_TEMPLATE_BYTES - 1_000)]})),
    "a value of many parts": (ANYWHERE, json({"f": ["equal", [[]] * 150_000]})),
    "too many bytes": (ANYWHERE, json({"f": ["equal", "x" * (MAX_TEMPLATE_BYTES + 1)]})),
    "as many addresses as there may be": (addresses(5), b"{}"),
    "many addresses that are long": (addresses(1_000), b"{}"),
}
PAYLOADS: dict[str, bytes] = {
    "a long text": json({"v": "x" * 1_000_000}),
    "many numbers": json({"v": list(range(150_000))}),
    "many names": json({f"n{number}": number for number in range(60_000)}),
    "many lists": json({"v": [[]] * 340_000}),
    "as many lists as there may be": json({"v": [[1, 2]] * 24_000}),
    "many mappings": json({"v": [{"a": 1}] * 100_000}),
    "many nulls": json({"v": [[None]] * 140_000}),
    "deep": json({"v": orjson.loads("[" * 31 + "]" * 31)}),
    "far too deep": b'{"v":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
}


def new_id() -> bytes:
    return next(_numbers).to_bytes(16, "big")


def kept(metadata: bytes, payload: bytes) -> Call:
    half = Packed(new_id(), FAMILY, Kind.EF, metadata, payload, 60.0, f"reader-{uuid4().hex}")
    message = pb.RegisterRequest(templates=templates_to_wire([half], epochs={FAMILY: 1}))
    return lambda stub: stub.Register(message, timeout=120)


def events(payloads: list[bytes], lifetime_s: float = 60.0) -> pb.RegisterRequest:
    rows = [
        UTuple(new_id(), FAMILY, Exact(f"a{n}", n), {}, None, lifetime_s)
        for n, _ in enumerate(payloads)
    ]
    message = columns_to_wire(columns_of(rows), {FAMILY: 1})
    del message.payloads[:]
    message.payloads.extend(payloads)
    return pb.RegisterRequest(events=message)


async def pause_s(loop: MeasuringLoop, call: Call, stub: ServerAsyncStub) -> float:
    loop.longest_s()
    with suppress(grpc.aio.AioRpcError):  # it may be refused, but soon
        await call(stub)
    return loop.longest_s()


@pytest.mark.parametrize("name", TEMPLATES)
async def test_no_template_that_is_registered_keeps_the_loop(
    name: str, server: tuple[str, MeasuringLoop], stub: ServerAsyncStub
) -> None:
    took_s = await pause_s(server[1], kept(*TEMPLATES[name]), stub)
    event = events([b'{"f":"text","field-1":"text 1"}'] * 50)
    met_s = await pause_s(server[1], lambda stub: stub.Register(event, timeout=120), stub)
    print(f"{name}: {took_s * 1e3:.1f} ms; met {met_s * 1e3:.1f} ms")
    assert max(took_s, met_s) < MOST_S


@pytest.mark.parametrize("name", TEMPLATES)
async def test_no_template_that_is_read_keeps_the_loop(
    name: str, server: tuple[str, MeasuringLoop], stub: ServerAsyncStub
) -> None:
    metadata, where = TEMPLATES[name]
    half = Packed(new_id(), FAMILY, Kind.EF, metadata, where, 0.0, "reader")
    template = templates_to_wire([half], epochs={FAMILY: 1})

    async def reading(stub: ServerAsyncStub) -> None:
        async for _ in stub.Read(pb.ReadRequest(template=template), timeout=120):
            pass

    took_s = await pause_s(server[1], reading, stub)
    print(f"{name}: {took_s * 1e3:.1f} ms")
    assert took_s < MOST_S


@pytest.mark.parametrize("many", [1, 8])
@pytest.mark.parametrize("name", PAYLOADS)
async def test_no_payload_keeps_the_loop(
    name: str, many: int, server: tuple[str, MeasuringLoop], stub: ServerAsyncStub
) -> None:
    message = events([PAYLOADS[name]] * many)
    took_s = await pause_s(server[1], lambda stub: stub.Register(message, timeout=120), stub)
    print(f"{many} x {name}: {took_s * 1e3:.1f} ms")
    assert took_s < MOST_S
