"""Every wait of a `read`, for the first rows and for further ones, ends within `timeout_s`.

A wait begins when the caller asks for the next row. What the caller does between two rows is its own time, and a long
read that keeps giving rows may take as long as it does.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from utuple.client.blocking import space as blocking
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.receiving.delivery import Delivery
from utuple.client.space import Space
from utuple.client.transport import GrpcTransport
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.wire import utuple_pb2 as pb

TRUCKS: dict[str, Any] = {"subject": "truck", "type": "load"}
TIMEOUT_S = 10.0

in_any_order = pytest.mark.parametrize(
    "asked", [{}, {"limit": 100}, {"newest_first": True}], ids=["all", "limit", "newest"]
)


def space_of(cluster: TwinCluster) -> Space:
    config = Config(timeout_s=TIMEOUT_S, page_rows=3)
    return Space(put_together([MANAGER], config, cluster, random.Random(7), lambda: 0))


async def filled(cluster: TwinCluster, count: int) -> Space:
    space = await space_of(cluster).open()
    for number in range(count):
        await space.emit(**TRUCKS, address="t", data={"kg": number})
    return space


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def wait_that_fails_s(reading: AsyncGenerator[Delivery, None], match: str) -> float:
    """How long it took to say so."""
    began_s = now_s()
    with pytest.raises(Unavailable, match=match):
        await anext(reading)
    return now_s() - began_s


@in_any_order
@pytest.mark.parametrize("members", [("a",), ("a", "b")], ids=len)
@in_virtual_time
async def test_the_wait_for_the_first_rows_ends_in_time(
    members: tuple[str, ...], asked: dict[str, Any]
) -> None:
    """Its server accepts the reading, but its PostgreSQL stands still."""
    cluster = TwinCluster(one_line(1, *members))
    space = await filled(cluster, 5)
    for member in members:
        cluster.stall(member)
    names = ", ".join(members)
    reading = space.read(**TRUCKS, **asked)
    assert await wait_that_fails_s(reading, f"within 10 s from {names}$") == TIMEOUT_S
    assert cluster.readings == 0, "the servers' searches are cancelled"
    assert len(asyncio.all_tasks()) == 1
    await space.close()


@pytest.mark.parametrize("rows", [1, 4])
@in_any_order
@in_virtual_time
async def test_the_wait_for_further_rows_ends_in_time(rows: int, asked: dict[str, Any]) -> None:
    """Also when the rows before it were slow to come, and when the caller was slow to take them."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 9)
    reading = space.read(**TRUCKS, **asked)
    for _ in range(rows):
        await anext(reading)
        await asyncio.sleep(3 * TIMEOUT_S)
    at_hand = 0 if not asked else -rows % 3  # of a page
    cluster.stall("a")
    for _ in range(at_hand):
        await anext(reading)
    assert await wait_that_fails_s(reading, "within 10 s from a$") == TIMEOUT_S
    assert cluster.readings == 0
    await space.close()


@in_virtual_time
async def test_of_several_servers_the_one_that_stands_still_is_named() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await filled(cluster, 20)
    cluster.stall("b")
    reading = space.read(**TRUCKS)
    for _ in cluster.servers["a"].log:
        await anext(reading)
    assert await wait_that_fails_s(reading, "within 10 s from b$") == TIMEOUT_S
    assert cluster.readings == 0
    await space.close()


@in_any_order
@in_virtual_time
async def test_a_wait_for_the_assignment_managers_ends_in_time(asked: dict[str, Any]) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = space_of(cluster)
    cluster.hold_lookups = asyncio.Event()
    reading = space.read(**TRUCKS, **asked)
    assert await wait_that_fails_s(reading, "no assignment manager") == TIMEOUT_S
    await space.close()


@in_virtual_time
async def test_a_stream_that_breaks_again_and_again_is_not_waited_for_longer() -> None:
    """What was given before comes again, and is no row for the caller."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 5)
    cluster.pace_s = 2.5
    reading = space.read(**TRUCKS)
    for _ in range(4):
        await anext(reading)
    cluster.losing["a"] = 1
    assert await wait_that_fails_s(reading, "within 10 s from a$") <= TIMEOUT_S
    assert cluster.readings == 0
    await space.close()


@in_any_order
@in_virtual_time
async def test_a_read_that_keeps_giving_rows_may_take_longer_in_all(asked: dict[str, Any]) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 9)
    cluster.pace_s = 2.0
    began_s = now_s()
    assert len([event async for event in space.read(**TRUCKS, **asked)]) == 9
    assert now_s() - began_s > TIMEOUT_S
    await space.close()


@in_virtual_time
async def test_a_line_that_changed_while_the_caller_was_busy_has_all_the_time_again() -> None:
    """Its new members are away for a moment just then."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await filled(cluster, 4)
    reading = space.read(**TRUCKS)
    found = [(await anext(reading)).data["kg"]]
    await asyncio.sleep(3 * TIMEOUT_S)
    newer = one_line(2, "b")
    cluster.add_server("b", newer)
    cluster.drain("a", "b", newer)
    told = cluster.lines_on_the_wire(newer)
    space._parts.lines.hear(told.lines, told.servers)
    cluster.down.add("b")
    asyncio.get_running_loop().call_later(1.0, cluster.down.discard, "b")
    found += [event.data["kg"] async for event in reading]
    assert sorted(found) == [0, 1, 2, 3]
    await space.close()


@in_virtual_time
async def test_a_device_whose_sca_server_stands_still_is_not_waited_for_longer() -> None:
    """What its server took of the time is gone."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.hold("sca-1")
    asyncio.get_running_loop().call_later(6.0, cluster.hold("a").set)
    began_s = now_s()
    with pytest.raises(OutcomeUnknown, match="sca-1 did not answer"):
        await space.serve(**TRUCKS, address="t").open()
    assert now_s() - began_s <= TIMEOUT_S
    await space.close()


async def test_who_listens_and_does_not_answer_is_called_so() -> None:
    transport = GrpcTransport()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(Unavailable, match=f"{address} does not answer"):
            await transport.sca_register(address, pb.ScaRegisterRequest(), 0.1)
        await transport.close()


def test_a_blocking_read_gives_the_rows_that_are_there() -> None:
    """Waits that follow one another do not become one: whoever wants a row does not wait for the thousandth."""
    cluster = TwinCluster(one_line(1, "a"))
    with blocking.Space(space_of(cluster)) as space, ThreadPoolExecutor(1) as pool:
        space.emit_many({**TRUCKS, "address": "t", "data": {"kg": n}} for n in range(6))
        stalled = cluster.stall("a", 3)
        reading = space.read(**TRUCKS)
        first = pool.submit(lambda: [next(reading) for _ in range(3)])
        try:
            assert len(first.result(60)) == 3
        finally:
            space._worker.post(stalled.set)
        assert len(list(reading)) == 3
