"""The MQTT door with clients that nobody here wrote: paho, aiomqtt, mosquitto_pub and mosquitto_sub."""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiomqtt
import pytest
from paho.mqtt.client import Client, MQTTMessage, MQTTv5, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

import utuple
from tests.system.cluster import Cluster, free_port, running_cluster
from tests.system.mqtt_door import MqttDoor, door_before
from tests.waiting import until

pytestmark = pytest.mark.slow
BOTH = pytest.mark.parametrize("version", [MQTTv311, MQTTv5])
WITH_MOSQUITTO = pytest.mark.skipif(
    not shutil.which("mosquitto_sub"), reason="the package mosquitto-clients is not installed"
)
LIMIT_S = 60.0
EACH = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2") as running:
        yield running


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttDoor]:
    folder, port = tmp_path_factory.mktemp("door"), free_port()
    with door_before(cluster, folder, "--websocket", f"127.0.0.1:{port}") as running:
        running.websocket_port = port
        yield running


@pytest.fixture
def name() -> str:
    return uuid4().hex[:8]


@pytest.fixture
async def space(cluster: Cluster) -> AsyncIterator[Any]:
    async with utuple.connect(cluster.at) as connected:
        yield connected


class Paho:
    """A paho client with its thread, and what it was given."""

    def __init__(
        self, port: int, client_id: str, version: int, *, kept: bool = False, transport: Any = "tcp"
    ) -> None:
        self.client = Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=version,
            transport=transport,
            **({"clean_session": not kept} if version == MQTTv311 else {}),
        )
        self._subscribed = threading.Event()
        self.connected = threading.Event()
        self._messages: queue.Queue[MQTTMessage] = queue.Queue()
        self.client.on_message = self._on_message
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.on_connect = lambda *_: self.connected.set()
        self.client.reconnect_delay_set(1, 1)
        said: dict[str, Any] = {}
        if version == MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 600 if kept else 0
            said = {"clean_start": not kept, "properties": properties}
        self.client.connect("127.0.0.1", port, keepalive=30, **said)
        self.client.loop_start()
        assert self.connected.wait(LIMIT_S)

    def _on_message(self, client: Client, _: object, message: MQTTMessage) -> None:
        self._messages.put(message)

    def subscribe(self, pattern: str, qos: int = 2) -> None:
        self._subscribed.clear()
        self.client.subscribe(pattern, qos)
        assert self._subscribed.wait(LIMIT_S)

    def publish(self, topic: str, payload: str, qos: int, **said: Any) -> None:
        self.client.publish(topic, payload, qos, **said).wait_for_publish(LIMIT_S)

    def message(self, limit_s: float = LIMIT_S) -> MQTTMessage:
        return self._messages.get(timeout=limit_s)

    def received(self, count: int) -> Counter[tuple[str, bytes, int]]:
        """So many messages, and whatever comes right behind them."""
        found = [self.message() for _ in range(count)]
        try:
            while True:
                found.append(self.message(0.5))
        except queue.Empty:
            return Counter((one.topic, one.payload, one.qos) for one in found)

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@BOTH
def test_paho_all_qos_both_directions_none_missed_none_twice(
    door: MqttDoor, name: str, version: int
) -> None:
    subscriber, publisher = (
        Paho(door.port, f"{name}s", version),
        Paho(door.port, f"{name}p", version),
    )
    subscriber.subscribe(f"{name}/load/+")
    sent: Counter[tuple[str, bytes, int]] = Counter()
    for number in range(EACH):
        for qos in range(3):
            topic, payload = f"{name}/load/t{number % 7}", f'{{"n": {number}, "qos": {qos}}}'
            publisher.client.publish(topic, payload, qos)
            sent[topic, payload.encode(), qos] += 1
    assert subscriber.received(len(sent)) == sent
    for one in (subscriber, publisher):
        one.stop()


def test_paho_over_a_websocket(door: MqttDoor, name: str) -> None:
    client = Paho(door.websocket_port, name, MQTTv5, transport="websockets")
    client.subscribe(f"{name}/load/#")
    big = "x" * 200_000
    for payload, qos in (("1", 0), ("2", 1), (big, 2)):
        client.publish(f"{name}/load/t", payload, qos)
    assert {client.message().payload for _ in range(3)} == {b"1", b"2", big.encode()}
    client.stop()


