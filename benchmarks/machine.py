"""The machine and the commit the figures are of, and how busy others kept it."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_CHECKOUT = Path(__file__).parent
_GIT_LIMIT_S = 10.0
_PARENT, _USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM = 3, 13, 14, 15, 16
"""Fields of /proc/PID/stat, counted from 0; times in clock ticks, those of ended children apart."""


def machine() -> dict[str, Any]:
    """As JSON takes it. The load is that of the last minute: above 0 before a run, others are at work."""
    return {
        "cores": os.cpu_count(),
        "cpu": _model(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "load_1m": round(os.getloadavg()[0], 2),
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _commit() -> str:
    """What the checkout is at, marked if files were changed since; nothing where there is no git."""
    command = ["git", "-C", str(_CHECKOUT), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _model() -> str:
    try:
        lines = (_PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def process_cpu_s(pid: int) -> float:
    """Processor time a process has used; 0 where nobody can tell."""
    return _ticks_s(_stat(pid), (_USER, _SYSTEM))


def family_cpu_s(pid: int) -> float:
    """Processor time of a process and of its children, those that have ended too; 0 where nobody can tell."""
    running = (int(path.name) for path in _PROC.glob("[0-9]*"))
    children = [stat for stat in map(_stat, running) if stat[_PARENT : _PARENT + 1] == [str(pid)]]
    own = _ticks_s(_stat(pid), (_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM))
    return own + sum(_ticks_s(stat, (_USER, _SYSTEM)) for stat in children)


def _stat(pid: int) -> list[str]:
    """Its fields; none if it has gone."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
    except OSError:
        return []
    name, _, rest = stat.rpartition(")")  # a name may hold spaces
    return [*name.split(maxsplit=1), *rest.split()]


def _ticks_s(stat: list[str], fields: tuple[int, ...]) -> float:
    return sum(int(stat[field]) for field in fields if stat) / os.sysconf("SC_CLK_TCK")


def process_memory_bytes(pid: int) -> int:
    """What a process has in memory; 0 where nobody can tell."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
