"""The four ways through the house are as long as docs/walks.md says (`make walk > docs/walks.md` after a change that is meant)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.walks.trace import files
from tests.walks.walking import walks

PAGE = Path(__file__).parents[2] / "docs" / "walks.md"
CHANCE = 2
"""Files that run beside a walk in one run and not in another."""


def recorded() -> dict[str, set[str]]:
    parts = re.split(r"^## (.+): \d+ files$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    listed = re.compile(r"^\d+\. `(.+?)`", re.MULTILINE)
    return {
        title: set(listed.findall(text))
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.mark.slow
async def test_no_way_is_longer_than_its_page_says() -> None:
    pages = recorded()
    found = {title: set(files(walk)) for title, walk in (await walks()).items()}
    assert found.keys() == pages.keys()
    for title, walked in found.items():
        assert len(walked) > 10, f"{title}: the trace saw next to nothing"
        more = walked - pages[title]
        assert len(walked) <= len(pages[title]) + CHANCE, f"{title} is longer by {sorted(more)}"
        unknown = {file for file in pages[title] if not (PAGE.parents[1] / file).exists()}
        assert not unknown, f"docs/walks.md names files that are gone: {sorted(unknown)}"