async def test_an_aiomqtt_program(door: MqttDoor, name: str, space: utuple.Space) -> None:
    async with (
        asyncio.timeout(LIMIT_S),
        aiomqtt.Client("127.0.0.1", door.port, identifier=f"{name}s") as listening,
        aiomqtt.Client(
            "127.0.0.1", door.port, identifier=f"{name}p", protocol=aiomqtt.ProtocolVersion.V5
        ) as speaking,
    ):
        await listening.subscribe(f"{name}/load/#", qos=1)
        for number in range(EACH):
            await speaking.publish(f"{name}/load/t", f'{{"n":{number}}}', qos=number % 3)
        found = []
        async for message in listening.messages:
            found.append(bytes(message.payload))
            if len(found) == EACH:
                break
        assert sorted(found) == sorted(f'{{"n":{n}}}'.encode() for n in range(EACH))
    stored = [event.data["n"] async for event in space.read(subject=name, type="load")]
    assert sorted(stored) == [n for n in range(EACH) if n % 3], "QoS 0 is not kept, the others are"


@WITH_MOSQUITTO
@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquitto_all_qos_and_retained(door: MqttDoor, name: str, version: str) -> None:
    common = ["-h", "127.0.0.1", "-p", str(door.port), "-V", version]

    def publish(*arguments: str) -> None:
        subprocess.run(["mosquitto_pub", *common, *arguments], check=True, timeout=LIMIT_S)

    publish("-q", "1", "-r", "-t", f"{name}/load/old", "-m", "kept")
    listening = subprocess.Popen(
        [
            "mosquitto_sub",
            *common,
            "-q",
            "2",
            "-t",
            f"{name}/#",
            "-F",
            "%t %p %q %r",
            "-C",
            "4",
            "-W",
            "60",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert listening.stdout is not None
    first = listening.stdout.readline()
    for qos in "012":
        publish("-q", qos, "-t", f"{name}/load/truck-17", "-m", f'{{"kg": 120{qos}}}')
    rest, _ = listening.communicate(timeout=LIMIT_S)
    assert first == f"{name}/load/old kept 1 1\n"
    assert sorted(rest.splitlines()) == [
        f'{name}/load/truck-17 {{"kg": 120{q}}} {q} 0' for q in range(3)
    ]


@WITH_MOSQUITTO
def test_the_will_of_a_mosquitto_client(door: MqttDoor, name: str) -> None:
    watching = Paho(door.port, name, MQTTv5)
    watching.publish(f"{name}/hello", "hello", 1, retain=True)
    watching.subscribe(f"{name}/will")
    will = ["--will-topic", f"{name}/will", "--will-payload", "gone"]
    leaving = subprocess.Popen(
        ["mosquitto_sub", "-p", str(door.port), "-V", "5", "-t", f"{name}/hello", *will],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert leaving.stdout is not None
    assert leaving.stdout.readline() == "hello\n"
    leaving.kill()
    leaving.wait()
    assert watching.message().payload == b"gone"
    watching.stop()


@BOTH
def test_a_door_killed_and_a_kept_session_at_qos_1_misses_nothing(
    cluster: Cluster, tmp_path: Path, name: str, version: int
) -> None:
    """Both clients reconnect by themselves to a door on the same port, killed -9 in the middle, three times."""
    port = free_port()
    running = MqttDoor(cluster, tmp_path / "mqtt.log", port=port)
    subscriber = Paho(port, f"{name}s", version, kept=True)
    subscriber.subscribe(f"{name}/load/#", 1)
    publisher = Paho(port, f"{name}p", version, kept=True)
    sent = []
    try:
        for turn in range(3):
            under_way = []
            for number in range(EACH):
                payload = f'{{"turn":{turn},"n":{number}}}'
                under_way.append(publisher.client.publish(f"{name}/load/t{number % 5}", payload, 1))
                sent.append(payload.encode())
            running.kill()
            (tmp_path / "mqtt.log").unlink()
            running = MqttDoor(cluster, tmp_path / "mqtt.log", port=port)
            for one in under_way:
                one.wait_for_publish(LIMIT_S)
        found: set[bytes] = set()
        while len(found) < len(sent):
            found.add(subscriber.message().payload)
        assert found == set(sent)
    finally:
        for one in (publisher, subscriber):
            one.stop()
        running.kill()


def test_utuple_up_brings_a_door_along_and_starts_it_again(tmp_path: Path, name: str) -> None:
    port = free_port()
    cluster = Cluster(tmp_path / "cluster", port)
    cluster.up("--servers", "1", "--managers", "1", "--no-monitor", "--mqtt", str(port + 5))
    try:
        os.kill(cluster.pid("mqtt-1"), signal.SIGKILL)
        client = until(lambda: _reached(port + 5, name), "the door is back")
        assert client is not None
        client.subscribe(name)
        client.publish(name, "back", 1)
        assert client.message().payload == b"back"
        client.stop()
    finally:
        assert cluster.run("down").code == 0


def _reached(port: int, client_id: str) -> Paho | None:
    try:
        return Paho(port, client_id, MQTTv5)
    except ConnectionRefusedError:
        return None


def test_the_help_teaches() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "utuple.doors.mqtt", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    for word in ("mosquitto_pub", "SUBJECT/TYPE/ADDRESS", "--mapping", "--receive-maximum"):
        assert word in ran.stdout


def test_a_bridge_carries_both_ways(
    cluster: Cluster, door: MqttDoor, tmp_path: Path, name: str
) -> None:
    """The other broker is another door here: to a bridge a broker is a broker. Its names lie in a family of messages that the
    first door's clients do not look at, so that what is carried is seen."""
    mapping = tmp_path / "other.toml"
    mapping.write_text("[messages]\nsubject = 'elsewhere'\n[events]\nfamilies = ['nothing/here']\n")
    with door_before(cluster, tmp_path, "--mapping", str(mapping)) as broker:
        carried = [
            "--bridge-in",
            f"{name}/#=from/",
            "--bridge-out",
            f"{name}/#=to/",
            "--bridge-in",
            f"to/{name}/#",
        ]
        log = tmp_path / "bridge.log"
        bridged = MqttDoor(
            cluster,
            log,
            "--bridge",
            f"mqtt://127.0.0.1:{broker.port}",
            "--bridge-name",
            name,
            *carried,
        )
        until(partial(_is_connected, log), "the bridge is connected")
        inside, outside = (
            Paho(bridged.port, f"{name}i", MQTTv5),
            Paho(broker.port, f"{name}o", MQTTv5),
        )
        inside.subscribe("from/#")
        inside.subscribe(f"to/{name}/#")
        outside.subscribe("to/#")
        try:
            until(lambda: _carried(inside, outside, f"{name}/x"), "the bridge has subscribed")
            for number in range(EACH):
                outside.client.publish(f"{name}/y", f"in {number}", number % 3)
                inside.client.publish(f"{name}/z", f"out {number}", number % 3)
            found = inside.received(EACH)
            assert {(topic, payload) for topic, payload, _ in found} == {
                (f"from/{name}/y", b"in %d" % number) for number in range(EACH)
            }
            found = outside.received(EACH)
            assert {(topic, payload) for topic, payload, _ in found} == {
                (f"to/{name}/z", b"out %d" % number) for number in range(EACH)
            }
        finally:
            for one in (inside, outside):
                one.stop()
            assert bridged.stop() == 0


def test_two_bridges_between_the_same_brokers_do_not_carry_in_circles(
    cluster: Cluster, door: MqttDoor, tmp_path: Path, name: str
) -> None:
    """Each carries out what the other has carried in. It ends where a message would be carried a second time."""
    mapping = tmp_path / "other.toml"
    mapping.write_text("[messages]\nsubject = 'elsewhere'\n[events]\nfamilies = ['nothing/here']\n")
    with door_before(cluster, tmp_path, "--mapping", str(mapping)) as broker:
        url = f"mqtt://127.0.0.1:{broker.port}"
        both = ["--bridge", url, "--bridge-in", f"{name}/#", "--bridge-out", f"{name}/#"]
        logs = [tmp_path / f"{number}.log" for number in range(2)]
        bridges = [
            MqttDoor(cluster, log, *both, "--bridge-name", f"{name}{log.stem}") for log in logs
        ]
        for log in logs:
            until(partial(_is_connected, log), "the bridge is connected")
        inside, outside = Paho(door.port, f"{name}i", MQTTv5), Paho(broker.port, f"{name}o", MQTTv5)
        inside.subscribe(f"{name}/#")
        outside.subscribe(f"{name}/#")
        try:
            until(lambda: _carried(inside, outside, f"{name}/x"), "the bridges have subscribed")
            for one in (inside, outside):
                _drained(one)
            inside.publish(f"{name}/once", "round", 1)
            assert outside.message().payload == b"round"
            assert _drained(inside) <= 3
            assert _drained(outside) <= 3
        finally:
            for client in (inside, outside):
                client.stop()
            for bridge in bridges:
                bridge.kill()


def _is_connected(log: Path) -> bool:
    return log.read_text().count("bridge connected") == 2


def _drained(client: Paho) -> int:
    """How many messages came before there was silence."""
    for count in range(100):
        try:
            client.message(0.7)
        except queue.Empty:
            return count
    return 100


def _carried(inside: Paho, outside: Paho, topic: str) -> bool:
    """Whether a message goes through, each way."""
    inside.publish(topic, "?", 1)
    outside.publish(topic, "?", 1)
    try:
        inside.message(1)
        outside.message(1)
    except queue.Empty:
        return False
    return True
