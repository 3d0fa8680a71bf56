"""The snippets of a page, run as printed: programs are saved, commands run in order in one folder, and what the page says they print
is looked for in what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 600.0
DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(sh|python|text)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Where a page's commands run. The usual ports may be taken here: everything else is as printed."""

    folder: Path
    port: int
    http: int
    """0: the page uses no door."""
    environment: Mapping[str, str]

    def printed(self, page: str) -> str:
        text = (DOCS / page).read_text("utf-8").replace(":7400", f":{self.port}")
        up = f"utuple up --port {self.port}" + (f" --http {self.http}" if self.http else "")
        return text.replace(":7480", f":{self.http}").replace("utuple up", up)

    def shell(self, text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euc", text],
            cwd=self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )


def place(folder: Path, port: int, http: int, **more: str) -> Place:
    """With the commands of this environment, unless PATH says otherwise."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", **more}
    return Place(folder, port, http, {**environment, "UTUPLE_AT": f"127.0.0.1:{port}"})


def run_page(page: str, place: Place) -> str:
    """What it printed altogether. A `text` block after a command is what that prints."""
    said, last = "", ""
    for kind, file, text in blocks(place.printed(page)):
        if file:
            (place.folder / file).write_text(text, "utf-8")
        elif kind == "sh":
            ran = place.shell(text)
            last = ran.stdout
            assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
            said += last
        elif kind == "text" and last:
            for line in text.splitlines():
                for piece in line.split("…"):
                    assert piece in last, f"{page}: {piece!r} is not printed:\n{last}"
        if kind != "sh":
            last = ""
    return said


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    for found in _BLOCK.finditer(text):
        yield found[1], found[2] or "", found[3]
