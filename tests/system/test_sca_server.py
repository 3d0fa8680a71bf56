"""The sCA server (section 3.2 of the paper) as a real process: refill, hand-over, bad input, stop."""

from __future__ import annotations

import asyncio
import random
import signal
from array import array
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tests.system.sca_cluster import (
    HIGH,
    LIMIT_S,
    LOW,
    SECOND_US,
    Cluster,
    Reader,
    Sca,
    Start,
    command_id,
    device_id,
    devices,
    start_sca,
    two_lines,
)
from utuple.client.sending.receipt import Handovers
from utuple.cluster.line import Line, Member
from utuple.errors import Unavailable
from utuple.model.columns import Columns
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, pack
from utuple.wire.status import error_from


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def start(cluster: Cluster) -> AsyncIterator[Start]:
    started: list[Sca] = []

    async def begin(*options: str, listen: str = "127.0.0.1:0") -> Sca:
        started.append(await start_sca(cluster.address, *options, listen=listen))
        return started[-1]

    yield begin
    for sca in started:
        await sca.ended(signal.SIGKILL)
        if sca.address:
            await sca.channel.close()


@pytest.fixture
async def sca(cluster: Cluster, start: Start) -> Sca:
    """An sCA server that has been filled: room-1 (CF 1) and room-2 (CF 2) are known."""
    cluster.lines += two_lines()
    await cluster.add("server-1", devices((1, "room-1"), (2, "room-2")))
    await cluster.add("server-2")
    return await serving(start)


async def serving(start: Start, *options: str) -> Sca:
    sca = await start(*options)
    await sca.listening()
    await sca.said(" settled")
    return sca


async def refused(call: object) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]
    return caught.value


async def code_of(call: object) -> grpc.StatusCode:
    return (await refused(call)).code()


async def attached(sca: Sca, number: int, registration: Columns | None = None) -> Reader:
    reader = await sca.open_stream()
    assert not (await reader.attach(number, registration)).unknown
    return reader


# ------------------------------------------------------------------------------------------------ refill


async def test_it_fills_from_every_server_and_announces_itself(
    cluster: Cluster, start: Start
) -> None:
    cluster.lines += two_lines()
    await cluster.add("server-1", devices((1, "room-1")), devices((2, "room-2"), (3, "room-2")))
    await cluster.add("server-2", devices((4, "hall"), family=HIGH))
    sca = await serving(start)
    assert await sca.command(1, "room-1") == ["NOT_CONNECTED"]
    assert await sca.command(2, "room-2") == ["NOT_CONNECTED"] * 2
    assert await sca.command(3, "hall", family=HIGH) == ["NOT_CONNECTED"]
    status = await sca.status()
    assert (status.name, status.state, status.devices) == ("sca-1", "serving", 4)
    assert (status.address, status.commands, list(status.waiting_for)) == (sca.address, 3, [])
    async with asyncio.timeout(LIMIT_S):
        announced = await cluster.announced.get()
    assert (announced.name, announced.role, announced.address) == ("sca-1", "sca", sca.address)


async def test_keys_whose_servers_are_not_all_read_are_refused_and_the_others_served(
    cluster: Cluster, start: Start
) -> None:
    cluster.lines += two_lines()
    await cluster.add("server-1", devices((1, "room-1")))
    late = await cluster.add("server-2", devices((4, "hall"), family=HIGH), is_up=False)
    sca = await start()
    await sca.listening()
    await sca.said("server read server=server-1")
    assert await sca.command(1, "room-1") == ["NOT_CONNECTED"]
    refusal = await refused(sca.command(2, "hall", family=HIGH))
    assert refusal.code() is grpc.StatusCode.UNAVAILABLE and "server-2" in (refusal.details() or "")
    assert isinstance(error_from(refusal, sent="Command"), Unavailable), "nothing was done"
    status = await sca.status()
    assert (status.state, list(status.waiting_for)) == ("filling", ["server-2"])
    assert await sca.register(devices((5, "hall"), family=HIGH)) == [], "registering goes on"
    late.is_up.set()
    await sca.said(" settled")
    assert await sca.command(3, "hall", family=HIGH) == ["NOT_CONNECTED"] * 2


