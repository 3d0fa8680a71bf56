"""`utuple plan partition`, as it is called."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from utuple.cli.plan.command import plan


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(plan, ["partition", *words])
    return result.exit_code, result.output


def test_the_papers_experiments_as_json() -> None:
    code, output = run("--json")
    told = json.loads(output)
    gains = {(gain["name"], gain["members"]): gain for gain in told["gains"]}
    assert code == 0
    assert gains["over one dimension", 5]["gain"] == pytest.approx(5.1, rel=0.1)
    assert gains["over one dimension", 5]["paper"] == 3.5
    assert told["load_deviation"] <= 0.14


def test_people_see_the_papers_figures_beside() -> None:
    code, output = run("--efs", "2000")
    assert code == 0
    assert "the paper prints" in output and "67" in output


def test_a_width_beyond_the_dimension_is_named() -> None:
    code, output = run("--width", "1001")
    assert code != 0
    assert "width" in output and "1001" in output
