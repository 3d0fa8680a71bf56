"""A real cluster for system tests: the command line from outside, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utuple.local.ports import claimed

COMMAND_LIMIT_S = 240.0
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


@dataclass(frozen=True)
class Cluster:
    folder: Path
    port: int

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
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def up(self, *arguments: str) -> Ran:
        ran = self.run("up", "--detach", "--port", str(self.port), *arguments)
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