async def test_without_a_table_nothing_is_served(cluster: Cluster, start: Start) -> None:
    sca = await start()
    await sca.listening()
    refusal = await refused(sca.command(1, "room-1"))
    assert refusal.code() is grpc.StatusCode.UNAVAILABLE
    assert "the assignment table" in (refusal.details() or "")
    cluster.lines += two_lines("server-1", "server-1")
    await cluster.add("server-1")
    await sca.said(" settled")
    assert await sca.command(1, "room-1") == []


async def test_servers_that_are_new_in_the_table_are_read_too(cluster: Cluster, sca: Sca) -> None:
    for number in (3, 4):
        await cluster.table_was_asked_again(times=3)  # it has been serving for a while
        await cluster.add(f"server-{number}", devices((number, "room-1")))
        first = cluster.lines[0]
        members = (*first.members, Member(f"server-{number}"))
        cluster.lines[0] = Line(first.section, first.epoch + 1, members)
        await sca.said(f"server read server=server-{number}")
    assert await sca.command(1, "room-1") == ["NOT_CONNECTED"] * 3


async def test_a_read_that_breaks_off_does_not_count_and_is_begun_again(
    cluster: Cluster, start: Start
) -> None:
    cluster.lines += two_lines("server-1", "server-1")
    played = await cluster.add("server-1", devices((1, "room-1")), devices((2, "room-1")))
    played.breaks_off = 1
    sca = await serving(start)
    assert any("server not read" in line and "broke off" in line for line in sca.log)
    assert await sca.command(1, "room-1") == ["NOT_CONNECTED"] * 2


async def test_another_server_at_that_address_is_not_taken_for_the_one_in_the_table(
    cluster: Cluster, start: Start
) -> None:
    cluster.lines += two_lines("server-1", "server-1")
    played = await cluster.add("server-1")
    played.says_it_is = "server-9"
    sca = await start()
    await sca.listening()
    await sca.said("is server-9, not server-1")
    assert await code_of(sca.command(1, "room-1")) is grpc.StatusCode.UNAVAILABLE


async def test_killed_and_started_again_it_knows_every_cf_again(
    cluster: Cluster, start: Start
) -> None:
    cluster.lines += two_lines()
    stored = await cluster.add("server-1", devices((1, "room-1")))
    await cluster.add("server-2")
    first = await serving(start)
    stored.columns.append(devices((2, "room-2")))  # as the client does: there, and here
    await first.register(devices((2, "room-2")))
    assert await first.ended(signal.SIGKILL) == -signal.SIGKILL
    second = await serving(start)
    assert await second.command(1, "room-1") == ["NOT_CONNECTED"]
    assert await second.command(2, "room-2") == ["NOT_CONNECTED"]


async def test_what_was_cancelled_while_it_fills_is_not_brought_back(
    cluster: Cluster, start: Start
) -> None:
    cluster.lines += two_lines("server-1", "server-1")
    late = await cluster.add("server-1", devices((1, "room-1"), (2, "room-2")), is_up=False)
    sca = await start()
    await sca.listening()
    assert await sca.register(cancels=[device_id(1)]) == []
    late.is_up.set()
    await sca.said(" settled")
    assert await sca.command(1, "room-1") == []
    assert await sca.command(2, "room-2") == ["NOT_CONNECTED"]


# --------------------------------------------------------------------------------------------- hand-over


async def test_a_command_is_handed_over_when_the_device_confirms_and_a_retry_is_not_delivered_again(
    sca: Sca,
) -> None:
    reader = await attached(sca, 1)
    calling = asyncio.create_task(sca.command(7, "room-1", b'{"on": true}', confirm_s=30.0))
    got = (await reader.hear()).deliveries
    assert (got.formals, got.counts, got.origin, got.stored) == (device_id(1), b"", "sca-1", False)
    times_us = pack(array("q", [1_800_000_000_000_000]))
    assert (got.columns.ids, got.columns.times_us) == (command_id(7), times_us)
    assert list(got.columns.payloads) == [b'{"on":true}']
    assert not calling.done()
    await reader.confirm(got, 1)
    assert await calling == ["HANDED_OVER"]
    assert await sca.command(7, "room-1", b'{"on": true}', confirm_s=30.0) == ["HANDED_OVER"]
    following = asyncio.create_task(sca.command(8, "room-1", confirm_s=30.0))
    after = (await reader.hear()).deliveries
    assert after.columns.ids == command_id(8), "the retry of 7 was not delivered"
    await reader.confirm(after, 1)
    assert await following == ["HANDED_OVER"]
    assert (await sca.status()).handed_over == 2


