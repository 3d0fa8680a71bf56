"""The programs of examples/ do what their first lines say, on a real cluster: the fixtures of `utuple.testing` at work."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import utuple
from examples.dispatch import main as dispatch
from examples.sensor import main as sensor
from tests.waiting import until
from utuple.client.blocking.space import Space as BlockingSpace
from utuple.client.space import Space
from utuple.testing.cluster import TestCluster

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT_S = 60.0


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=EXAMPLES
    )


async def test_the_sensor_program_emits_as_many_readings_as_it_is_told(
    utuple_cluster: TestCluster, utuple_space: Space
) -> None:
    await sensor(utuple_cluster.at, "truck-9", 3, 0.0)
    stored = [event async for event in utuple_space.read(subject="truck", type="load")]
    assert [event.address for event in stored] == ["truck-9"] * 3


async def test_the_dispatcher_prints_heavy_trucks_and_acknowledges_them(
    utuple_cluster: TestCluster, utuple_space: Space, capsys: pytest.CaptureFixture[str]
) -> None:
    for kg in (500, 2_000):
        await utuple_space.emit(
            subject="truck",
            type="load",
            address="truck-9",
            position=(35.7, 139.8),
            data={"kg": kg},
            lifetime_s=60,
        )
    application = asyncio.create_task(dispatch(utuple_cluster.at, 1_000))
    said = ""
    async with asyncio.timeout(LIMIT_S):
        while "kg (" not in said:
            await asyncio.sleep(0.05)
            said += capsys.readouterr().out
    application.cancel()
    await asyncio.gather(application, return_exceptions=True)
    assert "truck-9 2000 kg (stored)" in said and "500 kg (" not in said


def test_an_air_conditioner_is_switched_off_by_its_room_and_by_its_place(
    utuple_cluster: TestCluster, utuple_blocking_space: BlockingSpace
) -> None:
    at = ("--at", utuple_cluster.at)
    assert ran("switch_off", *at).returncode == 1, "nobody is there yet"
    command = [sys.executable, "-u", str(EXAMPLES / "aircon.py"), *at, "--room", "room-7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as aircon:
        try:
            assert aircon.stdout is not None and "waits for commands" in aircon.stdout.readline()
            until(
                lambda: ran("switch_off", *at, "--room", "room-7").returncode == 0, "it has heard"
            )
            assert "switched off" in aircon.stdout.readline()
            assert ran("switch_off", *at, "--all").returncode == 0
            assert "switched off" in aircon.stdout.readline()
        finally:
            aircon.kill()


def test_a_test_finds_nothing_of_the_tests_before_it(
    utuple_cluster: TestCluster, utuple_blocking_space: BlockingSpace
) -> None:
    space = utuple_blocking_space
    about: dict[str, Any] = {"subject": "truck", "type": "load"}

    def leave_something() -> None:
        space.emit(**about, address="truck-1", data={"kg": 1}, lifetime_s=600)
        with space.watch(**about, reader="dispatch") as events:
            next(iter(events)).ack()
        space.command(subject="aircon", type="power", data={}, lifetime_s=600, everywhere=True)

    leave_something()
    assert len(list(space.read(**about))) == 1
    utuple_cluster.empty()
    assert list(space.read(**about)) == []
    with space.serve(subject="aircon", type="power", address="room-1") as device:
        assert device.take(1, timeout_s=0.5) == [], "an old command would have come"
    # The reader is a new one: it is given what is stored from now on, from the beginning.
    space.emit(**about, address="truck-2", data={"kg": 2}, lifetime_s=600)
    with utuple.blocking.connect(utuple_cluster.at) as other:
        with other.watch(**about, reader="dispatch") as events:
            assert [event.address for event in events.take(1, timeout_s=LIMIT_S)] == ["truck-2"]


def test_the_fleet_map_shows_where_each_vehicle_was_last_and_moves_it(
    utuple_cluster: TestCluster, utuple_blocking_space: BlockingSpace
) -> None:
    def drive(bus: str, lat: float) -> None:
        utuple_blocking_space.emit(
            subject="bus", type="position", address=bus, position=(lat, 139.7), data={}
        )

    drive("bus-1", 35.1)
    drive("bus-2", 35.2)
    command = [sys.executable, "-u", str(EXAMPLES / "fleet_map.py"), "--at", utuple_cluster.at]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            url = program.stdout.readline().split()[-1]

            def fleet() -> Any:
                with urlopen(f"{url}fleet.json", timeout=LIMIT_S) as answer:
                    return json.load(answer)

            until(lambda: fleet() == {"bus-1": [35.1, 139.7], "bus-2": [35.2, 139.7]}, "stored")
            drive("bus-1", 35.3)
            until(lambda: fleet()["bus-1"] == [35.3, 139.7], "it has moved")
            with urlopen(url, timeout=LIMIT_S) as answer:
                assert b"/fleet.json" in answer.read()
        finally:
            program.kill()
