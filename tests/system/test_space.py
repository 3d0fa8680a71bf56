"""The space as its users see it: SDK, real processes, real PostgreSQL; crashes in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.system.crowd import Crowd
from utuple import Circle, at_least, prefix

pytestmark = pytest.mark.slow
LIMIT_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
async def space(cluster: Cluster) -> AsyncIterator[Any]:
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as connected:
        yield connected


@pytest.fixture
def subject() -> str:
    """One of its own for each test: they share a cluster."""
    return f"truck-{uuid4().hex[:12]}"


async def first(events: Any, count: int) -> list[Any]:
    got: list[Any] = []
    async with asyncio.timeout(LIMIT_S):
        async for event in events:
            got.append(event)
            if len(got) == count:
                break
    return got


def numbers(events: list[Any]) -> list[int]:
    return [event.data["n"] for event in events]


async def test_the_lines_in_the_readme_run_as_shown(cluster: Cluster) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    assert "127.0.0.1:7400" in code
    shown = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code.replace("127.0.0.1:7400", cluster.at)),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT_S):
        said, _ = await shown.communicate()
    assert (shown.returncode, said.decode()) == (0, "truck-17 {'kg': 1200} stored\n")


async def test_watch_gives_stored_then_live_without_gap_or_repeat(space: Any, subject: str) -> None:
    for n in range(20):
        await space.emit(subject=subject, type="load", address="a", data={"n": n})
    emitting = asyncio.gather(
        *(
            space.emit(subject=subject, type="load", address="a", data={"n": n})
            for n in range(20, 200)
        )
    )
    async with space.watch(subject=subject, type="load") as events:
        got = await first(events, 200)
    await emitting
    assert sorted(numbers(got)) == list(range(200))
    assert all(event.stored for event in got if event.data["n"] < 20)


async def test_a_delivery_carries_what_was_emitted(space: Any, subject: str) -> None:
    at = datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=UTC)
    data = {"kg": 1200, "raw": b"\x00\xff", "deep": {"a": [1, 2.5, None, True, "é"]}}
    await space.emit(
        subject=subject, type="load", address="t-1", position=(35.68, 139.76), time=at, data=data
    )
    async for event in space.read(subject=subject, type="load"):
        assert (event.address, event.time, event.position) == ("t-1", at, (35.68, 139.76))
        assert (event.data, event.stored) == (data, True)
        assert (event.subject, event.type) == (subject, "load")
        break
    else:
        pytest.fail("nothing was read")


async def test_emit_many_is_read_back_by_condition(space: Any, subject: str) -> None:
    old = datetime.now(UTC) - timedelta(hours=2)
    await space.emit_many(
        {"subject": subject, "type": "load", "address": f"t-{n % 7}", "data": {"n": n}, "time": old}
        for n in range(5000)
    )
    got = [
        event.data["n"]
        async for event in space.read(
            subject=subject, type="load", address=prefix("t-3"), where={"n": at_least(2500)}
        )
    ]
    assert sorted(got) == [n for n in range(2500, 5000) if n % 7 == 3]


async def test_a_named_reader_goes_on_where_it_acknowledged(cluster: Cluster, subject: str) -> None:
    def watch(space: Any) -> Any:
        since = datetime.now(UTC) - timedelta(
            hours=1
        )  # another instant each time: still this reader
        return space.watch(subject=subject, type="load", reader="dispatch", since=since)

    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        async with watch(space) as events:
            for n in range(30):
                await space.emit(subject=subject, type="load", address="a", data={"n": n})
            for event in await first(events, 30):
                if event.data["n"] < 12:
                    await event.ack()
        for n in range(30, 40):
            await space.emit(subject=subject, type="load", address="a", data={"n": n})
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space, watch(space) as events:
        assert numbers(await first(events, 28)) == list(range(12, 40))


async def test_one_stopped_watch_slows_nobody(space: Any, subject: str) -> None:
    count = 25_000  # more than a window
    async with (
        space.watch(subject=subject, type="load") as stopped,
        space.watch(subject=subject, type="load") as running,
    ):
        await space.emit_many(
            {"subject": subject, "type": "load", "address": "a", "data": {"n": n}}
            for n in range(count)
        )
        assert numbers(await first(running, count)) == list(range(count))
        assert numbers(await first(stopped, count)) == list(range(count))


async def test_a_command_reaches_one_device_and_the_receipt_says_so(
    space: Any, subject: str
) -> None:
    nobody = await space.command(subject=subject, type="power", address="r-1", data={"on": True})
    assert not nobody and nobody.matched == 0
    async with space.serve(
        subject=subject, type="power", address="r-1", where={"on": bool}
    ) as commands:
        receipt = await space.command(
            subject=subject, type="power", address="r-1", data={"on": False}
        )
        assert (receipt.matched, receipt.handed_over) == (1, 1)
        (command,) = await first(commands, 1)
        assert (command.address, command.data) == ("r-1", {"on": False})
        unfit = await space.command(subject=subject, type="power", address="r-1", data={"on": 1})
        assert unfit.matched == 0, "1 is not a bool: the device's template refuses it"


async def test_a_device_that_is_away_is_reported(cluster: Cluster, subject: str) -> None:
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as actuator:
            device = actuator.serve(subject=subject, type="power", address="r-1", reader="ac")
            async with device:
                pass
        receipt = await space.command(subject=subject, type="power", address="r-1", data={})
        assert (receipt.matched, receipt.handed_over) == (1, 0)
        assert receipt.devices[0].reason == "not connected"


async def test_a_command_to_a_place_reaches_all_devices_there_and_those_that_come_later(
    space: Any, subject: str
) -> None:
    async def device(name: str, latitude: float) -> Any:
        serving = space.serve(
            subject=subject, type="power", address=name, position=(latitude, 139.76)
        )
        return serving, await serving.__aenter__()

    devices = [await device(f"r-{n}", 35.68 + n * 0.001) for n in range(6)]
    here = Circle(35.68, 139.76, 250)
    receipt = await space.command(
        subject=subject, type="power", area=here, data={"on": False}, lifetime_s=600
    )
    assert sorted(device.address for device in receipt.devices) == ["r-0", "r-1", "r-2"]
    assert receipt.handed_over == 3
    devices.append(await device("late", 35.68))
    for _, commands in (*devices[:3], devices[6]):
        assert (await first(commands, 1))[0].data == {"on": False}
    for serving, _ in devices:
        await serving.__aexit__(None, None, None)


@pytest.mark.parametrize("victim", ["", "server", "postgres"])
async def test_nothing_is_missed_or_repeated_when_something_is_killed(
    cluster: Cluster, victim: str
) -> None:
    crowd = Crowd(cluster.at, events=1200, watchers=30, clients=8, seed=len(victim))

    async def kill() -> None:
        await crowd.reached(0.4)
        if victim == "server":
            server = (await asyncio.to_thread(cluster.servers))["server-2"]
            os.kill(server["pid"], signal.SIGKILL)
        elif victim == "postgres":
            pid = int(
                (cluster.folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0]
            )
            os.kill(pid, signal.SIGKILL)

    report = await crowd.run(kill())
    assert report.emitted == 1200
    assert report.expected > 0
    assert (report.missed, report.phantom, report.repeated) == ([], [], [])


async def test_the_control_plane_may_die(cluster: Cluster, subject: str) -> None:
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        await space.emit(subject=subject, type="load", address="a", data={"n": 0})
        managers = sorted((cluster.folder / "run").glob("manager-*.json"))
        assert len(managers) == 3
        for path in managers:
            os.kill(_pid(path), signal.SIGKILL)
        async with asyncio.timeout(LIMIT_S):
            await space.emit(subject=subject, type="load", address="a", data={"n": 1})
        async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as other:
            got = [event.data["n"] async for event in other.read(subject=subject, type="load")]
    assert sorted(got) == [0, 1]


def _pid(path: Path) -> int:
    return int(json.loads(path.read_text())["pid"])


async def test_the_sca_server_is_filled_again_after_a_crash(cluster: Cluster, subject: str) -> None:
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as gone:
            async with gone.serve(subject=subject, type="power", address="away", reader="x"):
                pass
        async with space.serve(subject=subject, type="power", address="here") as commands:
            os.kill(_pid(cluster.folder / "run" / "sca-1.json"), signal.SIGKILL)
            async with asyncio.timeout(LIMIT_S):
                handed_over = 0
                while (
                    not handed_over
                ):  # answered as soon as it is filled, maybe before the device is back
                    receipt = await space.command(
                        subject=subject, type="power", address="here", data={}
                    )
                    assert receipt.matched == 1
                    handed_over = receipt.handed_over
            assert len(await first(commands, 1)) == 1
            away = await space.command(subject=subject, type="power", address="away", data={})
            assert (away.matched, away.handed_over) == (1, 0), "known again from the uTupleServers"
