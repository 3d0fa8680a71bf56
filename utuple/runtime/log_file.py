"""A program's log in a file of limited length, which the program itself sets aside while it runs.

Its standard output and error are this file: so a traceback of the interpreter's is in it as well, and
whoever started the program may have opened the same file for it. To begin a new one, the old one gets another name and both
descriptors another file: nothing is copied, nothing is lost. On a full disk, where no new file can be made, the old one goes on.

    NAME.log      what is being written
    NAME.log.1    what was before, then .2, .3 …
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

LIMIT_BYTES = 16 << 20
"""Beyond this a new file is begun: some 100,000 lines, which an editor still opens."""

KEPT = 4
"""Older files kept: with the one being written at most 80 MiB a program."""

_OUTPUTS = (1, 2)


class LogFile:
    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._kept = kept
        self._unwritten = 0

    def take_output(self) -> None:
        """From now on what this process prints goes there. Raises OSError."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._open()

    def write(self, line: str) -> None:
        """What a full disk refuses is counted, and the count is written when there is room."""
        if self._unwritten:
            line = f"{self._unwritten} lines before this could not be written\n{line}"
        try:
            os.write(_OUTPUTS[-1], f"{line}\n".encode(errors="backslashreplace"))
        except OSError:
            self._unwritten += 1
            return
        self._unwritten = 0
        self._roll_if_long()

    def _roll_if_long(self) -> None:
        with suppress(OSError):
            if os.fstat(_OUTPUTS[-1]).st_size >= self._limit_bytes:
                self.set_aside()
                self._open()

    def set_aside(self) -> None:
        """The file gets the first of the older names; the oldest goes. Raises OSError."""
        for number in range(self._kept, 0, -1):
            with suppress(FileNotFoundError):
                self._older(number - 1).replace(self._older(number))

    def set_aside_if_long(self) -> None:
        """Before its program starts: one that died before it could do this itself may have left it long."""
        with suppress(FileNotFoundError):
            if self._path.stat().st_size >= self._limit_bytes:
                self.set_aside()

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _open(self) -> None:
        opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for output in _OUTPUTS:
            os.dup2(opened, output)
        os.close(opened)
