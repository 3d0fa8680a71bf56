"""What the users of the space did and saw, as JSON lines: written as it happens, read back for the checker.

One file a life of a program, NAME.LIFE.jsonl. A line is written before the act it announces and after the act
it reports, straight to the kernel, so that a killed program leaves what it knew. Times are microseconds of
this machine's clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from utuple.runtime.clock import now_us

SUFFIX = ".jsonl"

EMIT, EMITTED = "emit", "emitted"
ASK, OPEN, GOT, CLOSE = "ask", "open", "got", "close"
SERVE, SERVING, TOOK, SERVED = "serve", "serving", "took", "served"
COMMAND, COMMANDED = "command", "commanded"
READ = "read"
LINE = "line"


class Recorder:
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what: str, said: Mapping[str, Any]) -> int:
        """The time it was written down."""
        at_us = now_us()
        os.write(self._fd, orjson.dumps({"what": what, "at_us": at_us, **said}) + b"\n")
        return at_us

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a program, by its file."""

    path: Path

    @property
    def program(self) -> str:
        return self.path.name.removesuffix(SUFFIX).rpartition(".")[0]

    @property
    def number(self) -> int:
        return int(self.path.name.removesuffix(SUFFIX).rpartition(".")[2])

    def lines(self) -> Iterator[dict[str, Any]]:
        yield from parsed(self.path.read_bytes())


def file_of(folder: Path, program: str, life: int) -> Path:
    return folder / f"{program}.{life}{SUFFIX}"


def lives_in(folder: Path) -> list[Life]:
    """Of each program the earlier first."""
    found = [Life(path) for path in folder.glob(f"*{SUFFIX}")]
    return sorted(found, key=lambda life: (life.program, life.number))


def parsed(text: bytes) -> Iterator[dict[str, Any]]:
    """Whole lines; the last one of a killed program may be cut off."""
    for line in text.split(b"\n")[:-1]:
        yield orjson.loads(line)


class Follower:
    """Counts while it grows: for the person who waits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.registered = 0
        self.delivered = 0

    def look(self) -> None:
        for life in lives_in(self._folder):
            with life.path.open("rb") as file:
                file.seek(self._read.get(life.path, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[life.path] = self._read.get(life.path, 0) + len(whole)
            self._count(parsed(whole))

    def _count(self, lines: Iterable[dict[str, Any]]) -> None:
        for said in lines:
            match said["what"]:
                case "emitted" if said["outcome"] == "OK":
                    self.registered += len(said["ns"])
                case "commanded" if said["outcome"] == "OK":
                    self.registered += 1
                case "got" | "took":
                    self.delivered += len(said["ns"])
