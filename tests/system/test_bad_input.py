"""What is wrong is refused by name, on raw gRPC, the SDK and the command line; nothing of it is kept."""

from __future__ import annotations

import json
import math
import os
from array import array
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import grpc
import orjson
import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from utuple import Box, InvalidInput, between, one_of
from utuple.model.columns import columns_of
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple
from utuple.runtime.channel import open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, pack, templates_to_wire
from utuple.wire.utuple_pb2_grpc import ServerStub

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "1", "--managers", "1") as running:
        yield running


@pytest.fixture
async def channel(cluster: Cluster) -> AsyncIterator[grpc.aio.Channel]:
    async with open_channel(cluster.servers()["server-1"]["address"]) as opened:
        yield opened


@pytest.fixture
def family() -> Family:
    return Family(f"s-{uuid4().hex}", "t")


def event(family: Family, number: int = 1) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), family, Exact("a", 1), {"n": number}, None, 60)


def registering(family: Family, *numbers: int) -> pb.RegisterRequest:
    columns = columns_of(event(family, number) for number in numbers or (1,))
    return pb.RegisterRequest(events=columns_to_wire(columns, {family: 1}))


async def stored(cluster: Cluster, family: Family) -> int:
    async with utuple.connect(cluster.at) as space:
        return len([1 async for _ in space.read(subject=family.subject, type=family.type)])


