"""A program's log stays short however long the program runs, and nothing of it is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from utuple.runtime.log_file import LogFile

LIMIT_S = 60.0

PROGRAM = """
import os, resource, sys
from pathlib import Path
from utuple.runtime.log_file import LogFile
from utuple.runtime.logs import Log, log_to_stderr

path, limit, kept, lines = Path(sys.argv[1]), *map(int, sys.argv[2:5])
file = LogFile(path, limit, kept)
file.take_output()
log_to_stderr("program", file)
log = Log("utuple.test")
for number in range(lines):
    if path.with_name("full").exists() and number == lines // 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    if number == 2 * (lines // 3):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    log.info("line %06d" % number)
os.write(2, b"the interpreter's last words\\n")
"""


def run(path: Path, limit_bytes: int, kept: int, lines: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(path), str(limit_bytes), str(kept), str(lines)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def files(path: Path) -> list[Path]:
    """The oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda one: -int(one.suffix[1:]))
    return [*older, path]


def numbers(path: Path) -> list[int]:
    text = "".join(one.read_text() for one in files(path))
    return [int(line.split()[-1]) for line in text.splitlines() if " line " in line]


def test_nothing_is_lost_between_two_files(tmp_path: Path) -> None:
    path = tmp_path / "server-1.log"
    run(path, limit_bytes=4_000, kept=100, lines=1_000)
    assert len(files(path)) > 5
    assert numbers(path) == list(range(1_000))
    assert path.read_text().endswith("the interpreter's last words\n")


def test_a_long_life_takes_no_more_than_its_files(tmp_path: Path) -> None:
    path = tmp_path / "server-1.log"
    run(path, limit_bytes=4_000, kept=2, lines=1_000)
    assert [one.name for one in files(path)] == ["server-1.log.2", "server-1.log.1", "server-1.log"]
    assert all(one.stat().st_size < 4_200 for one in files(path))
    left = numbers(path)
    assert left == list(range(left[0], 1_000))


def test_a_full_disk_ends_no_program_and_is_written_to_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "server-1.log"
    (tmp_path / "full").touch()
    run(path, limit_bytes=4_000, kept=100, lines=999)
    found = numbers(path)
    assert found[:333] == list(range(333))
    assert found[333:] == list(range(666, 999))
    text = "".join(one.read_text() for one in files(path))
    assert text.count("333 lines before this could not be written") == 1


def test_a_log_that_a_crashing_program_left_long_is_set_aside_before_the_next(
    tmp_path: Path,
) -> None:
    path = tmp_path / "server-1.log"
    file = LogFile(path, limit_bytes=10, kept=2)
    file.set_aside_if_long()  # there is none
    for text in ("first, and long", "second, and long", "third, and long", "short"):
        path.write_text(text)
        file.set_aside_if_long()
    assert [one.read_text() for one in files(path)] == [
        "second, and long",
        "third, and long",
        "short",
    ]


@pytest.mark.parametrize(
    "program", ["assignment_manager", "utuple.server", "sca_server", "load_monitor"]
)
def test_every_program_logs_to_the_file_it_is_told_or_says_why_not(
    program: str, tmp_path: Path
) -> None:
    """What ends it here is a port that cannot be had."""
    where = {"assignment_manager": "--peers"}.get(program, "--managers")
    more = ["--database", "postgresql://nowhere/x"] if program == "utuple.server" else []
    command = [sys.executable, "-m", program, "--name", "one", "--listen", "192.0.2.1:1", *more]
    command += [where, "127.0.0.1:1", "--log"]
    log = tmp_path / "one.log"
    ended = subprocess.run(
        [*command, str(log)], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")
    assert "192.0.2.1:1" in log.read_text()
    refused = subprocess.run(
        [*command, str(tmp_path / "none" / "one.log")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert refused.returncode == 1 and "--log" in refused.stderr
