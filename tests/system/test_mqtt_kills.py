"""A door killed between PUBLISH and PUBACK, again and again: no PUBACK without a durable row, and DUP gives one EA."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import uuid4

import pytest

import utuple
from tests.system.cluster import running_cluster
from tests.system.mqtt_door import MqttDoor
from tests.system.mqtt_wire import Gone, Wire
from utuple.doors.mqtt.codec.packets import V5, Ack, Kind, Publish

pytestmark = pytest.mark.slow

CLIENTS = 10
"""Each has one message under way at each kill, which is caught between PUBLISH and PUBACK, or just before or after."""
KEPT = {"clean_start": False, "properties": {"session_expiry_interval": 600}}


class Publisher:
    """A client that sends one message again until it is acknowledged, as MQTT asks it to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.is_dup = False
        self.answered: set[int] = set()
        self.sent: set[int] = set()
        self.caught = 0
        """Kills between a PUBLISH and its PUBACK."""

    def connect(self, port: int) -> None:
        self.wire = Wire(port, V5)
        self.wire.connect(self.name, **KEPT)

    def say(self) -> None:
        self.sent.add(self.number)
        payload = b"%d" % self.number
        topic = f"{self.name}/load/t"
        self.wire.say(Publish(topic, payload, 1, dup=self.is_dup, packet_id=1 + self.number % 9))

    def hear(self, limit_s: float) -> bool:
        """Whether this message is acknowledged now."""
        try:
            packet = self.wire.next(limit_s)
        except (Gone, TimeoutError):
            return False
        assert isinstance(packet, Ack) and packet.kind is Kind.PUBACK and packet.reason < 0x80
        assert packet.packet_id == 1 + self.number % 9
        self.answered.add(self.number)
        self.number, self.is_dup = self.number + 1, False
        return True


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.long)])
def test_no_puback_without_a_durable_row_and_a_dup_is_one_event_through_kills_of_the_door(
    tmp_path: Path, kills: int
) -> None:
    dice = random.Random(19)
    with running_cluster("--servers", "1") as cluster:
        publishers = [Publisher(uuid4().hex[:8]) for _ in range(CLIENTS)]
        for kill in range(kills):
            door = MqttDoor(cluster, tmp_path / f"door-{kill}.log")
            for one in publishers:
                one.connect(door.port)
            for _ in range(dice.randrange(3)):
                for one in publishers:
                    one.say()
                for one in publishers:
                    assert one.hear(20.0)
            for one in publishers:
                one.say()
            for one in publishers[: dice.randrange(CLIENTS)]:
                one.hear(dice.choice((0.0001, 0.001, 0.005)))
            door.kill()
            for one in publishers:
                while one.hear(0.01):
                    """What had been answered before the kill."""
                one.is_dup = one.number in one.sent
                one.caught += one.is_dup
                one.wire.close()
        door = MqttDoor(cluster, tmp_path / "last.log")
        for one in publishers:
            one.connect(door.port)
            if one.is_dup:
                one.say()
                assert one.hear(20.0)
            one.wire.close()
        assert door.stop() == 0
        with utuple.blocking.connect(cluster.at) as space:
            for one in publishers:
                found = [event.data["value"] for event in space.read(subject=one.name, type="load")]
                assert sorted(found) == sorted(one.answered)
    assert sum(one.caught for one in publishers) > kills  # it was struck where it hurts
