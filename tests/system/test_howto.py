"""The how-to pages work as they are printed, each in an empty folder, on one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cluster import Cluster, free_port, running_cluster
from tests.system.http_door import HttpDoor, door_before
from tests.system.snippets import Place, place, run_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "1", "--managers", "1", "--no-monitor") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDoor]:
    with door_before(cluster, tmp_path_factory.mktemp("door")) as door:
        yield door


@pytest.fixture
def here(cluster: Cluster, door: HttpDoor, tmp_path: Path) -> Place:
    return place(tmp_path, cluster.port, door.port)


@pytest.mark.parametrize(
    "page",
    ["place-and-time", "commands-to-an-area", "resume-after-a-crash", "gateways"],
)
def test_a_page_runs_as_printed(here: Place, page: str) -> None:
    assert run_page(f"howto/{page}.md", here)


def test_the_page_on_testing_runs_as_printed(tmp_path: Path) -> None:
    assert run_page("howto/test-your-program.md", place(tmp_path, 0, 0))


def test_the_page_on_security_runs_as_printed(tmp_path: Path) -> None:
    here = place(tmp_path, free_port(), 0)
    try:
        assert "billing" in run_page("howto/secure-it.md", here)
    finally:
        here.shell("utuple down --data cluster")


@pytest.mark.long
def test_the_page_on_planning_runs_as_printed(tmp_path: Path) -> None:
    assert "report.html" in run_page("howto/plan-capacity.md", place(tmp_path, 0, 0))
    assert (tmp_path / "my_plan" / "report.html").exists()


def test_every_page_is_run_here() -> None:
    from tests.system.snippets import DOCS

    own = Path(__file__).read_text("utf-8")
    pages = {path.stem for path in (DOCS / "howto").glob("*.md")} - {"index"}
    assert not {page for page in pages if page not in own}
