"""The tutorial works as it is printed, by a new user: from the files alone, with its own environment, within ten minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.system.cluster import free_port
from tests.system.snippets import place, run_page
from utuple.local.temporary import temporary_folder

pytestmark = [pytest.mark.slow]

ROOT = Path(__file__).parents[2]
LIMIT_S = 600.0
WANTED = (
    *("emitted 29", '"degrees":29', "handed over to 1 of 1", "switched on", "room-102"),
    "All is well.",
)


def files_into(folder: Path) -> None:
    """What a user gets: the files of the repository, without what was built here."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def test_the_tutorial_runs_as_printed_within_ten_minutes_the_install_included() -> None:
    began_s = time.monotonic()
    with temporary_folder("tutorial") as folder:
        files_into(folder)
        port = free_port()
        here = place(
            folder,
            port,
            port + 28,
            UTUPLE_DATA=str(folder / "cluster"),
            # What `. .venv/bin/activate` leaves behind for the commands after it; nothing of this environment.
            PATH=f"{folder}/.venv/bin:{os.environ['PATH']}",
            PIP_QUIET="1",
        )
        try:
            said = run_page("tutorial.md", here)
            uses = here.shell("python -P -c 'import utuple; print(utuple.__file__)'").stdout
        finally:
            here.shell("utuple down")
        assert str(folder / ".venv") in uses, "it ran what was installed, not the checkout"
    for wanted in WANTED:
        assert wanted in said, f"{wanted} is missing:\n{said}"
    assert time.monotonic() - began_s < LIMIT_S
