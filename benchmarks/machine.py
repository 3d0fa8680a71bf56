"""The machine the figures are of, and how busy others kept it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_USER, _SYSTEM = 13, 14
"""Fields of /proc/PID/stat, counted from 0, in clock ticks."""


def machine() -> dict[str, Any]:
    """As JSON takes it. The load is that of the last minute: above 0 before a run, others are at work."""
    return {
        "cores": os.cpu_count(),
        "cpu": _model(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "load_1m": round(os.getloadavg()[0], 2),
    }


def _model() -> str:
    try:
        lines = (_PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def process_cpu_s(pid: int) -> float:
    """Processor time a process has used; 0 where nobody can tell."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
    except OSError:
        return 0.0
    name, _, rest = stat.rpartition(")")  # a name may hold spaces
    fields = [*name.split(maxsplit=1), *rest.split()]
    ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    return ticks / os.sysconf("SC_CLK_TCK")


def process_memory_bytes(pid: int) -> int:
    """What a process has in memory; 0 where nobody can tell."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
