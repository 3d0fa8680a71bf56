"""What a planner may get wrong is said in one line that names it, before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ops_sim.cost.model import PAPER
from utuple.cli.plan.command import plan

RUN = CliRunner()
SCENARIO = """
[plan]
name = "tried"
[[demand]]
name = "some"
{demand}
[[policy]]
name = "paper"
{policy}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "bad.csv").write_text("address,time,lat,lon,subject\na,2026-01-01,1,1,bus\n")
    model = {**PAPER.to_json(), "memory_bytes": 0}
    (tmp_path / "cost.json").write_text(json.dumps({"model": model}))
    return tmp_path


def assert_refused(arguments: str, *words: str) -> None:
    said = RUN.invoke(plan, arguments.split())
    assert said.exit_code == 1, said.output
    assert len(said.output.strip().splitlines()) == 1, said.output
    for word in words:
        assert word in said.output


@pytest.mark.parametrize(
    ("demand", "policy", "words"),
    [
        ("devices_per_day = -5", "", ("demand.devices_per_day", "-5")),
        ("lead_time_days = 90", "", ("lead_time_days", "90", "horizon")),
        ("devices_per_dya = 5", "", ("devices_per_dya", "devices_per_day")),
        ("", "horizon = 60", ("horizon", "horizon_days")),
        ("growth = 'linaer'", "", ("growth", "linaer", "linear")),
        ("", "buy_above = 1.9", ("buy_above", "1.9")),
        ("name = 'twice'", "", ("scenario.toml",)),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused_by_its_key(
    place: Path, demand: str, policy: str, words: tuple[str, ...]
) -> None:
    (place / "scenario.toml").write_text(SCENARIO.format(demand=demand, policy=policy))
    assert_refused("sweep scenario.toml", *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("forecast", ("--telemetry", "--recording")),
        ("forecast --telemetry nowhere", ("--telemetry", "nowhere")),
        ("forecast --telemetry empty", ("--telemetry", "empty", "no Parquet file")),
        ("forecast --telemetry empty --lead-days 90", ("--lead-days", "90", "horizon")),
        ("forecast --recording bad.csv", ("--recording", "bad.csv", "type")),
        ("forecast --recording bad.parquet", ("--recording", "bad.parquet")),
        ("forecast --recording bad.csv --devices -1", ("--devices", "-1")),
        ("forecast --telemetry empty --devices 5", ("--devices", "recording")),
        ("paper --master yran", ("--master", "yran")),
        ("paper --rows empty", ("--rows", "empty")),
        ("paper --report file", ("--report", "file", "folder")),
        ("paper --report file/below", ("--report", "file/below")),
        ("placement --servers 0", ("servers", "0")),
        ("placement --skew zpif:1", ("skew", "zpif:1")),
        ("placement --policy members=3", ("policy", "members")),
        ("estimate --cost cost.json", ("memory_bytes", "0")),
        ("estimate --cost nowhere.json", ("cost", "nowhere.json")),
        ("estimate --servers 1,x", ("--servers", "x")),
        ("calibrate --out empty --memory-gb 0", ("--memory-gb", "0")),
        ("calibrate --quick", ("--quick", "--out")),
        ("sweep nowhere.toml", ("nowhere.toml",)),
        ("new file", ("file", "--force")),
        ("compare empty file", ("empty",)),
    ],
)
def test_what_cannot_be_planned_with_is_named_with_the_rule(
    arguments: str, words: tuple[str, ...]
) -> None:
    assert_refused(arguments, *words)
