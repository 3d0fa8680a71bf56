"""python -m tests.site.recording: docs/demo.cast and docs/demo.svg from a real run of `utuple demo`. `make recording`.

The cast is asciinema's format (`asciinema play docs/demo.cast`); the drawing plays by itself wherever pictures are shown, asks
nobody for anything, and shows its end at once to whoever wants no motion.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
COMMAND = "utuple demo"
COLUMNS, ROWS = 112, 30
_LINE, _LETTER, _EDGE = 17, 7.8, 16
_BEGIN_S, _LAST_S = 1.0, 4.0

Line = tuple[float, str]
"""When it came, in seconds, and what it says."""


def recorded(command: Sequence[str]) -> list[Line]:
    """A real run, line by line; it must end well."""
    began_s, found = time.monotonic(), list[Line]()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found.append((time.monotonic() - began_s, line.rstrip()))
            sys.stdout.write(line)
    assert process.returncode == 0, f"{' '.join(command)} ended with {process.returncode}"
    return found


def cast_of(lines: Iterable[Line]) -> str:
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": COMMAND}
    events = [
        [0.0, "o", f"$ {COMMAND}\r\n"],
        *([round(at, 3), "o", f"{said}\r\n"] for at, said in lines),
    ]
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in [head, *events]) + "\n"


def lines_of(cast: str) -> list[Line]:
    """Without the command itself."""
    _, _, *events = map(json.loads, cast.splitlines())
    return [(at, text.removesuffix("\r\n")) for at, _, text in events]


def drawing_of(lines: Sequence[Line]) -> str:
    wrapped = [(0.0, f"$ {COMMAND}")]
    for at, said in lines:
        pieces = textwrap.wrap(said, COLUMNS, drop_whitespace=False, subsequent_indent="         ")
        wrapped += [(at + _BEGIN_S, piece) for piece in pieces or [""]]
    whole_s = wrapped[-1][0] + _LAST_S
    width, height = round(COLUMNS * _LETTER + 2 * _EDGE), ROWS * _LINE + 2 * _EDGE
    rows = "\n".join(
        f'<text y="{number * _LINE}" style="animation-delay:{at:.2f}s">{escape(said)}</text>'
        for number, (at, said) in enumerate(wrapped)
        if said.strip()
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t">
<title id="t">utuple demo, recorded: {escape(_ending(lines))}</title>
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #e6e8f0; white-space: pre; opacity: 0; animation: come 0.01s forwards }}
#all {{ animation: scroll {whole_s:.2f}s steps(1) forwards }}
@keyframes come {{ to {{ opacity: 1 }} }}
@keyframes scroll {{ {_scrolling(wrapped, whole_s)} }}
@media (prefers-reduced-motion: reduce) {{ text {{ animation: none; opacity: 1 }} #all {{ animation-duration: 0.01s }} }}
</style>
<rect width="{width}" height="{height}" rx="10" fill="#161a26"/>
<svg x="{_EDGE}" y="{_EDGE}" width="{width - 2 * _EDGE}" height="{ROWS * _LINE}"><g id="all"><g transform="translate(0 13)" xml:space="preserve">
{rows}
</g></g></svg>
</svg>
"""


def _scrolling(wrapped: Sequence[Line], whole_s: float) -> str:
    """Lines that do not fit push the first ones out."""
    frames = ["0% { transform: translateY(0) }"]
    for number, (at, _) in enumerate(wrapped):
        if number >= ROWS:
            up = (number - ROWS + 1) * _LINE
            frames.append(f"{100 * at / whole_s:.3f}% {{ transform: translateY(-{up}px) }}")
    last = max(0, len(wrapped) - ROWS) * _LINE
    return " ".join([*frames, f"100% {{ transform: translateY(-{last}px) }}"])


def _ending(lines: Sequence[Line]) -> str:
    return next((said.strip() for _, said in reversed(lines) if said.strip()), "")


def main() -> None:
    cast = cast_of(recorded([sys.executable, "-P", "-u", "-m", "utuple.cli.main", "demo"]))
    (DOCS / "demo.cast").write_text(cast, encoding="utf-8")
    (DOCS / "demo.svg").write_text(drawing_of(lines_of(cast)), encoding="utf-8")


if __name__ == "__main__":
    main()
