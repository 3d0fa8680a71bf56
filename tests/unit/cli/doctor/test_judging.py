"""Every planted fault is found, by its own check, with a cure; and what is well is not complained of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from utuple.cli.doctor.judging import Facts, judged
from utuple.store.postgres.durability import Setting

WELL = Facts(
    python=(3, 12, 0),
    free_bytes=10 << 30,
    folder="/data",
    folder_writable=True,
    files=65_536,
    settings={"server-1": [Setting("fsync", "on", "SET fsync")]},
    clocks_s={"monitor-1": 0.1},
    certificates={"operator.creds": 300.0},
    manager_answers=True,
    at="127.0.0.1:7400",
    whole=True,
    full={"server-1": 0.5},
    round_trip_s=0.01,
)
FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("Python", {"python": (3, 9, 1)}, "3.11"),
    ("packages", {"versions": {"orjson": "is not installed"}}, "pip install"),
    ("disk", {"free_bytes": 1_000}, "free at least"),
    ("data folder", {"folder_writable": False}, "chown"),
    ("open files", {"files": 256}, "ulimit"),
    ("durability", {"settings": {"server-1": [Setting("fsync", "off", "SET fsync")]}}, "SET fsync"),
    ("clocks", {"clocks_s": {"monitor-1": -90.0}}, "NTP"),
    ("ports", {"ports_taken": {"server-1": "127.0.0.1:7411"}}, "--port"),
    ("certificates", {"certificates": {"operator.creds": -1.0}}, "utuple grant"),
    ("assignment managers", {"manager_answers": False, "whole": None}, "utuple up"),
    ("programs", {"silent": ("server-2",)}, "logs/server-2.log"),
    ("assignment table", {"whole": False}, "utuple found"),
    ("kinds of programs", {"missing": ("no sCA server",)}, "start it"),
    ("room", {"full": {"server-1": 0.97}}, "server add"),
    ("round trip", {"round_trip_s": None, "round_trip_error": "Unavailable"}, "utuple status"),
]


def test_nothing_is_wrong_with_what_is_well() -> None:
    assert [one for one in judged(WELL) if not one.is_well] == []
    assert len(judged(WELL)) == 15


@pytest.mark.parametrize(("name", "fault", "cure"), FAULTS, ids=[name for name, _, _ in FAULTS])
def test_a_planted_fault_is_found_with_its_cure(
    name: str, fault: dict[str, Any], cure: str
) -> None:
    wrong = [one for one in judged(replace(WELL, **fault)) if not one.is_well]
    assert [one.name for one in wrong] == [name]
    assert cure in wrong[0].cure
