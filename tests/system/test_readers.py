"""Readers on a real cluster: opened twice, with lifetimes of fractions of a second, with openings that are cancelled."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.formal import Formal
from utuple.client.receiving.link import Link
from utuple.client.receiving.session import Session

pytestmark = pytest.mark.slow
LIMIT_S = 60
CANCELLED = 400


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


async def taken(events: Any, count: int) -> list[int]:
    async with asyncio.timeout(LIMIT_S):
        return [(await anext(events)).data["n"] for _ in range(count)]


async def emit(space: Any, *numbers: int, **asked: Any) -> None:
    for n in numbers:
        await space.emit(**{"address": "a", "data": {"n": n}, **asked})


def connected(cluster: Cluster) -> dict[str, int]:
    """By reader, at how many servers it is attached."""
    said = cluster.run("status", "--json").json()
    readers = [reader for server in said["servers"] for reader in server["readers"]]
    return Counter(reader["reader"] for reader in readers if reader["connected"])


async def arrived(space: Any, events: Any, family: dict[str, str]) -> None:
    """Acknowledgements travel in the background. They leave now, and whatever is asked for after them on the same streams
    is answered after them."""
    events._formal._tell()
    async with space.watch(**family):
        pass


@pytest.mark.parametrize("programs", [1, 2])
async def test_of_two_openings_of_a_reader_the_second_goes_on(
    cluster: Cluster, programs: int
) -> None:
    """Law 2, and the promise that the first is told."""
    family = {"subject": f"twice-{programs}", "type": "load"}
    asked = {**family, "reader": f"dispatch-{programs}"}
    async with utuple.connect(cluster.at) as one, utuple.connect(cluster.at) as another:
        second = one if programs == 1 else another
        old = await one.watch(**asked).open()  # type: ignore[arg-type]
        await emit(one, 1, 2, 3, **family)
        for _ in range(2):
            await (await anext(old)).ack()
        if programs == 2:
            await arrived(one, old, family)
        new = await second.watch(**asked).open()  # type: ignore[arg-type]
        with pytest.raises(utuple.ReaderReplaced):
            await taken(old, 10)
        await old.close()
        await emit(one, *range(4, 50), **family)
        assert await taken(new, 47) == list(range(3, 50))


@pytest.mark.parametrize("lifetime_s", [1.0, 0.5, 0.1])
async def test_a_connected_reader_gets_everything_however_short_its_lifetime(
    cluster: Cluster, lifetime_s: float
) -> None:
    asked = {"subject": f"brief-{lifetime_s}", "type": "load"}
    async with (
        utuple.connect(cluster.at) as space,
        space.watch(**asked, reader="brief", lifetime_s=lifetime_s) as events,  # type: ignore[arg-type]
    ):
        for n in range(100):
            await emit(space, n, **asked, lifetime_s=0)
            await asyncio.sleep(0.05)
        assert await taken(events, 100) == list(range(100))


async def test_openings_that_are_cancelled_leave_nothing_attached_and_nothing_held(
    cluster: Cluster,
) -> None:
    dice = random.Random(14)
    kinds = (Deliveries, Formal, Link, Session)
    async with utuple.connect(cluster.at) as space:

        async def cancelled(number: int) -> None:
            asked: dict[str, Any] = {"subject": f"ghost-{number % 7}", "type": "load"}
            asked["reader"] = dice.choice((None, f"ghost {number % 5}"))
            verb = dice.choice(("watch", "serve"))
            asked |= {"address": f"ghost-{number}"} if verb == "serve" else {}
            try:
                async with asyncio.timeout(dice.choice((0.001, 0.005, 0.02, 0.1)) * dice.random()):
                    async with getattr(space, verb)(**asked):
                        pass
            except (TimeoutError, utuple.Closed):
                return

        for first in range(0, CANCELLED, 20):
            await asyncio.gather(*(cancelled(first + n) for n in range(20)))
        async with asyncio.timeout(LIMIT_S):
            while ending := list(space._parts.sessions._ending):
                await asyncio.wait(ending)
        gc.collect()
        held = Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds))
        assert not held, held
        assert not [name for name in connected(cluster) if "ghost" in name or "session" in name]


def soon_s(dice: random.Random) -> float:
    """Any step of an opening may be cut by it, on a machine that is idle and on one that is not."""
    return dice.choice((0.02, 0.1, 0.5)) * dice.random()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("ends", ["cancelled", "closed"])
async def test_no_receipt_counts_a_device_without_a_name_whose_program_was_cancelled(
    cluster: Cluster, seed: int, ends: str
) -> None:
    """It lives as long as its connection. Cancelled at any point, while it is being opened too, it was known to an sCA server
    for another minute."""
    dice = random.Random(seed)
    asked: dict[str, Any] = {"subject": f"gone-{seed}-{ends}", "type": "power"}
    async with utuple.connect(cluster.at) as other:
        space = await utuple.connect(cluster.at).open()

        async def serve() -> None:
            with suppress(utuple.Closed):
                async with space.serve(**asked, address="one") as commands:
                    async for _ in commands:
                        pass

        async def serve_for(seconds: float) -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await serve()

        serving = [asyncio.create_task(serve_for(soon_s(dice))) for _ in range(200)]
        if ends == "cancelled":
            await asyncio.gather(*serving)
        else:
            await asyncio.sleep(soon_s(dice))
        await space.close()
        await asyncio.gather(*serving)
        for address in ("one", utuple.prefix("on")):  # the sCA server's way, and the servers'
            receipt = await other.command(**asked, address=address, data={"on": True})
            assert not receipt.devices, f"to {address!r}: {receipt}"
        assert connected(cluster) == {}


@pytest.mark.parametrize("verb", ["watch", "read"])
async def test_no_ef_is_left_of_watches_and_reads_without_a_name_that_were_cancelled(
    cluster: Cluster, verb: str
) -> None:
    dice = random.Random(7)

    def efs() -> int:
        return sum(
            server["event_templates"]
            for server in cluster.run("status", "--json").json()["servers"]
        )

    before = efs()
    async with utuple.connect(cluster.at) as space:

        async def look() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(soon_s(dice)):
                    found = getattr(space, verb)(subject=f"gone-{verb}", type="load")
                    async for _ in found:
                        pass

        await asyncio.gather(*(look() for _ in range(200)))
    assert efs() == before
