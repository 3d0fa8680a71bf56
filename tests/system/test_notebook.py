"""The space in a notebook: a real IPython kernel, whose thread runs an event loop of its own; cell by cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from jupyter_client.manager import start_new_kernel

from tests.system.cluster import Cluster, running_cluster

pytestmark = pytest.mark.slow
LIMIT_S = 90
NOTEBOOK = Path(__file__).parents[2] / "examples" / "matches_to_pandas.ipynb"

Run = Callable[[str], str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
def run(cluster: Cluster) -> Iterator[Run]:
    """Run a cell; what it printed. An error in it is an error here."""
    manager, client = start_new_kernel(startup_timeout=LIMIT_S, kernel_name="python3")

    def run(cell: str) -> str:
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            said.append(content.get("text", "") + "".join(content.get("traceback", ())))

        reply = client.execute_interactive(cell, output_hook=hear, timeout=LIMIT_S)
        assert reply["content"]["status"] == "ok", "".join(said)
        return "".join(said)

    try:
        run(
            "import utuple\n"
            f"at, family = {cluster.at!r}, dict(subject='truck-{uuid4().hex[:12]}', type='load')"
        )
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_blocking_space_works_in_a_cell_and_across_cells(run: Run) -> None:
    """Promise: leaving `with` runs no loop on the caller's thread, which has one."""
    said = run(
        "with utuple.blocking.connect(at) as space:\n"
        "    space.emit(**family, address='a', data={'n': 1})\n"
        "    print([event.data for event in space.read(**family)])"
    )
    assert said == "[{'n': 1}]\n"
    run("space = utuple.blocking.connect(at)")
    run("events = space.watch(**family, reader='cells').__enter__()")
    run("space.emit_many({**family, 'address': 'a', 'data': e.data} for e in space.read(**family))")
    assert run("print([next(events).data for _ in range(2)])") == "[{'n': 1}, {'n': 1}]\n"
    assert run("events.close(); space.close(); space.close()") == ""


def test_the_asynchronous_space_works_with_top_level_await(run: Run) -> None:
    said = run(
        "async with utuple.connect(at) as space:\n"
        "    await space.emit(**family, address='a', data={'n': 1})\n"
        "    print([event.data async for event in space.read(**family)])"
    )
    assert said == "[{'n': 1}]\n"
    run("space = await utuple.connect(at).open()")
    run("events = await space.watch(**family).open()")
    run("await space.emit(**family, address='a', data={'n': 2})")
    assert run("print([(await anext(events)).data for _ in range(2)])") == "[{'n': 1}, {'n': 2}]\n"
    assert run("await space.close()") == ""


def test_the_notebook_of_the_examples_runs_cell_by_cell(run: Run, cluster: Cluster) -> None:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    said = ""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            said += run("".join(cell["source"]).replace("127.0.0.1:7400", cluster.at))
    assert "sensor-0" in said and "sensor-2" in said, said
    assert "sensor-3" not in said, "it is not in the circle"
    assert "(12, 3)" in said or "(13, 3)" in said, said
