"""The file of an audit's chain: lines are appended whole or not at all, also where the disk is full, and what a crash left of one is cut off."""

from __future__ import annotations

import os
from pathlib import Path

from utuple.security.credentials import PRIVATE


def append(path: Path, lines: bytes) -> None:
    """Durable when it returns. OSError: nothing of them was written."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE), "wb", buffering=0
    ) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(lines):
                written += file.write(lines[written:])
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def whole_lines(path: Path) -> list[bytes]:
    """Without the rest of a line that was being written when the machine stopped."""
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def cut_rest(path: Path) -> int:
    """What is no whole line at the end is cut off; how many bytes that were."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return len(content) - whole
