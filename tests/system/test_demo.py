"""`utuple demo`, from outside: it is good, and leaves nothing behind, also when interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster import COMMAND_LIMIT_S
from utuple.cli.local.processes import Process, start_of

pytestmark = pytest.mark.slow
DEMO = [sys.executable, "-P", "-m", "utuple.cli.main", "demo", "--json"]


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The demo's temporary folders lie in one of ours, so that we see whether any is left. As short
    as /tmp: a unix socket lives in it."""
    place = tmp_path_factory.mktemp("d")
    for folder in (place, *list(place.parents)[:3]):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
            folder.chmod(0o755)
    yield {**os.environ, "TMPDIR": str(place)}
    assert list(place.iterdir()) == []
    assert processes_with(str(place)) == []


def processes_with(text: str) -> list[Process]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            started = start_of(int(entry.name))
            if text.encode() in words and started is not None:
                found.append(Process(int(entry.name), started))
    return found


def test_the_demo_misses_nothing_repeats_nothing_and_recovers(stage: dict[str, str]) -> None:
    done = subprocess.run(
        DEMO, env=stage, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["recovered"] is True
    assert (said["missed"], said["repeated"], said["unexpected"]) == (0, 0, 0)
    assert said["delivered"] == said["expected"] > said["emitted"] > 10_000
    assert said["commands"] > 80


@pytest.mark.parametrize("moment", ["starting PostgreSQL", "killed with -9"])
def test_ctrl_c_leaves_nothing_behind_at_any_moment(stage: dict[str, str], moment: str) -> None:
    demo = subprocess.Popen(
        DEMO, env=stage, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if moment in line:
            break
    demo.send_signal(signal.SIGINT)
    out, err = demo.communicate(timeout=COMMAND_LIMIT_S)
    assert demo.returncode == 130, err
    assert out == "" and "Traceback" not in err
