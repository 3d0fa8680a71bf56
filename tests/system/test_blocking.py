"""The blocking face in real programs: any thread, Ctrl-C, fork, and leaving. Every call ends; no process hangs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.system.blocking_programs import Program
from tests.system.cluster import Cluster, running_cluster

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LIMIT_S = 90
"""Each takes a few seconds; one that hangs takes for ever."""
ENDS_BY_ERROR = {"ends_by_an_error_with_everything_open": (1, "as intended\n")}
PROGRAMS = [
    name
    for name, value in vars(Program).items()
    if callable(value) and not name.startswith("_") and value.__code__.co_argcount == 1
    if name not in ("connect",)
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_blocking_program_ends_and_says_nothing(cluster: Cluster, program: str) -> None:
    """Promise: safe from any thread; every call ends; a caller's iterable runs on the caller's thread; after fork a
    clear error; leaving the process never waits."""
    command = [sys.executable, "-m", "tests.system.blocking_programs"]
    ended = subprocess.run(
        [*command, program, cluster.at, f"truck-{uuid4().hex[:12]}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == ENDS_BY_ERROR.get(program, (0, ""))
