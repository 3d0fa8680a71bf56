"""Processes known by pid and start time: a pid alone may be anybody's after a while.

Every program of a cluster carries its data folder in its environment, so that one which died between
starting it and writing it down is still found (on Linux; elsewhere what is written down must do).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from utuple.runtime.postgresql.process import wait_until

_PROC = Path("/proc")
_FOLDER_MARK = "UTUPLE_CLUSTER_FOLDER"
_POLL_S = 0.02
_PS_LIMIT_S = 10.0
_START_FIELD = 22
"""Of /proc/PID/stat, counted from 1: clock ticks from boot to the start of the process."""

STOP_LIMIT_S = 20.0
"""An ordered stop finishes the batch in flight; what takes longer hangs."""

KILL_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    started: str
    """Opaque; the same pid with another start is another process."""

    @property
    def is_alive(self) -> bool:
        return start_of(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def start_of(pid: int) -> str | None:
    """When the process with this pid started; None if there is none, or only its zombie."""
    if not (_PROC / "self" / "stat").exists():
        return _start_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # from field 3 on: a name may hold spaces
    if len(fields) < _START_FIELD - 2 or fields[0] in "ZX":
        return None
    return fields[_START_FIELD - 3]


def _start_by_ps(pid: int) -> str | None:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PS_LIMIT_S)
    state, _, started = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


def this_process() -> Process:
    return Process(os.getpid(), start_of(os.getpid()) or "")


def spawn(
    command: list[str], log: Path, folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """A program in a session of its own: neither Ctrl-C nor our death reaches it."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, **environment, _FOLDER_MARK: str(folder)},
            start_new_session=True,
        )


def strays(folder: Path) -> list[Process]:
    """Living programs that were started for this folder, whether or not they were written down."""
    if not (_PROC / "self" / "environ").exists():
        return []
    mark = f"{_FOLDER_MARK}={folder}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                started = start_of(int(entry.name))
                if started is not None:
                    found.append(Process(int(entry.name), started))
    return found


def end(processes: Iterable[Process], limit_s: float = STOP_LIMIT_S) -> list[Process]:
    """Asked to stop, then made to. Returns those that are still there, which should be none."""
    asked = list(processes)
    for number, wait_s in ((signal.SIGTERM, limit_s), (signal.SIGKILL, KILL_LIMIT_S)):
        for process in asked:
            process.signal(number)
        wait_until(lambda: not any(process.is_alive for process in asked), wait_s, _POLL_S)
    return [process for process in asked if process.is_alive]
