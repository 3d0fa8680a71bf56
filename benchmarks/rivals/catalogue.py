"""Which rivals there are, whether they are installed, and what an acknowledgement of theirs means. Light."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from utuple.local.layout import HOST

_TEST_LIMIT_S = 10.0
_SYSTEM_PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Debian puts servers where a user's PATH may not look."""


@dataclass(frozen=True, slots=True)
class Rival:
    name: str
    program: str
    package: str
    """The Python client's, as it is imported."""
    durable: str
    """What is on disk when a publish is acknowledged."""
    command: Callable[[str, int, Path], list[str]]
    """From its program, a port and an empty folder."""
    tests_settings: bool = False
    """Some versions do not know what we set: asked with `-t`."""

    @property
    def path(self) -> str | None:
        """Beside this Python first: nats-server comes in a wheel, because Debian's is years old."""
        own = Path(sys.executable).parent
        places = (str(own), None, _SYSTEM_PROGRAMS)
        return next((found for p in places if (found := shutil.which(self.program, path=p))), None)

    @property
    def is_installed(self) -> bool:
        path = self.path
        if path is None or find_spec(self.package) is None:
            return False
        return not self.tests_settings or self._knows_its_settings(path)

    def _knows_its_settings(self, path: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            command = [*self.command(path, 0, Path(folder)), "-t"]
            done = subprocess.run(command, capture_output=True, timeout=_TEST_LIMIT_S, check=False)
        return done.returncode == 0

    @property
    def note(self) -> str:
        return self.durable if self.is_installed else "not installed, or too old: skipped"


def _mosquitto(program: str, port: int, folder: Path) -> list[str]:
    settings = folder / "mosquitto.conf"
    settings.write_text(
        f"listener {port} {HOST}\n"
        "allow_anonymous true\n"
        "persistence true\n"
        f"persistence_location {folder}/\n"
        "max_inflight_messages 1000\n"  # as shipped, 20: a subscriber waits for its own acknowledgements
        "max_queued_messages 0\n"  # as shipped, 1000: what comes faster is thrown away
        "set_tcp_nodelay true\n"
        "user root\n"  # only looked at by root: else it becomes somebody who may not write here
    )
    return [program, "-c", str(settings)]


def _redis(program: str, port: int, folder: Path) -> list[str]:
    return [
        *(program, "--port", str(port), "--bind", HOST, "--dir", str(folder)),
        *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
    ]


def _nats(program: str, port: int, folder: Path, sync: str) -> list[str]:
    settings = folder / "nats.conf"
    settings.write_text(
        f"listen: {HOST}:{port}\njetstream {{ store_dir: {folder / 'jetstream'}\n{sync}\n}}\n"
    )
    return [program, "-c", str(settings)]


MOSQUITTO = Rival(
    "mosquitto",
    "mosquitto",
    "paho",
    "not durable: QoS 1 is acknowledged from memory; persistence is on and saves every half hour",
    _mosquitto,
)
REDIS = Rival(
    "redis",
    "redis-server",
    "redis",
    "durable: appendonly with appendfsync always, one fsync a pipelined batch",
    _redis,
)
NATS = Rival(
    "nats",
    "nats-server",
    "nats",
    "JetStream, file storage, sync_interval as shipped: acknowledged when written to the file, not synced (2 min)",
    lambda program, port, folder: _nats(program, port, folder, ""),
)
NATS_ALWAYS = Rival(
    "nats_always",
    "nats-server",
    "nats",
    "durable: JetStream, file storage, sync_interval always",
    lambda program, port, folder: _nats(program, port, folder, "sync_interval: always"),
    tests_settings=True,  # before 2.10 there is no sync_interval
)
MOSQUITTO_QOS0 = Rival(
    "mosquitto_qos0",
    "mosquitto",
    "paho",
    "not durable, and not acknowledged: QoS 0",
    _mosquitto,
)
NATS_CORE = Rival(
    "nats_core",
    "nats-server",
    "nats",
    "not durable, and not acknowledged: NATS core, without JetStream",
    lambda program, port, folder: [
        *[program, "--addr", HOST, "--port", str(port)],
        *["--pid", str(folder / "nats.pid")],
    ],
)
ALL = (MOSQUITTO, MOSQUITTO_QOS0, REDIS, NATS, NATS_ALWAYS, NATS_CORE)


def installed(wanted: Sequence[Rival]) -> list[Rival]:
    return [rival for rival in wanted if rival.is_installed]
