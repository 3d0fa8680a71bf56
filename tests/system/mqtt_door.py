"""A real MQTT door before a real cluster."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.cluster import Cluster
from tests.waiting import until

_LISTENING = re.compile(r"listening address=127\.0\.0\.1:(\d+)")


class MqttDoor:
    def __init__(self, cluster: Cluster, log: Path, *options: str, port: int = 0) -> None:
        self.log = log
        self.websocket_port = 0
        command = [sys.executable, "-P", "-m", "utuple.doors.mqtt", "--at", cluster.at]
        with log.open("a") as output:
            self.process = subprocess.Popen(
                [*command, "--listen", f"127.0.0.1:{port}", *options],
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self.port = port
        until(self._is_listening, "the door listens")

    def _is_listening(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        found = _LISTENING.findall(self.log.read_text())
        if found:
            self.port = int(found[-1])
        return bool(found)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@contextmanager
def door_before(cluster: Cluster, folder: Path, *options: str) -> Iterator[MqttDoor]:
    """It ends as it should, and has nothing to complain of."""
    door = MqttDoor(cluster, folder / "mqtt.log", *options)
    try:
        yield door
        assert door.stop() == 0
        assert " ERROR " not in door.log.read_text()
    finally:
        if door.process.poll() is None:
            door.kill()
