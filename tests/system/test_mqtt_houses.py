"""Paper 003, section 6.1.2: 40 houses with 90 smart plugs of 10 parameters each, 3,600 publishers and 40 applications, with readings
that were recorded, at every QoS; then while servers and doors are killed and load moves. Commands to every plug, and from every plug."""

from __future__ import annotations

import csv
import gzip
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path

import pytest

from tests.system.cluster import Cluster, running_cluster
from tests.system.mqtt_door import MqttDoor, door_before
from tests.system.mqtt_fleet import Fleet, Member
from tests.waiting import until

pytestmark = pytest.mark.long

PARAMETERS = 10
LIMIT_S = 150.0
RECORDING = Path(os.environ.get("UTUPLE_PLUGS", "tracebase_plugs_20120120_1s.csv.gz"))
"""address,time,lat,lon,subject,type,value,unit; without it, watts from dice."""
Message = tuple[str, bytes]


def readings(count: int) -> list[str]:
    """Watts, as plugs reported them."""
    if not RECORDING.exists():
        dice = random.Random(3)
        return [str(dice.randrange(2_000)) for _ in range(count)]
    with gzip.open(RECORDING, "rt") as file:
        found = [row["value"] for row in islice(csv.DictReader(file), count)]
    return found


class Town:
    """Houses with their plugs, and an application each."""

    def __init__(
        self, ports: list[int], houses: int, plugs: int, *, kept: bool, switched: bool = False
    ) -> None:
        self._number = 0
        """Of the last reading: no two are the same message."""
        self.plugs: dict[tuple[int, int], Member] = {}
        self.applications: list[Member] = []
        for house in range(houses):
            application = Member(f"application-{house}", kept=kept)
            application.filters = [
                (f"house-{house}/parameter-{parameter}/#", 2) for parameter in range(PARAMETERS)
            ]
            if switched:
                application.filters = [(f"cmd/house-{house}/report/application", 1)]
            self.applications.append(application)
            for plug in range(plugs):
                member = self.plugs[house, plug] = Member(f"plug-{house}-{plug}", kept=kept)
                if switched:
                    member.filters = [(f"cmd/house-{house}/switch/plug-{plug}", 1)]
        self.fleet = Fleet([*self.applications, *self.plugs.values()], ports)
        self.fleet.start()
        until(lambda: all(member.is_ready for member in self.fleet.members), "all are in", LIMIT_S)

    def publish(self, qos_of: list[int], watts: Iterator[str]) -> list[Counter[Message]]:
        """One reading of each parameter of each plug; what each application must get."""
        wanted: list[Counter[Message]] = [Counter() for _ in self.applications]
        for parameter in range(PARAMETERS):
            for (house, plug), member in self.plugs.items():
                topic = f"house-{house}/parameter-{parameter}/plug-{plug}"
                self._number += 1
                payload = f'{{"watts": {next(watts)}, "n": {self._number}}}'.encode()
                with self.fleet.lock:
                    member.publish(topic, payload, qos_of[parameter % len(qos_of)])
                wanted[house][topic, payload] += 1
        return wanted

    def came(self) -> list[Counter[Message]]:
        with self.fleet.lock:
            return [Counter(application.came) for application in self.applications]

    def missed(self, wanted: list[Counter[Message]]) -> list[Message]:
        pairs = zip(self.came(), wanted, strict=True)
        return [message for came, due in pairs for message in set(due) - set(came)]

    def until_came(self, wanted: list[Counter[Message]]) -> None:
        deadline_s = time.monotonic() + LIMIT_S
        while (missed := self.missed(wanted)) and time.monotonic() < deadline_s:
            time.sleep(1.0)
        assert not missed, (len(missed), sorted(missed)[:5], self._told(missed))

    def _told(self, missed: list[Message]) -> dict[str, list[tuple[float, str]]]:
        """Of the applications that lack something: what happened to them."""
        houses = {topic.partition("/")[0].rpartition("-")[2] for topic, _ in missed}
        return {f"house-{house}": self.applications[int(house)].log for house in sorted(houses)}

    def until_answered(self) -> None:
        members = self.fleet.members
        until(lambda: not any(member.waiting for member in members), "all is answered", LIMIT_S)


