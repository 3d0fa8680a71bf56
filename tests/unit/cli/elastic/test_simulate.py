"""`utuple elastic simulate`: a file or the paper's runs, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from utuple.cli.elastic.command import elastic

RUN = CliRunner()
FILE = """
[servers]
memory_mb = 280
cpu = 0.1
[simulation]
minutes = 30
load = [[0, 0.2], [5, 3.5], [15, 0.2]]
[[simulation.price.type]]
name = "{name}"
cpu = 1
memory_mb = {memory_mb}
hour = {hour}
"""


def test_the_papers_runs_as_json_have_the_papers_sizes() -> None:
    said = RUN.invoke(elastic, ["simulate", "paper", "--json"])
    assert said.exit_code == 0, said.output
    runs = json.loads(said.output)
    costs = {bill["machines"]: bill["memory_mb"] for bill in runs[2]["costs"]}
    assert costs == {"just enough": 4264, "1 GB": 6144}
    made = [machine["memory_mb"] for machine in runs[2]["machines"] if machine["waiting"]]
    assert made == [1024, 1340, 1900]


def test_a_file_is_told_with_reasons_and_with_the_price_of_each_type(tmp_path: Path) -> None:
    costs = []
    for hour in (0.034, 0.34):
        path = tmp_path / "elastic.toml"
        path.write_text(FILE.format(name="1 GB", memory_mb=1024, hour=hour))
        said = RUN.invoke(elastic, ["simulate", str(path)])
        assert said.exit_code == 0, said.output
        assert "ceil(1 x " in said.output
        found = json.loads(RUN.invoke(elastic, ["simulate", str(path), "--json"]).output)["costs"]
        costs.append({bill["machines"]: bill["cost"] for bill in found})
    assert costs[1]["1 GB"] == pytest.approx(10 * costs[0]["1 GB"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE.format(name="tiny", memory_mb=64, hour=1), ("tiny", "no server fits")),
        ("[simulation]\nlod = [[0, 1]]", ("lod", "load")),
        ("[servers]\ncpu = 0", ("servers.cpu",)),
        ("[servers]\ncpu = nan", ("servers.cpu",)),
        ("[servers]\nmin = 3\nmax = 2", ("servers.min", "servers.max, 2")),
        ("[servers]\ncpu = 5", ("servers.cpu", "whole area")),
        ("[servers]\nmemory_mb = 9000", ("servers.memory_mb", "whole area")),
        ("[server]\nmin = 3", ("server", "servers")),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_that_names_it(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "elastic.toml"
    path.write_text(text)
    said = RUN.invoke(elastic, ["simulate", str(path)])
    assert said.exit_code == 1, said.output
    assert len(said.output.strip().splitlines()) == 1, said.output
    for word in words:
        assert word in said.output