async def test_one_call_carries_many_commands_and_says_for_each_what_became_of_it(sca: Sca) -> None:
    await sca.register(devices((3, "room-2"), where=b'{"on":["type","bool"]}'))
    reader = await attached(sca, 1)
    request = pb.SimpleCommands(
        families=[pb.Family(subject=f.subject, type=f.type) for f in (LOW, HIGH)],
        family=array("I", [0, 0, 0, 1, 0]).tobytes(),
        ids=b"".join(map(command_id, range(5))),
        addresses=["room-2", "room-1", "", "room-1", "room-2"],
        payloads=[b'{"on":false}', b"{}", b"{}", b"{}", b'{"on":1}'],
        confirm_us=30 * SECOND_US,
    )
    calling = asyncio.ensure_future(sca.stub.Command(request, timeout=LIMIT_S))
    await reader.confirm((await reader.hear()).deliveries, 1)
    answer = await calling
    met = Handovers(list(answer.rows), answer.ids, answer.handed)
    said = {(row, id_): handed for row, id_, handed in met}
    assert said == {
        (0, device_id(2)): pb.NOT_CONNECTED,
        (0, device_id(3)): pb.NOT_CONNECTED,
        (1, device_id(1)): pb.HANDED_OVER,
        (4, device_id(2)): pb.NOT_CONNECTED,
    }
    [refusal] = answer.refusals
    assert (refusal.reason, list(refusal.rows), refusal.field) == (pb.INVALID, [2], "address")


async def test_a_device_that_does_not_confirm_in_time_has_not_confirmed(sca: Sca) -> None:
    reader = await attached(sca, 1)
    assert await sca.command(1, "room-1", confirm_s=0.2) == ["NOT_CONFIRMED"]
    assert (await reader.hear()).deliveries.columns.ids == command_id(1), "it was sent"


async def test_a_wait_is_bounded_by_the_servers_own_limit(cluster: Cluster, start: Start) -> None:
    cluster.lines += two_lines("server-1", "server-1")
    await cluster.add("server-1")
    sca = await serving(start, "--max-confirm-s", "0.2")
    await attached(sca, 1, devices((1, "room-1")))
    async with asyncio.timeout(LIMIT_S / 2):
        assert await sca.command(1, "room-1", confirm_s=10 * LIMIT_S) == ["NOT_CONFIRMED"]


async def test_nobody_attached_and_nobody_there_are_told_apart(sca: Sca) -> None:
    await sca.register(devices((3, "room-3"), where=b'{"on":["type","bool"]}'))
    assert await sca.command(1, "room-1", confirm_s=30.0) == ["NOT_CONNECTED"]
    assert await sca.command(2, "room-3", b'{"on":true}') == ["NOT_CONNECTED"]
    assert await sca.command(3, "room-3", b'{"on":"yes"}') == []
    assert await sca.command(4, "room-1", family=HIGH) == []
    assert await sca.command(5, "room-99") == []


async def test_an_attach_brings_the_cf_and_its_end_lets_it_go(sca: Sca) -> None:
    reader = await sca.open_stream()
    assert (await reader.attach(9)).unknown
    assert not (await reader.attach(9, devices((9, "room-9")))).unknown
    calling = asyncio.create_task(sca.command(1, "room-9", confirm_s=30.0))
    await reader.hear()
    await reader.call.done_writing()
    assert await calling == ["NOT_CONFIRMED"], "the stream has ended, so nobody waits longer"
    assert await reader.end() is grpc.StatusCode.OK
    assert await sca.command(2, "room-9", confirm_s=30.0) == ["NOT_CONNECTED"]


async def test_a_reader_that_vanishes_lets_its_cfs_go(sca: Sca) -> None:
    reader = await attached(sca, 1)
    calling = asyncio.create_task(sca.command(1, "room-1", confirm_s=30.0))
    await reader.hear()
    reader.call.cancel()
    assert await calling == ["NOT_CONFIRMED"]
    assert await sca.command(2, "room-1", confirm_s=30.0) == ["NOT_CONNECTED"]


