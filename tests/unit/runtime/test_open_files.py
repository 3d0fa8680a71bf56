"""Connections need file descriptors: the limit on open files is raised to what is asked for, or what is asked for is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from utuple.transport.http2.limits import SERVER

ASK = """
import resource, sys
from utuple.errors import InvalidInput
from utuple.runtime.open_files import room_for
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
try:
    print(room_for(connections), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except InvalidInput as error:
    print(error)
"""


def asked(soft: int, hard: int, connections: int) -> str:
    """In a process of its own: a hard limit that was lowered stays low."""
    command = [sys.executable, "-c", ASK, str(soft), str(hard), str(connections)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "said"),
    [
        (512, 2_000, 1_000, "1000 1256"),
        (1_800, 2_000, 1_000, "1000 1800"),
        (512, 2_000, SERVER.connections, "1744 2000"),
    ],
)
def test_the_limit_is_raised_to_what_is_needed_and_may_be(
    soft: int, hard: int, connections: int, said: str
) -> None:
    assert asked(soft, hard, connections) == said


def test_more_than_may_be_is_refused_with_the_limit_and_how_to_raise_it() -> None:
    said = asked(512, 2_000, 10_000)
    assert said.startswith("connections: 10000 is refused: must be at most 1744")
    assert "2000 files open" in said and "ulimit -Hn" in said
