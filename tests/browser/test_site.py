"""The site of docs/, built and read from a folder in a real browser: no page complains, asks anybody for anything, or is cut off."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Page, found, opened
from tests.browser.console import complaints, violations
from tests.waiting import until

CHROMIUM = found()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: `make browser` installs it"),
    pytest.mark.slow,
]
ROOT = Path(__file__).parents[2]
ONE_OF_EACH = ("index", "tutorial", "howto/gateways", "reference/metrics", "decisions/index")
"""Pages that look different from one another."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does: a link that leads nowhere, or a page that is not in the navigation, is an error."""
    place = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-P",
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "-d",
        str(place),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_no_page_complains_asks_elsewhere_or_is_cut_off_on_a_phone(page: Page, site: Path) -> None:
    page.size(360, 740)
    every = pages(site)
    assert len(every) > 80
    for path in every:
        page.load(path.as_uri())
        asked = [one["request"]["url"] for one in page.said("Network.requestWillBeSent")]
        assert [
            url for url in asked if not url.startswith((site.as_uri(), "data:", "about:"))
        ] == []
        assert complaints(page) == [], path
        assert "```" not in page.value("document.body.innerText"), f"{path}: a snippet is text"
        assert page.value("document.documentElement.scrollWidth") <= 360, path


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(page: Page, site: Path, name: str, scheme: str) -> None:
    page.size(1280, 900)
    page.scheme(scheme)
    page.load((site / f"{name}.html").as_uri())
    page.value("localStorage.clear()")  # the theme remembers what it showed before
    page.load((site / f"{name}.html").as_uri())
    shown = page.value("document.body.dataset.mdColorScheme")
    assert shown == {"light": "default", "dark": "slate"}[scheme]
    assert violations(page) == []


@pytest.mark.long
def test_everybody_can_read_every_page(page: Page, site: Path) -> None:
    page.size(1280, 900)
    for path in pages(site):
        page.load(path.as_uri())
        assert violations(page) == [], path


def test_it_can_be_searched_without_a_server(page: Page, site: Path) -> None:
    page.size(1280, 900)
    page.load((site / "index.html").as_uri())
    page.value("document.querySelector('.md-search__input').focus()")
    page.ask("Input.insertText", text="emit_many")
    found = "[...document.querySelectorAll('.md-search-result__link')].map((a) => a.href).join()"
    until(lambda: "howto/gateways.html" in page.value(found), "the page on gateways is found")
    assert complaints(page) == []
