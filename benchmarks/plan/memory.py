"""The most memory that what we started used at once, looked at while it runs. From /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_EVERY_S = 0.02
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _RESIDENT = 1, 21
"""Fields of /proc/PID/stat after the name."""


class PeakMemory:
    """Of all descendants of this process, between entering and leaving; the most of several times."""

    def __init__(self) -> None:
        self.most_bytes = 1
        self._ended = threading.Event()
        self._looking: threading.Thread | None = None

    def __enter__(self) -> PeakMemory:
        self._ended.clear()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._looking is not None
        self._ended.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.most_bytes = max(self.most_bytes, resident_bytes(os.getpid()))


def resident_bytes(ancestor: int) -> int:
    """Of its descendants together, without itself."""
    parents, sizes = {}, {}
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended
        pid = int(path.parent.name)
        parents[pid], sizes[pid] = int(fields[_PARENT]), int(fields[_RESIDENT]) * _PAGE
    below = {ancestor}
    while found := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= found
    return sum(sizes.get(pid, 0) for pid in below - {ancestor})