async def test_a_second_attach_replaces_the_first(sca: Sca) -> None:
    first = await attached(sca, 1)
    second = await attached(sca, 1)
    assert (await first.hear()).replaced.id == device_id(1)
    calling = asyncio.create_task(sca.command(1, "room-1", confirm_s=30.0))
    await second.confirm((await second.hear()).deliveries, 1)
    assert await calling == ["HANDED_OVER"]
    await first.say(detach=pb.Detach(id=device_id(1), cancel=True))
    assert (await first.hear()).detached.id == device_id(1)
    assert await sca.command(2, "room-1") == ["NOT_CONFIRMED"], "its successor is untouched"


async def test_a_detach_lets_go_and_with_cancel_forgets(sca: Sca) -> None:
    reader = await attached(sca, 1)
    await reader.say(taken=pb.Taken(id=device_id(1), count=1))
    await reader.say(acknowledge=pb.Acknowledge(formals=device_id(1), seqs=bytes(8)))
    await reader.say(detach=pb.Detach(id=device_id(1)))
    assert (await reader.hear()).detached.id == device_id(1)
    assert await sca.command(1, "room-1") == ["NOT_CONNECTED"]
    await reader.say(detach=pb.Detach(id=device_id(1), cancel=True))
    assert (await reader.hear()).detached.id == device_id(1)
    assert await sca.command(2, "room-1") == []


async def test_a_cancel_by_registering_detaches_who_serves(sca: Sca) -> None:
    reader = await attached(sca, 1)
    await sca.register(cancels=[device_id(1)])
    assert (await reader.hear()).detached.id == device_id(1)
    assert await sca.command(1, "room-1") == []


async def test_a_reader_that_stopped_reading_slows_nobody(cluster: Cluster, start: Start) -> None:
    cluster.lines += two_lines("server-1", "server-1")
    await cluster.add("server-1", devices((1, "room-1"), (2, "room-2")))
    sca = await serving(start, "--max-outbox-rows", "8")
    stopped, reading = await attached(sca, 1), await attached(sca, 2)
    large = b'{"a":"' + b"x" * 200_000 + b'"}'
    for number in range(60):  # more than the connection's windows hold, and the outbox after them
        assert await sca.command(number, "room-1", large) == ["NOT_CONFIRMED"]
    async with asyncio.timeout(LIMIT_S / 2):  # at once, not after the 30 s it would wait
        assert await sca.command(100, "room-1", confirm_s=30.0) == ["NOT_CONFIRMED"]
    for number in range(10):
        calling = asyncio.create_task(sca.command(number, "room-2", confirm_s=30.0))
        await reading.confirm((await reading.hear()).deliveries, 2)
        assert await calling == ["HANDED_OVER"]
    assert len((await stopped.hear()).deliveries.columns.payloads) > 0, "it may go on any time"


# --------------------------------------------------------------------------------------------- bad input


async def test_random_bytes_are_invalid_input_and_nothing_else(sca: Sca) -> None:
    dice = random.Random(7)
    for _ in range(50):
        raw = b"\x07" + dice.randbytes(dice.randrange(200))  # no field has number 0
        for call in ("Register", "Command", "Status"):
            assert await code_of(sca.raw(call, raw)) is grpc.StatusCode.INVALID_ARGUMENT
    status = await sca.status()
    assert (status.devices, status.commands, sca.process.returncode) == (2, 0, None)


def _bad_registers() -> dict[str, pb.ScaRegisterRequest]:
    good = columns_to_wire(devices((8, "room-8")))
    short, many = pb.Columns(), pb.Columns()
    for message in (short, many):
        message.CopyFrom(good)
    short.times_us = b"1234"
    many.payloads.append(b"{}")
    strange = pb.ScaRegisterRequest(devices=good)
    strange.MergeFromString(b"\xfa\x3e\x01x")  # field 1007
    return {
        "a column too short": pb.ScaRegisterRequest(devices=short),
        "a column too long": pb.ScaRegisterRequest(devices=many),
        "an unknown field": strange,
        "a cancel of no id": pb.ScaRegisterRequest(devices=good, cancels=[b"short"]),
    }


@pytest.mark.parametrize("what", _bad_registers())
async def test_a_malformed_registration_is_refused_whole(sca: Sca, what: str) -> None:
    call = sca.stub.Register(_bad_registers()[what], timeout=LIMIT_S)
    assert await code_of(call) is grpc.StatusCode.INVALID_ARGUMENT
    assert (await sca.status()).devices == 2


