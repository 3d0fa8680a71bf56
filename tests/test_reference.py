"""docs/reference/ says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.reference import pages

PLACE = Path(__file__).parents[1] / "docs" / "reference"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


def test_the_pages_are_those_that_the_code_makes(made: dict[str, str]) -> None:
    there = {path.name: path.read_text("utf-8") for path in PLACE.glob("*.md")}
    stale = [name for name in there.keys() | made.keys() if there.get(name) != made.get(name)]
    assert not stale, (
        "the code says something else now: run `make reference` and commit what it writes"
    )


def test_everything_of_the_public_face_is_on_the_page_of_the_sdk(made: dict[str, str]) -> None:
    import utuple

    assert not [name for name in utuple.__all__ if name not in made["sdk.md"]]


def test_every_route_of_the_door_is_on_the_page_of_http(made: dict[str, str]) -> None:
    from utuple.doors.http.app import ROUTES

    described = [(method, path) for method, path, _ in ROUTES if path != "/openapi.json"]
    assert not [one for one in described if f"## {' '.join(one)}\n" not in made["http.md"]]


def test_every_knob_of_the_planner_is_on_the_page_with_its_reason(made: dict[str, str]) -> None:
    from load_monitor.planning.policy import Policy
    from utuple.runtime.options import reasons_of

    section = made["knobs.md"].split("## When load moves")[1].split("\n## ")[0]
    for knob, reason in reasons_of(Policy).items():
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{knob}` |")]
        assert reason.split("|")[0] in row, knob
