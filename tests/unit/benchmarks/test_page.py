"""The results page: what was measured is on it, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.figures import Summary, Target
from benchmarks.page import number, page
from benchmarks.plots import draw
from benchmarks.results import read_results, write_result
from utuple.errors import InvalidInput

TARGETS = (
    Target("ours_per_s", at_least=100_000),
    Target("p50_ms", at_most=50),
    Target("ratio_nats", at_least=5, rival="nats"),
    Target("lost", at_most=0, always=True),
)


def result(**said: Any) -> dict[str, Any]:
    runs = [
        {"ours_per_s": 120_000.0, "p50_ms": 62.5, "lost": 0},
        {"ours_per_s": 140_000.0, "p50_ms": 61.0, "lost": 0},
    ]
    notes = {"ours": "durable", "nats": "not installed: skipped"}
    return {**Summary("ingest", runs, TARGETS, {"cores": 2}, notes).to_json(), **said}


def test_the_page_says_medians_spread_targets_what_was_missed_and_what_was_skipped() -> None:
    text = page([result()], {"ingest": "By hand.\n"}, {"ingest": "What it does."}, {})
    assert "| ingest | ours_per_s | 130,000 | >= 100000 | yes |" in text
    assert "| ingest | p50_ms | 61.8 | <= 50 | **no** |" in text
    assert "| ingest | ratio_nats |  | >= 5 | skipped: nats is not installed |" in text
    assert "| ours_per_s | 130,000 | 120,000 | 140,000 | >= 100000 |" in text
    assert "By hand." in text and "What it does." in text and "2 runs." in text
    assert "- ours: durable\n- nats: not installed: skipped\n" in text
    assert "cores 2" in text and "--quick" not in text


def test_each_result_says_of_which_commit_and_machine_it_is() -> None:
    here = {"cores": 2, "load_1m": 0.5, "commit": "abc1234", "date": "2026-11-18"}
    there = {**here, "cores": 8, "commit": "def5678+", "load_1m": 3.25}
    text = page([result(machine=here), result(machine=there, benchmark="read")], {}, {}, {})
    assert "Machine: cores 2.\n" in text
    assert "2 runs of abc1234 on 2026-11-18, load before 0.5.\n" in text
    assert (
        "2 runs of def5678+ on 2026-11-18, load before 3.25, on another machine (cores 8).\n"
        in text
    )


def test_quick_results_are_called_so() -> None:
    assert "not how fast it is" in page([result(quick=True)], {}, {}, {})


def test_without_results_the_page_says_how_to_get_them() -> None:
    assert "make bench" in page([], {}, {}, {})


@pytest.mark.parametrize(
    "value, shown",
    [
        (0, "0"),
        (0.0, "0"),
        (1.2345, "1.23"),
        (0.00123, "0.00123"),
        (987.6, "988"),
        (123_456.7, "123,457"),
    ],
)
def test_numbers_are_shown_with_three_figures_that_count(value: float, shown: str) -> None:
    assert number(value) == shown


def test_plots_are_whole_pictures_and_the_same_every_time(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        found = draw([result()], tmp_path / folder)
        assert found == {"": [f"{folder}/targets.svg"], "ingest": [f"{folder}/ingest.svg"]}
    for name in ("targets.svg", "ingest.svg"):
        one, other = ((tmp_path / folder / name).read_bytes() for folder in ("one", "other"))
        assert one == other
        assert ElementTree.fromstring(one).tag.endswith("svg")
        assert b'href="http' not in one


def test_results_come_back_from_their_files_in_the_order_asked(tmp_path: Path) -> None:
    write_result(tmp_path, result())
    write_result(tmp_path, result(benchmark="single"))
    found = read_results(tmp_path, ["single", "growth", "ingest"])
    assert [one["benchmark"] for one in found] == ["single", "ingest"]
    assert found[1] == result()


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ingest.json").write_text('{"benchmark": "ingest"}')
    with pytest.raises(InvalidInput, match="lacks machine, met, runs"):
        read_results(tmp_path, ["ingest"])
    (tmp_path / "ingest.json").write_text("{")
    with pytest.raises(InvalidInput, match="is not JSON"):
        read_results(tmp_path, ["ingest"])
    with pytest.raises(InvalidInput, match="make bench"):
        read_results(tmp_path / "nowhere", ["ingest"])
