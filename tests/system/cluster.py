"""A real cluster for system tests: the command line from outside, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, AnyStr

from utuple.local.ports import claimed
from utuple.local.temporary import temporary_folder

COMMAND_LIMIT_S = 240.0
END_LIMIT_S = 60.0
_CLAIMS = ExitStack()
"""Ports stay claimed until this test process ends: clusters come up and go down by other processes."""


def free_port() -> int:
    return _CLAIMS.enter_context(claimed())


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@contextmanager
def ended(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """A test ends what it started, whatever it finds: in order, so that what that had started ends too."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def running_cluster(*arguments: str) -> Iterator[Cluster]:
    """One that `utuple up` has started with these arguments; gone afterwards."""
    with temporary_folder("test") as place, ExitStack() as processes:
        cluster = Cluster(place / "cluster", free_port(), processes)
        try:
            cluster.up(*arguments)
            yield cluster
        finally:
            processes.close()
            stopped = cluster.run("down")
        assert stopped.code == 0, stopped.err


@dataclass(frozen=True)
class Cluster:
    folder: Path
    port: int
    processes: ExitStack | None = None
    """Ends what was started, at the latest with the cluster."""

    @property
    def at(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "utuple.cli.main", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "UTUPLE_AT": self.at, "UTUPLE_DATA": str(self.folder)}

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> Ran:
        done = subprocess.run(
            self.command(*arguments),
            input=stdin,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on, such as watch."""
        process = subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.processes.enter_context(ended(process)) if self.processes else process

    def up(self, *arguments: str) -> Ran:
        door = () if any(a.startswith("--http") for a in arguments) else ("--no-http",)
        ran = self.run("up", "--detach", "--port", str(self.port), *door, *arguments)
        assert ran.code == 0, f"{ran.out}\n{ran.err}"
        return ran

    def servers(self) -> dict[str, Any]:
        """By name; what `utuple server list --json` says."""
        return {server["name"]: server for server in self.run("server", "list", "--json").json()}

    def pid(self, name: str) -> int:
        return int(json.loads((self.folder / "run" / f"{name}.json").read_text())["pid"])

    def pids(self) -> dict[str, int]:
        names = (path.stem for path in (self.folder / "run").glob("*.json"))
        return {name: self.pid(name) for name in names if name != "state"}