async def test_a_bad_row_of_a_registration_is_refused_by_index_and_the_rest_kept(sca: Sca) -> None:
    large = b'{"a":["equal","' + b"x" * (1 << 20) + b'"]}'
    columns = columns_to_wire(devices((7, "room-7"), (8, ""), (9, "room-9")))
    columns.payloads[2] = large
    answer = await sca.stub.Register(pb.ScaRegisterRequest(devices=columns), timeout=LIMIT_S)
    said = [(list(r.rows), r.field, r.part, r.reason) for r in answer.refusals]
    assert said == [
        ([1], "address", pb.DEVICES, pb.INVALID),
        ([2], "where", pb.DEVICES, pb.INVALID),
    ]
    assert await sca.command(1, "room-7") == ["NOT_CONNECTED"]
    assert await sca.command(2, "room-9") == []


async def test_a_call_beyond_the_size_limit_is_refused_and_the_process_lives(sca: Sca) -> None:
    unlimited = [("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(sca.address, options=unlimited) as channel:
        register: Any = channel.unary_unary("/utuple.v1.Sca/Register")
        code = await code_of(register(bytes(65 << 20), timeout=LIMIT_S))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED, "by gRPC itself, before it is parsed"
    assert (await sca.status()).devices == 2


@pytest.mark.parametrize(
    "message",
    [
        pb.FromReader(),
        pb.FromReader(attach=pb.Attach(id=device_id(1))),
        pb.FromReader(attach=pb.Attach(id=b"short", device=True)),
        pb.FromReader(attach=pb.Attach(id=device_id(1), device=True, reader="another")),
        pb.FromReader(
            attach=pb.Attach(
                id=device_id(5), device=True, registration=columns_to_wire(devices((6, "room-6")))
            )
        ),
        pb.FromReader(detach=pb.Detach(id=b"")),
        pb.FromReader(confirm=pb.Confirm(formals=b"x" * 16)),
    ],
    ids=str,
)
async def test_a_reader_that_breaks_a_rule_loses_its_stream_and_its_cfs_are_let_go(
    sca: Sca, message: pb.FromReader
) -> None:
    reader = await attached(sca, 2)
    await reader.call.write(message)
    assert await reader.end() is grpc.StatusCode.INVALID_ARGUMENT
    assert await sca.command(1, "room-2") == ["NOT_CONNECTED"]
    assert (await sca.status()).devices == 2


async def test_random_bytes_on_a_stream_are_invalid_input(sca: Sca) -> None:
    deliver: Any = sca.channel.stream_stream("/utuple.v1.Sca/Deliver")
    call = deliver()
    await call.write(b"\x07random")
    assert await Reader(call).end() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_confirmation_of_what_was_never_sent_is_ignored(sca: Sca) -> None:
    reader, other = await attached(sca, 1), await attached(sca, 2)
    await other.say(confirm=pb.Confirm(formals=device_id(1), commands=command_id(1)))
    await other.attach(2)  # heard, so the confirmation before it was too
    calling = asyncio.create_task(sca.command(1, "room-1", confirm_s=30.0))
    await reader.confirm((await reader.hear()).deliveries, 1)
    assert await calling == ["HANDED_OVER"]


# --------------------------------------------------------------------------------------------- the process


async def test_asked_to_stop_it_ends_streams_answers_calls_and_exits_with_0(sca: Sca) -> None:
    reader = await attached(sca, 1)
    calling = asyncio.create_task(sca.command(1, "room-1", confirm_s=30.0))
    await reader.hear()
    assert await sca.ended(signal.SIGTERM) == 0
    assert await calling == ["NOT_CONFIRMED"]
    assert await reader.end() is grpc.StatusCode.UNAVAILABLE
    assert sca.log[-2].endswith("stopped"), sca.log


async def test_a_port_in_use_is_said_in_one_line(cluster: Cluster, start: Start) -> None:
    sca = await start(listen=cluster.address)
    async with asyncio.timeout(LIMIT_S):
        assert await sca.process.wait() == 1
    said = await sca.said("is in use")
    assert "choose another port" in said and not any("Traceback" in line for line in sca.log)


async def test_settings_that_cannot_work_are_said_at_the_start(start: Start) -> None:
    sca = await start("--max-devices", "0")
    async with asyncio.timeout(LIMIT_S):
        assert await sca.process.wait() == 2
    await sca.said("max_devices: 0 is refused: must be positive")
