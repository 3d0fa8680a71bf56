"""Doors that are killed, servers that are cut off, answers that are lost, connections that break, in any order: whatever a client
published with QoS 1 and was told is registered reaches every application with a kept session. In virtual time, from a seed."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.doors.mqtt.devices import Device, door_of, space_of
from utuple.client.space import Space
from utuple.doors.mqtt.codec.packets import Ack, Disconnect, Kind, Publish
from utuple.doors.mqtt.door import Door

SERVERS = ("a", "b")
MESSAGES = 40
STORM_S = 100.0
CALM_S = 200.0


class Town:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.cluster = TwinCluster(one_line(1, *SERVERS), slow_calls={"a": 0.1, "b": 0.1})
        self.doors: list[Door] = []
        self.spaces: list[Space] = []
        self.devices: dict[Door, list[Device]] = {}
        self.told: list[str] = []

    async def open_door(self) -> None:
        space = await space_of(self.cluster, self.dice.randrange(1 << 30)).open()
        self.spaces.append(space)
        self.doors.append(door_of(space))

    async def kill_a_door(self) -> None:
        """Its clients are cut off from it and go elsewhere. The cluster is not told, and worse than one that was killed it goes
        on with what it had under way."""
        door = self.doors.pop(self.dice.randrange(len(self.doors)))
        for device in self.devices.pop(door, []):
            device.close()
        await self.open_door()

    def device(self, name: str) -> Device:
        """At some door."""
        door = self.dice.choice(self.doors)
        device = Device(door, name)
        self.devices.setdefault(door, []).append(device)
        return device

    async def storm(self) -> None:
        cluster, dice = self.cluster, self.dice
        end_s = asyncio.get_running_loop().time() + STORM_S
        while asyncio.get_running_loop().time() < end_s:
            await asyncio.sleep(dice.expovariate(1.0))
            match dice.randrange(12):
                case 0 | 1 | 2 | 3 | 4:
                    await self.kill_a_door()
                case 5 | 6:
                    cluster.cut(
                        dice.choice(SERVERS)
                    )  # some for longer than a verb takes to give up
                case 7 | 8 | 9:
                    cluster.losing[dice.choice(SERVERS)] = dice.randrange(4)
                case _:
                    for name in list(cluster.down):
                        cluster.mend(name)
        for name in list(cluster.down):
            cluster.mend(name)
        cluster.losing.clear()


class Application:
    """Its session is kept, and it subscribes once."""

    def __init__(self, town: Town, name: str) -> None:
        self.town, self.name = town, name
        self.came: set[str] = set()
        self.is_subscribed = asyncio.Event()

    async def run(self) -> None:
        while True:
            device = self.town.device(self.name)
            with suppress(ConnectionResetError, TimeoutError):
                answer = await device.come_in()
                if answer.reason >= 0x80:
                    await asyncio.sleep(0.5)
                    continue
                if self.is_subscribed.is_set():
                    assert answer.session_present, "its session was lost"
                else:
                    await device.subscribe()
                    self.is_subscribed.set()
                while isinstance(packet := await device.next(), Publish):
                    self.came.add(packet.payload.decode())
                assert isinstance(packet, Disconnect)
            device.lose()
            await asyncio.sleep(0.5)


async def publish(town: Town, name: str) -> None:
    """One message after the other, each until it is acknowledged."""
    device: Device | None = None
    for number in range(1, MESSAGES + 1):
        said, is_dup = f'{{"n":"{name}-{number}"}}', False
        family = town.dice.choice(("truck", "bus", "tram"))
        while True:
            try:
                if device is None:
                    device = town.device(name)
                    assert (await device.come_in()).reason == 0
                device.say(
                    Publish(f"{family}/load/{name}", said.encode(), 1, False, is_dup, number)
                )
                is_dup = True
                assert await device.next() == Ack(Kind.PUBACK, number)
                break
            except (ConnectionResetError, TimeoutError, AssertionError):
                if device is not None:
                    device.lose()
                device = None
                await asyncio.sleep(0.5)
        town.told.append(said)
        await asyncio.sleep(town.dice.expovariate(1.0))


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 60))]
)
@in_virtual_time
async def test_a_storm_misses_nothing_at_qos_1(seed: int) -> None:
    town = Town(seed)
    for _ in range(2):
        await town.open_door()
    applications = [Application(town, f"application-{n}") for n in range(3)]
    running = [asyncio.create_task(one.run()) for one in applications]
    for one in applications:
        await one.is_subscribed.wait()
    publishing = [asyncio.create_task(publish(town, f"plug-{n}")) for n in range(4)]
    await town.storm()
    await asyncio.wait_for(asyncio.gather(*publishing), CALM_S)
    await asyncio.sleep(CALM_S)
    for task, one in zip(running, applications, strict=True):
        assert not task.done() or task.exception() is None, task.exception()
        assert set(town.told) - one.came == set(), one.name
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for door in town.doors:
        await door.stop()
    for space in town.spaces:
        await space.close()
