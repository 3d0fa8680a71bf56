"""What runs on a data folder, read from `postmaster.pid` and /proc. It starts nothing.

A pid alone proves little: after a crash or a restart of the machine it may belong to anybody. So a
process counts as PostgreSQL's only if it is a `postgres` whose working directory is the data
folder, which is where each of them stays. A zombie has no working directory and so does not count.
On a system without /proc a living pid is believed, and PostgreSQL's own checks are the safeguard.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# The lines of postmaster.pid (src/include/utils/pidfile.h), counted from 0.
_PID_LINE, _SOCKET_LINE, _STATUS_LINE = 0, 4, 7


@dataclass(frozen=True)
class Postmaster:
    """What `postmaster.pid` says. The later lines are written one by one as the start proceeds."""

    pid: int
    socket_folder: Path | None
    status: str

    @property
    def is_ready(self) -> bool:
        return self.status == "ready"

    @property
    def is_stopping(self) -> bool:
        return self.status == "stopping"


def parse_pid_file(text: str) -> Postmaster | None:
    """None while the file is still empty, or if it is not one."""
    lines = [line.strip() for line in text.split("\n")] + [""] * (_STATUS_LINE + 1)
    if not lines[_PID_LINE].isdecimal() or int(lines[_PID_LINE]) == 0:
        return None
    socket = lines[_SOCKET_LINE]
    return Postmaster(int(lines[_PID_LINE]), Path(socket) if socket else None, lines[_STATUS_LINE])


def read_pid_file(data: Path) -> Postmaster | None:
    """What the file says, true or stale. One we may not read is another user's, so not ours."""
    try:
        return parse_pid_file(os.fsdecode((data / "postmaster.pid").read_bytes()))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def find_postmaster(data: Path) -> Postmaster | None:
    """The postmaster that is alive on this folder."""
    noted = read_pid_file(data)
    return noted if noted is not None and runs_on(noted.pid, data) else None


def runs_on(pid: int, data: Path) -> bool:
    if not (_PROC / "self" / "cwd").exists():
        return pid_exists(pid)
    try:
        folder = os.readlink(_PROC / str(pid) / "cwd")
        # Not `exe`: a dying process loses that before it lets go of the shared memory, and a new
        # postmaster refuses to start while the old memory is held. The folder goes after it.
        program = (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return False
    return folder == str(data) and program == "postgres"


def pid_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def processes_on(data: Path) -> list[int]:
    """Every PostgreSQL process on this folder: postmaster, backends and the rest."""
    if not _PROC.is_dir():
        return []
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return [pid for pid in pids if runs_on(pid, data)]


def forget_reused_pid(data: Path) -> Postmaster | None:
    """Removes and returns a stale `postmaster.pid` whose pid is now somebody else's: PostgreSQL
    would take that one for its postmaster and refuse to start. Call it only when nothing runs on
    the folder. With a dead pid it is left to PostgreSQL, which finds old shared memory by it."""
    noted = read_pid_file(data)
    if noted is None or not pid_exists(noted.pid):
        return None
    (data / "postmaster.pid").unlink()
    return noted


def quit_processes(pids: list[int]) -> None:
    """What a postmaster does to its backends after a crash: end now, clean up nothing."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)


def wait_until(condition: Callable[[], bool], limit_s: float, interval_s: float) -> bool:
    """Whether the condition came true in time; asked at least once."""
    deadline_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(interval_s)
    return True
