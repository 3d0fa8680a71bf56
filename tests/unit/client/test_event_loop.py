"""Where a space is used: in the loop it belongs to, and with names that exist. Elsewhere it says so at once."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import utuple
from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.errors import OutcomeUnknown, Unavailable, UnknownHost, WrongContext
from utuple.wire import utuple_pb2 as pb

LOAD: dict[str, Any] = {"subject": "truck", "type": "load"}
EVENT: dict[str, Any] = {**LOAD, "address": "t", "data": {"kg": 1}}


VERBS: list[Callable[[Space], Awaitable[object]]] = [
    lambda space: space.open(),
    lambda space: space.emit(**EVENT),
    lambda space: space.emit_many([EVENT]),
    lambda space: space.command(**EVENT),
    lambda space: space.command(**LOAD, data={}, everywhere=True),
    lambda space: space.watch(**LOAD).open(),
    lambda space: space.serve(**LOAD, address="t").open(),
    lambda space: anext(space.read(**LOAD)),
]


def space_of(cluster: TwinCluster) -> Space:
    config = Config(timeout_s=30)
    return Space(put_together([MANAGER], config, cluster, random.Random(7), lambda: 1_000_000))


async def used_in(space: Space) -> list[Callable[[], Awaitable[object]]]:
    """Uses of this space and of what it hands out."""
    await space.open()
    await space.emit(**EVENT)
    watch = await space.watch(**LOAD, reader="dispatch").open()
    delivery = await anext(watch)
    read, paged = space.read(**LOAD), space.read(**LOAD, limit=1)
    lazy, device = space.watch(**LOAD), space.serve(**LOAD, address="t")

    async def acknowledge() -> None:
        await delivery.ack()

    return [
        space.open,
        lambda: space.emit(**EVENT),
        lambda: space.emit_many([EVENT]),
        lambda: space.command(**EVENT),
        lambda: space.command_many([EVENT]),
        lambda: space.retry(OutcomeUnknown("lost")),
        watch.open,
        lambda: anext(watch),
        lambda: watch.take(1),
        watch.close,
        watch.cancel,
        acknowledge,
        lambda: anext(lazy),
        device.open,
        lambda: anext(read),
        lambda: anext(paged),
        space.close,
    ]


async def refused(uses: list[Callable[[], Awaitable[object]]], told: str) -> None:
    for use in uses:
        with pytest.raises(WrongContext, match=told):
            await use()


def test_a_space_used_in_a_second_run_says_that_it_belongs_to_the_first() -> None:
    """Promise: at once; its streams and answers would never be heard of."""
    uses = asyncio.run(used_in(space_of(TwinCluster(one_line(1, "a")))))
    asyncio.run(refused(uses, "belongs to another event loop, which has ended"))


def test_a_space_used_in_another_threads_loop_says_so_and_goes_on_in_its_own() -> None:
    async def main() -> None:
        space = space_of(TwinCluster(one_line(1, "a")))
        uses = await used_in(space)
        errors: list[BaseException] = []

        def elsewhere() -> None:
            try:
                asyncio.run(refused(uses, "belongs to another event loop:"))
            except BaseException as error:  # noqa: BLE001  for the test's own thread
                errors.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert not errors, errors
        await space.emit(**EVENT)
        assert [event.data async for event in space.read(**LOAD)] == [{"kg": 1}] * 2
        await space.close()

    asyncio.run(main())


@in_virtual_time
async def test_names_that_nobody_knows_are_given_up_long_before_the_time_out() -> None:
    loop = asyncio.get_running_loop()
    for verb in VERBS:
        space = space_of(TwinCluster(one_line(1, "a"), managers_up=False, nameless=True))
        begun_s = loop.time()
        with pytest.raises(UnknownHost, match="names"):
            await verb(space)
        assert loop.time() - begun_s < 4
        await space.close()


@in_virtual_time
async def test_a_resolver_that_fails_for_a_moment_costs_a_moment() -> None:
    cluster = TwinCluster(one_line(1, "a"), managers_up=False, nameless=True)
    space = space_of(cluster)
    emitting = asyncio.create_task(space.emit(**EVENT))
    await asyncio.sleep(1.0)
    cluster.managers_up = True
    await emitting
    await space.close()


@in_virtual_time
async def test_a_manager_that_is_merely_down_is_waited_for() -> None:
    cluster = TwinCluster(one_line(1, "a"), managers_up=False)
    space = space_of(cluster)
    begun_s = asyncio.get_running_loop().time()
    with pytest.raises(Unavailable) as caught:
        await space.emit(**EVENT)
    assert not isinstance(caught.value, UnknownHost)
    assert asyncio.get_running_loop().time() - begun_s > 20
    await space.close()


class Silent(TwinCluster):
    """Its assignment managers take the call and say nothing."""

    def expect(self, address: str, name: str) -> None:
        """Nobody shows a certificate here."""

    async def lookup(
        self, address: str, request: pb.LookupRequest, timeout_s: float
    ) -> pb.LookupAnswer:
        await asyncio.sleep(timeout_s)
        raise OutcomeUnknown(f"{address} does not answer")


@pytest.mark.parametrize("verb", VERBS)
@in_virtual_time
async def test_several_managers_that_are_silent_are_waited_for_no_longer_than_one(
    verb: Callable[[Space], Awaitable[object]],
) -> None:
    managers = [f"manager-{number}:1" for number in range(10)]
    config = Config(timeout_s=10.0)
    parts = put_together(managers, config, Silent(one_line(1, "a")), random.Random(7), lambda: 0)
    space = Space(parts)
    begun_s = asyncio.get_running_loop().time()
    with pytest.raises(Unavailable, match=r"no assignment manager|no sCA server"):
        await verb(space)
    assert asyncio.get_running_loop().time() - begun_s <= 10.0
    await space.close()


@in_virtual_time
async def test_a_lookup_that_fails_when_everyone_has_stopped_waiting_fails_nobody() -> None:
    """Its task has no caller left; the space owns it, and retrieves its error (seed 2000043)."""
    cluster = TwinCluster(one_line(1, "a"))
    cluster.hold_lookups = asyncio.Event()
    space = space_of(cluster)
    opening = asyncio.create_task(space.watch(**LOAD).open())
    await asyncio.sleep(1.0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    cluster.managers_up = False
    cluster.hold_lookups.set()
    await asyncio.sleep(1.0)
    cluster.managers_up = True
    await space.emit(**EVENT)
    await space.close()


def test_a_name_that_cannot_exist_is_unknown_on_the_real_network() -> None:
    with pytest.raises(UnknownHost, match=r"nowhere\.\.example"):
        utuple.blocking.connect("nowhere..example:7400", timeout_s=600).__enter__()
