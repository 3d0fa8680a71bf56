"""A real cluster for tests: started and stopped by the same command a user types."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UTUPLE = str(Path(sys.executable).parent / "utuple")
PORTS_APART = 40
START_S = 120


@dataclass(frozen=True, slots=True)
class Cluster:
    at: str
    data: Path

    def run(
        self, *words: str, stdin: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """`utuple WORDS` against this cluster."""
        return subprocess.run(
            [UTUPLE, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=check,
            env=os.environ | {"UTUPLE_AT": self.at},
        )

    def servers(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self.run("server", "list", "--json").stdout)
        return listed

    def pid_of(self, name: str) -> int:
        return next(int(server["pid"]) for server in self.servers() if server["name"] == name)

    def kill(self, name: str) -> int:
        pid = self.pid_of(name)
        os.kill(pid, signal.SIGKILL)
        return pid


def free_ports() -> int:
    """The first of a block of ports nobody listens on."""
    for _ in range(100):
        first = random.randrange(20_000, 32_000, PORTS_APART)
        if all(_is_free(first + more) for more in range(PORTS_APART)):
            return first
    raise AssertionError("no free block of ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@contextmanager
def running_cluster(folder: Path, servers: int = 3) -> Iterator[Cluster]:
    port = free_ports()
    data = folder / "cluster"
    common = ["--data", str(data)]
    subprocess.run(
        [UTUPLE, "up", "--detach", "--servers", str(servers), "--port", str(port), *common],
        check=True,
        timeout=START_S,
    )
    try:
        yield Cluster(f"127.0.0.1:{port}", data)
    finally:
        subprocess.run([UTUPLE, "down", *common], check=True, timeout=START_S)
