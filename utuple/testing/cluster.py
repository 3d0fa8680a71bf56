"""A cluster as a test sees it. It is hosted by a process of its own (`hosting`), which ends it when this side of their pipe is
closed: in order after the last test, and just so when the test process was interrupted or killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from utuple.errors import UTupleError

_STOP_LIMIT_S = 120.0


class NoCluster(UTupleError):
    """The cluster for the tests did not do what it was asked for; the message says why."""


class TestCluster:
    __test__ = False  # pytest collects classes of this name otherwise

    def __init__(self, servers: int = 1) -> None:
        self._servers = servers
        self._host: subprocess.Popen[bytes] | None = None
        self.at = ""
        """The address to connect to: `utuple.connect(cluster.at)`."""
        self.servers: tuple[str, ...] = ()
        """Their names."""
        self.folder = Path()

    def __enter__(self) -> Self:
        # A session of its own: Ctrl-C is for the tests, and ends this when they have ended.
        self._host = subprocess.Popen(
            [sys.executable, "-P", "-m", "utuple.testing.hosting", str(self._servers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        said = self._answer()
        self.at, self.folder = str(said["at"]), Path(str(said["folder"]))
        self.servers = tuple(map(str, said["servers"]))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        host = self._host
        if host is not None and host.stdin is not None and host.stdout is not None:
            host.stdin.close()
            host.wait(_STOP_LIMIT_S)
            host.stdout.close()

    def empty(self) -> None:
        """Removes what is stored: events, named readers, and commands that still wait for devices."""
        self._ask("empty")

    def kill(self, name: str) -> None:
        """Kills a program with -9, such as "server-1"; it stays dead until it is revived."""
        self._ask("kill", name)

    def revive(self, name: str) -> None:
        self._ask("revive", name)

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def _ask(self, verb: str, name: str = "") -> None:
        assert self._host is not None and self._host.stdin is not None, "it has not been entered"
        try:
            self._host.stdin.write(orjson.dumps([verb, name]) + b"\n")
            self._host.stdin.flush()
        except BrokenPipeError:
            raise NoCluster("the cluster of the tests has ended") from None
        self._answer()

    def _answer(self) -> dict[str, list[object]]:
        assert self._host is not None and self._host.stdout is not None
        line = self._host.stdout.readline()
        said = orjson.loads(line) if line else {"error": "the cluster of the tests has ended"}
        if "error" in said:
            raise NoCluster(str(said["error"]))
        return dict(said)
