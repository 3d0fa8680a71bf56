"""How many servers a recording asks for, and when nothing can be said."""

from __future__ import annotations

from typing import Any

import pytest

from ops_sim.cost.model import PAPER
from ops_sim.forecast.sizing import HOURS_MIN, Found
from ops_sim.forecast.sizing import answer as recorded
from ops_sim.operation.policy import Policy
from ops_sim.report.forecast import recording_report
from utuple.cli.plan.forecast import _said


def a_recording(hours: int) -> Found:
    return Found(600, 0, 1, 9, 5, 4.0, 2, hours, 2 * hours, 0.5, "2024-10-04", "2024-10-05")


@pytest.mark.parametrize("hours", [1, HOURS_MIN - 1])
def test_a_recording_of_less_than_a_day_says_no_number_of_servers(hours: int) -> None:
    found: dict[str, Any] = recorded(a_recording(hours), PAPER, None, Policy()) | {"hot_keys": []}
    unknown = ("eas_a_day", "processing_servers", "memory_servers", "servers_needed")
    assert {found[name] for name in unknown} == {None}
    assert found["answer"].startswith("Too short to say: there are rows in ")
    assert not {figure.name for figure in recording_report(found).figures} & set(unknown)
    assert _said(found)[0] == found["reason"]
    enough = recorded(a_recording(HOURS_MIN), PAPER, 5_000, Policy())
    assert enough["answer"] == "5 servers for 5,000 devices a day like these."
