"""`utuple chaos`, from outside: faults and moves come, nothing is missed or lost, and nothing is left behind.

Short runs of small clusters, for most of the time is starting and stopping processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster import COMMAND_LIMIT_S, ended
from tests.system.test_demo import processes_with

pytestmark = pytest.mark.slow
CHAOS = [sys.executable, "-P", "-m", "utuple.cli.main", "chaos", "--json", "--minutes"]
FIELDS = (
    "faults moves registered deliveries_expected missed repeated lost recovery_s_max "
    "kills seed minutes phantom epochs"
)
SEED = 39366
"""Its first wave kills a server and its PostgreSQL at once while an sCA server leaves, and soon brings them back."""


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Its temporary folders lie in one of ours, so that we see whether any is left. As short as /tmp: unix
    sockets live in it."""
    place = tmp_path_factory.mktemp("c")
    for folder in (place, *list(place.parents)[:3]):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
            folder.chmod(0o755)
    yield {**os.environ, "TMPDIR": str(place)}
    assert list(place.iterdir()) == []
    assert processes_with(str(place)) == []


def test_a_short_run_misses_nothing_and_loses_nothing(stage: dict[str, str]) -> None:
    done = subprocess.run(
        [*CHAOS, "0.12", "--servers", "3", "--seed", str(SEED)],
        env=stage,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert set(FIELDS.split()) <= set(said)
    assert (said["missed"], said["lost"], said["repeated"], said["phantom"]) == (0, 0, 0, 0)
    assert said["problems"] == []
    assert said["registered"] > 200
    assert said["deliveries_expected"] > 100
    moves = said["moves"]
    assert moves["total"] == sum(moves["by_kind"].values()) > 0
    assert moves["orders"]["wrong_taken"] == 0
    assert said["faults"]["total"] == sum(said["faults"]["by_kind"].values()) >= said["kills"] > 0
    assert 0 < said["recovery_s_max"] <= 30
    assert said["seed"] == SEED
    assert said["faults"]["by_kind"]["leave-sca"] == 1


@pytest.mark.long
def test_ctrl_c_leaves_nothing_behind(stage: dict[str, str]) -> None:
    chaos = subprocess.Popen(
        [*CHAOS, "5", "--servers", "1"],
        env=stage,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ended(chaos):
        assert chaos.stderr is not None
        for line in chaos.stderr:
            if "faults" in line:
                break
        chaos.send_signal(signal.SIGINT)
        out, err = chaos.communicate(timeout=COMMAND_LIMIT_S)
        assert chaos.returncode == 130, err
        assert out == "" and "Traceback" not in err
