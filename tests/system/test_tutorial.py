"""The tutorial works as it is printed: its programs are saved, its commands run, in an empty folder, within ten minutes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.system.cluster import free_port
from utuple.local.temporary import temporary_folder

pytestmark = [pytest.mark.slow]

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(sh|python)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 600.0


def blocks(port: int) -> list[tuple[str, str, str]]:
    """Kind, file and text. The usual ports may be taken here: everything else is as printed."""
    text = PAGE.read_text("utf-8").replace(":7400", f":{port}").replace(":7480", f":{port + 28}")
    up = f"utuple up --detach --port {port} --http {port + 28}"
    return BLOCK.findall(text.replace("utuple up --detach", up))


def test_the_tutorial_runs_as_printed_within_ten_minutes() -> None:
    port, said = free_port(), ""
    began_s = time.monotonic()
    with temporary_folder("tutorial") as place:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "UTUPLE_DATA": str(place / "cluster"),
            "UTUPLE_AT": f"127.0.0.1:{port}",
        }
        try:
            for kind, file, text in blocks(port):
                if kind == "python":
                    (place / file).write_text(text, "utf-8")
                    continue
                ran = subprocess.run(
                    ["bash", "-euc", text],
                    cwd=place,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                    check=False,
                )
                assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
                said += ran.stdout
        finally:
            down = [sys.executable, "-m", "utuple.cli.main", "down"]
            subprocess.run(down, env=environment, capture_output=True, check=False)
    for wanted in (
        "emitted 29",
        '"degrees":29',
        "handed over to 1 of 1",
        "switched on",
        "room-102",
        "All is well.",
    ):
        assert wanted in said, f"{wanted} is missing:\n{said}"
    assert time.monotonic() - began_s < LIMIT_S
