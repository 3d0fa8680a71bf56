"""`utuple plan` from outside: a real server is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ops_sim.costs import cost_named
from tests.system.cluster import COMMAND_LIMIT_S

pytestmark = pytest.mark.slow
PLAN = [sys.executable, "-P", "-m", "utuple.cli.main", "plan"]


def planned(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*PLAN, *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_calibration_measures_a_real_server_and_plans_can_use_it() -> None:
    with tempfile.TemporaryDirectory(prefix="utuple-cost-") as folder:
        said = planned("calibrate", "--quick", "--out", folder)
        model = cost_named(str(Path(folder) / "cost.json"))
        assert {"report.html", "page.png", "lines.csv"} <= set(os.listdir(folder))
    assert model.to_json() == said["model"]
    assert model.ea_s > 0
    assert 50 < model.ea_bytes < 5_000
    assert model.ef_bytes >= 0
    assert model.cf_s > 0
    assert said["quick"] is True
