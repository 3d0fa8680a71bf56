"""python -m tests.site: docs/reference/ again, from the code."""

from __future__ import annotations

from pathlib import Path

from tests.site.reference import pages

if __name__ == "__main__":
    place = Path(__file__).parents[2] / "docs" / "reference"
    for name, text in pages().items():
        (place / name).write_text(text, encoding="utf-8")
