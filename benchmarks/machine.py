"""The machine the figures are of, and how busy others kept it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

_CPUINFO = Path("/proc/cpuinfo")


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
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
