"""`utuple plan dropping`, as it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from utuple.cli.plan.command import plan

QUEUE = "--arrival 2 --service 8 --on 20 --off 20"


def run(line: str) -> tuple[int, str]:
    result = CliRunner().invoke(plan, ["dropping", *line.split()])
    return result.exit_code, result.output


def test_the_papers_example_as_json() -> None:
    code, output = run(f"{QUEUE} --input-service 16 --threshold 7 --json")
    told = json.loads(output)
    assert code == 0
    assert told["zeta"] == pytest.approx(0.34980, abs=1e-5)
    assert told["mean_response_s"] == pytest.approx(7.0)
    assert told["success_rate"] == pytest.approx(0.675, abs=5e-4)
    assert told["stable"] is True


def test_a_zeta_is_evaluated() -> None:
    told = json.loads(run(f"{QUEUE} --zeta 0.5 --json")[1])
    assert told["mean_response_s"] == pytest.approx(9.7333, abs=5e-5)


def test_what_is_not_stable_is_said_and_has_no_mean() -> None:
    told = json.loads(run("--arrival 5 --service 8 --on 20 --off 20 --zeta 1 --json")[1])
    assert (told["stable"], told["mean_response_s"]) == (False, None)
    assert "Not stable" in run("--arrival 5 --service 8 --on 20 --off 20 --zeta 1")[1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--arrival 7.71 --service 8 --on 20 --off 20 --input-service 16 --threshold 7", "7.017 s"),
        ("--arrival 8 --service 8 --on 20 --off 20 --threshold 7", "no threshold can be met"),
        (QUEUE, "either a threshold to meet or --zeta"),
        (f"{QUEUE} --threshold 7 --zeta 0.5", "either a threshold to meet or --zeta"),
        (f"{QUEUE} --zeta 0.5 --share 0.9", "goes with --threshold"),
        (f"{QUEUE} --threshold nan", "above 0 and finite"),
        ("--arrival 0 --service 8 --on 20 --off 20 --zeta 1", "arrival_per_s"),
    ],
)
def test_what_cannot_be_is_refused_with_the_rule(line: str, said: str) -> None:
    code, output = run(line)
    assert code == 1
    assert said in output


def test_the_report_has_figures_4_6_and_7(tmp_path: Path) -> None:
    code, _ = run(f"{QUEUE} --input-service 16 --threshold 7 --events 1000 --report {tmp_path}")
    assert code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for figure in ("Figure 4", "Figure 6", "Figure 7"):
        assert figure in page
    misprints = ("eq. 27 needs p′", "column of ones", "only for a stable queue", "is always so")
    remarks = ("falls suddenly beyond two", "cannot be reproduced", "A mean hides its tail")
    assert [said for said in (*misprints, *remarks) if said not in page] == []
