"""`utuple demo`, from outside: it is good, and leaves nothing behind, also when interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cluster import ended
from utuple.local.processes import Process, start_of

pytestmark = pytest.mark.slow
DEMO_LIMIT_S = 600.0
"""A minute where nothing else runs; its own waits have limits, and it says which one has passed."""
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
        DEMO, env=stage, capture_output=True, text=True, timeout=DEMO_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["recovered"] is True
    assert (said["missed"], said["repeated"], said["unexpected"]) == (0, 0, 0)
    assert said["delivered"] == said["expected"] > said["emitted"] > 10_000
    assert said["commands"] > 80
    has_helped_a_hot_key(said["hot_key"])
    assert "slow servers" in done.stderr, "it says how it overloads a key on a small machine"


def has_helped_a_hot_key(hot: dict[str, Any]) -> None:
    """Figure 3, and back again."""
    assert (hot["missed"], hot["repeated"], hot["unexpected"]) == (0, 0, 0)
    assert hot["delivered"] == hot["expected"] > hot["emitted"] > 1_000
    (home,) = servers_of(hot["before"])
    assert servers_of(hot["after"])[0] == home and len(servers_of(hot["after"])) > 1
    assert len(servers_of(hot["released"])) == 1
    assert set(hot["share"]) == set(servers_of(hot["after"]))
    assert sum(share > 0.1 for share in hot["share"].values()) > 1, "load has spread"
    kinds = [move["kind"] for move in hot["moves"] if move["step"] in ("committed", "done")]
    assert kinds[0] == "help-processing"
    assert kinds.count("help-processing") == kinds.count("release") <= kinds.count("flip-off")
    assert hot["helped_s"] > 0 and hot["released_s"] > 0


def servers_of(line: str) -> list[str]:
    """Of a line as `utuple table` shows it."""
    return [server.split()[0] for server in line.rpartition("  ")[2].split(", ")]


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("starting PostgreSQL", marks=pytest.mark.long),
        "killed with -9",
        pytest.param("to find help", marks=pytest.mark.long),
    ],
)
def test_ctrl_c_leaves_nothing_behind_at_any_moment(stage: dict[str, str], moment: str) -> None:
    demo = subprocess.Popen(
        DEMO, env=stage, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with ended(demo):
        assert demo.stderr is not None
        for line in demo.stderr:
            if moment in line:
                break
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=DEMO_LIMIT_S)
        assert demo.returncode == 130, err
        assert out == "" and "Traceback" not in err