@contextmanager
def doors(cluster: Cluster, folder: Path) -> Iterator[list[int]]:
    """The ports of two; they end as they should."""
    with ExitStack() as stack:
        places = [folder / "first", folder / "second"]
        for place in places:
            place.mkdir()
        yield [stack.enter_context(door_before(cluster, place)).port for place in places]


def test_3600_plugs_of_40_houses_at_every_qos(tmp_path: Path) -> None:
    with running_cluster("--servers", "2") as cluster, doors(cluster, tmp_path) as ports:
        town = Town(ports, 40, 90, kept=False)
        wanted = town.publish([0, 1, 2], iter(readings(40 * 90 * PARAMETERS)))
        town.until_answered()
        town.until_came(wanted)
        assert town.came() == wanted  # none missed, none twice, nothing else
        town.fleet.stop()


def test_3600_plugs_are_commanded_once_each_and_command_their_applications(tmp_path: Path) -> None:
    with running_cluster("--servers", "2") as cluster, doors(cluster, tmp_path) as ports:
        town = Town(ports, 40, 90, kept=False, switched=True)
        wanted: list[Counter[Message]] = [Counter() for _ in town.applications]
        for (house, plug), member in town.plugs.items():
            switch, report = (
                f"cmd/house-{house}/switch/plug-{plug}",
                f"cmd/house-{house}/report/application",
            )
            said = f'{{"plug":{plug}}}'.encode()
            with town.fleet.lock:
                town.applications[house].publish(switch, b'{"on":true}', 1)
                member.publish(report, said, 1)
            wanted[house][report, said] += 1
        town.until_answered()
        town.until_came(wanted)
        plugs = town.plugs.values()
        until(lambda: all(plug.came for plug in plugs), "all are switched", LIMIT_S)
        assert town.came() == wanted
        assert all(sum(plug.came.values()) == 1 for plug in plugs)
        town.fleet.stop()


@pytest.mark.parametrize(("houses", "plugs"), [(4, 50), (40, 90)])
def test_qos_1_misses_nothing_while_servers_and_doors_are_killed_and_load_moves(
    tmp_path: Path, houses: int, plugs: int
) -> None:
    """Each plug's readings in three parts: before, between and after the kills."""
    watts = iter(readings(3 * houses * plugs * PARAMETERS))
    with running_cluster("--servers", "3") as cluster:
        first, second = (MqttDoor(cluster, tmp_path / f"door-{n}.log") for n in range(2))
        town = Town([first.port, second.port], houses, plugs, kept=True)
        wanted = [town.publish([1], watts)]
        os.kill(cluster.pid("server-2"), signal.SIGKILL)
        first.kill()
        third = MqttDoor(cluster, tmp_path / "door-2.log")
        with town.fleet.lock:
            town.fleet.ports[:] = [second.port, third.port]
        helping = cluster.start("server", "help", "server-1")
        wanted.append(town.publish([1], watts))
        second.kill()
        os.kill(cluster.pid("server-1"), signal.SIGKILL)
        fourth = MqttDoor(cluster, tmp_path / "door-3.log")
        with town.fleet.lock:
            town.fleet.ports[:] = [third.port, fourth.port]
        draining = cluster.start("server", "drain", "server-3")
        wanted.append(town.publish([1], watts))
        town.until_answered()
        empty: Counter[Message] = Counter()
        due = [sum(parts, empty) for parts in zip(*wanted, strict=True)]
        town.until_came(due)
        assert [set(came) for came in town.came()] == list(map(set, due))  # nothing else either
        for moving in (helping, draining):
            moving.wait(LIMIT_S)
        town.fleet.stop()
        for door in (third, fourth):
            assert door.stop() == 0
