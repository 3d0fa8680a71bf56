"""docs/operating.md sets up a cluster on two machines, command by command: here it is followed to the letter, but for the
databases (embedded ones) and the ports (free ones)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.system.cluster import COMMAND_LIMIT_S, Ran, free_port
from tests.waiting import until
from utuple.runtime.postgresql.embedded import EmbeddedPostgres

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
TITLE = "## A cluster on several machines"
STOP_LIMIT_S = 60.0


def commands() -> list[str]:
    section = PAGE.read_text(encoding="utf-8").split(TITLE)[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@dataclass
class ByHand:
    """A person who reads the page, with a terminal."""

    place: Path
    port: int
    environment: dict[str, str]
    programs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def follow(self, line: str) -> Ran:
        line = re.sub(
            r"(127\.0\.0\.[23]):74(\d\d)", lambda m: f"{m[1]}:{self.port + int(m[2])}", line
        )
        if exported := re.fullmatch(r"export (\w+)=(\S+)", line):
            self.environment.setdefault(exported[1], exported[2])
            return Ran(0, "", "")
        if "python -m " in line:
            self._start(line)
            return Ran(0, "", "")
        return self.run(line)

    def run(self, line: str) -> Ran:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def _start(self, line: str) -> None:
        name = re.search(r"--name (\S+)", line)
        assert name is not None
        line = re.sub(r"(.*)(python -m .*)", r"\1 exec \2", line)
        with (self.place / f"{name[1]}.log").open("ab") as log:
            self.programs[name[1]] = subprocess.Popen(
                ["/bin/sh", "-c", line], env=self.environment, stderr=log, stdout=log
            )

    def log(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text()

    def stop(self) -> None:
        for program in self.programs.values():
            program.send_signal(signal.SIGTERM)
        for program in self.programs.values():
            program.wait(STOP_LIMIT_S)


@pytest.fixture
def by_hand() -> Iterator[ByHand]:
    with tempfile.TemporaryDirectory(prefix="utuple-hand-") as folder:
        place = Path(folder).resolve()
        postgres = EmbeddedPostgres(place / "pg")
        postgres.start()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        databases = {f"DB{n}": postgres.dsn(f"server_{n}") for n in (1, 2)}
        person = ByHand(place, free_port(), {**os.environ, "PATH": path, **databases})
        try:
            yield person
        finally:
            person.stop()
            postgres.stop()


def test_the_page_on_several_machines_can_be_followed_to_the_letter(by_hand: ByHand) -> None:
    lines = commands()
    founding = next(at for at, line in enumerate(lines) if line.startswith("utuple found"))
    for line in lines[:founding]:
        by_hand.follow(line)

    def waits(name: str) -> bool:
        return "`utuple found NAME…`" in by_hand.log(name)

    programs = {"manager-1", "manager-2", "server-1", "server-2", "sca-1", "monitor-1"}
    assert set(by_hand.programs) == programs
    for name in programs:
        until(lambda name=name: waits(name), f"{name} says what it waits for")  # type: ignore[misc]
    assert "utuple found server-1 server-2" in by_hand.run("utuple status").out

    said: dict[str, Ran] = {}
    for line in lines[founding:]:
        ran = said[line.split()[1]] = by_hand.follow(line)
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
    assert json.loads(said["read"].out)["address"] == "truck-17"
    assert json.loads(said["watch"].out)["data"] == {"kg": 1200}
    assert json.loads(said["serve"].out)["data"] == {"on": False}
    assert json.loads(by_hand.run("utuple status --json").out)["well"] is True

    table = by_hand.run("utuple table --json").out
    again = by_hand.run("utuple found server-1 server-2 --json")
    assert again.code == 0 and json.loads(again.out)["new"] is False
    other = by_hand.run("utuple found server-2 server-3")
    assert other.code == 1
    assert "Not in the table: server-3" in other.err and "not named: server-1" in other.err
    assert by_hand.run("utuple table --json").out == table


def test_a_founding_says_who_is_missing_and_two_at_once_give_one_table(by_hand: ByHand) -> None:
    lines = commands()
    founding = next(at for at, line in enumerate(lines) if line.startswith("utuple found"))
    for line in lines[:founding]:
        by_hand.follow(line)
    refused = by_hand.run("utuple found server-1 server-2 server-9 --wait 15")
    assert refused.code == 1
    assert "waiting for server-9" in refused.err and "server-1, server-2" in refused.err
    both = [
        subprocess.Popen(
            ["/bin/sh", "-c", f"exec utuple found {names} --json"],
            env=by_hand.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for names in ("server-1 server-2", "server-2 server-1")
    ]
    said = [json.loads(one.communicate(timeout=COMMAND_LIMIT_S)[0]) for one in both]
    assert said[0]["lines"] == said[1]["lines"]
    assert [line["home"] for line in said[0]["lines"]] == ["server-1", "server-2"]
    assert said[0]["whole"] and (said[0]["new"] or said[1]["new"])


def test_a_cluster_without_sca_server_and_monitor_says_so(by_hand: ByHand) -> None:
    lines = commands()
    founding = next(at for at, line in enumerate(lines) if line.startswith("utuple found"))
    for line in lines[: founding + 1]:
        if "sca_server" not in line and "load_monitor" not in line:
            by_hand.follow(line)
    status = by_hand.run("utuple status")
    assert status.code == 1
    assert "No sCA server: devices" in status.out and "No load monitor" in status.out
    assert len(json.loads(by_hand.run("utuple status --json").out)["missing"]) == 2
    device = "--subject aircon --type power --address room-101"
    served = by_hand.run(f"utuple serve {device} --timeout 10")
    assert served.code == 1
    assert "waiting for an sCA server" in served.err and "not open after 10 s" in served.err