async def refused(channel: grpc.aio.Channel, request: pb.RegisterRequest) -> tuple[str, str, str]:
    """Field, value and rule of a call that is refused as a whole."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ServerStub(channel).Register(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    said = dict(caught.value.trailing_metadata() or ())
    told = orjson.loads(said["utuple-error-bin"])
    return told["field"], told["value"], told["rule"]


async def test_random_bytes_are_refused_and_the_server_lives(
    channel: grpc.aio.Channel, cluster: Cluster, family: Family
) -> None:
    for method in ("Register", "Command", "Adopt", "Status"):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        call = channel.unary_unary(f"/utuple.v1.Server/{method}")
        for size in (1, 7, 100, 5000):
            with pytest.raises(grpc.aio.AioRpcError):
                await call(b"\xff" + os.urandom(size))
    deliver: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
    deliver = channel.stream_stream("/utuple.v1.Server/Deliver")
    talk = deliver(iter([b"\xff\xff\xff"]))
    with pytest.raises(grpc.aio.AioRpcError):
        await talk.read()
    answer = await ServerStub(channel).Register(registering(family))
    assert not answer.refusals
    assert await stored(cluster, family) == 1


async def test_an_oversized_message_is_refused_and_the_server_lives(
    channel: grpc.aio.Channel, cluster: Cluster
) -> None:
    address = cluster.servers()["server-1"]["address"]
    unlimited = [("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(address, options=unlimited) as wide:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        call = wide.unary_unary("/utuple.v1.Server/Register")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(bytes(70 << 20))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await ServerStub(channel).Status(pb.StatusRequest())).state == "serving"


@pytest.mark.parametrize("epoch", [0, 2, 2**63])
async def test_a_forged_epoch_is_refused_with_the_line_that_holds(
    channel: grpc.aio.Channel, cluster: Cluster, family: Family, epoch: int
) -> None:
    request = registering(family)
    request.events.families[0].epoch = epoch
    answer = await ServerStub(channel).Register(request)
    assert [refusal.reason for refusal in answer.refusals] == [pb.STALE]
    assert [line.epoch for line in answer.lines] == [1]
    assert await stored(cluster, family) == 0


async def test_wrong_shapes_are_refused_as_a_whole(
    channel: grpc.aio.Channel, cluster: Cluster, family: Family
) -> None:
    short = registering(family, 1, 2)
    short.events.times_us = short.events.times_us[:-1]
    assert (await refused(channel, short))[0] == "times_us"
    odd = registering(family)
    odd.events.ids += b"x"
    assert (await refused(channel, odd))[0] == "ids"
    nameless = registering(family)
    nameless.events.families[0].subject = ""
    assert (await refused(channel, nameless))[0] == "subject"
    beyond = registering(family, 1, 2)
    beyond.events.family = pack(array("I", [0, 9]))
    assert (await refused(channel, beyond))[0] == "family"
    unknown = registering(family)
    unknown.MergeFromString(b"\xc2\x3e\x01x")  # field 1000
    field, value, rule = await refused(channel, unknown)
    assert (field, value) == ("request", "'field 1000'") and "not known" in rule
    assert await stored(cluster, family) == 0


async def test_one_bad_uTuple_among_many_is_refused_by_index(
    channel: grpc.aio.Channel, cluster: Cluster, family: Family
) -> None:
    request = registering(family, *range(1, 1001))
    lats = array("d", [1.0] * 1000)
    lats[617] = 91.0
    request.events.lats = pack(lats)
    request.events.lons = pack(array("d", [1.0] * 1000))
    answer = await ServerStub(channel).Register(request)
    (refusal,) = answer.refusals
    assert (list(refusal.rows), refusal.reason) == ([617], pb.INVALID)
    assert (refusal.field, refusal.value) == ("position.latitude", "91.0")
    assert await stored(cluster, family) == 999


async def test_wrong_kinds_and_broken_templates_are_refused(
    channel: grpc.aio.Channel, family: Family
) -> None:
    ids = [n.to_bytes(16, "big") for n in range(7)]
    anything = packed(UTuple(ids[0], family, Template(), None, {}, 1.0, "r"))
    rows = [
        anything._replace(kind=Kind.CA, reader=""),
        anything._replace(reader=""),
        anything._replace(payload=b"{"),
        anything._replace(metadata=b"[]"),
        anything._replace(lifetime_s=-1.0),
        anything._replace(metadata=anything.metadata.replace(b'["any"]', b'["equal",""]')),
        anything._replace(metadata=anything.metadata.replace(b'["any"]', b'["equal","a\x01"]')),
    ]
    rows = [row._replace(id=id_) for row, id_ in zip(rows, ids, strict=True)]
    request = pb.RegisterRequest(templates=templates_to_wire(rows, epochs={family: 1}))
    answer = await ServerStub(channel).Register(request)
    fields = {refusal.rows[0]: refusal.field for refusal in answer.refusals}
    assert fields == {
        0: "kind",
        1: "reader",
        2: "where",
        3: "metadata",
        4: "lifetime_s",
        5: "address",
        6: "metadata",
    }
    empty = anything.metadata.replace(b'"since_us":null', b'"since_us":5')
    empty = empty.replace(b'"until_us":null', b'"until_us":5')
    asked = templates_to_wire([anything._replace(metadata=empty)], epochs={family: 1})
    read = pb.ReadRequest(template=asked)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ServerStub(channel).Read(read).read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


BAD_EVENTS: list[tuple[dict[str, Any], str]] = [
    ({"position": (91, 0)}, "position.latitude"),
    ({"position": (0, math.nan)}, "position.longitude"),
    ({"data": {"kg": math.inf}}, "data.kg"),
    ({"data": {"deep": [1, {"x": math.nan}]}}, "data.deep[1].x"),
    ({"data": {"blob": "x" * (2 << 20)}}, "data"),
    ({"data": {"o": object()}}, "data.o"),
    ({"subject": ""}, "subject"),
    ({"address": ""}, "address"),
    ({"lifetime_s": -1}, "lifetime_s"),
    ({"lifetime_s": math.nan}, "lifetime_s"),
]


@pytest.mark.parametrize(("wrong", "field"), BAD_EVENTS)
async def test_the_sdk_names_field_value_and_rule(
    cluster: Cluster, wrong: dict[str, Any], field: str
) -> None:
    good: dict[str, Any] = {"subject": "s", "type": "t", "address": "a", "data": {}}
    async with utuple.connect(cluster.at) as space:
        with pytest.raises(InvalidInput) as caught:
            await space.emit(**(good | wrong))
    assert caught.value.field == field and caught.value.rule in str(caught.value)


async def test_a_template_that_can_match_nothing_is_refused() -> None:
    for build in (
        lambda: between(5, 5),
        lambda: one_of(),
        lambda: Box(10, 0, 5, 0),
        lambda: Box(-91, 0, 5, 0),
    ):
        with pytest.raises(InvalidInput):
            build()


def test_the_command_line_registers_good_lines_and_names_the_bad_one(
    cluster: Cluster, family: Family
) -> None:
    line = {"subject": family.subject, "type": family.type, "address": "a", "data": {"n": 1}}
    lines = [line, line | {"position": [91, 0]}, line | {"data": {"n": 2}}]
    ran = cluster.run("emit", stdin="\n".join(map(json.dumps, lines)))
    assert ran.code == 1
    assert "2" in ran.err and "position.latitude" in ran.err and "91" in ran.err
    read = cluster.run("read", "--subject", family.subject, "--type", family.type)
    assert sorted(json.loads(row)["data"]["n"] for row in read.out.splitlines()) == [1, 2]
