"""`utuple plan compare`, on folders as plans write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ops_sim.report.folder import write
from tests.reports import a_sweep_report
from utuple.cli.plan.command import plan

RUN = CliRunner()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name, risk in (("safe", 0.05), ("bold", 0.5)):
        write(a_sweep_report(risk=risk), tmp_path / name, "today", "utuple plan sweep")
    return tmp_path / "safe", tmp_path / "bold"


def test_two_folders_are_shown_side_by_side_as_text_json_and_a_page(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    a, b = map(str, folders)
    shown = RUN.invoke(plan, ["compare", a, b])
    assert shown.exit_code == 0
    assert "safe: Buy 3 servers by 2027-07-03" in shown.stdout
    assert "+38.0 points" in shown.stdout
    page = tmp_path / "compared"
    told = RUN.invoke(plan, ["compare", a, b, "--json", "--report", str(page)])
    figures = {row["name"]: row for row in json.loads(told.stdout)["figures"]}
    assert (figures["server_days"]["a"], figures["server_days"]["b"]) == (25_000, 20_000)
    assert "safe and bold compared" in (page / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_a_report_is_named_with_what_to_do(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    told = RUN.invoke(plan, ["compare", str(folders[0]), str(tmp_path / "nowhere")])
    assert told.exit_code == 1
    assert "holds no report.json; `utuple plan ... --report DIR` writes one" in told.stderr
