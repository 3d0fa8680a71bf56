"""What a study of placement may be asked."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ops_sim.placement.scenario import Scenario, Skew, skew_from
from utuple.errors import InvalidInput

SMALL = Scenario(keys=500, days=9, skew=Skew("zipf", 1.1))


@pytest.mark.parametrize("text", ["even", "zipf:1.1", "hot:0.25"])
def test_a_skew_is_read_as_it_is_written(text: str) -> None:
    assert str(skew_from(text)) == text


@pytest.mark.parametrize("text", ["", "zipf", "zipf:much", "hot:1.1", "zipf:-1", "even:2", "flat"])
def test_a_skew_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="skew"):
        skew_from(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("servers", 0),
        ("servers", 10_001),
        ("servers_first", 11),
        ("keys", 0),
        ("days", 0),
        ("devices", -1.0),
        ("devices_first", 2e6),
        ("churn", 1.5),
        ("night", math.nan),
    ],
)
def test_a_scenario_that_cannot_be_is_refused_by_its_field(field: str, value: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(SMALL, **{field: value})  # type: ignore[arg-type]
    assert refused.value.field in (field, "servers_first")


def test_servers_and_devices_grow_together_in_a_straight_line() -> None:
    grown = Scenario(servers=20, servers_first=10, devices=2e6, devices_first=1e6, days=11)
    assert [grown.servers_on(day) for day in range(11)] == list(range(10, 21))
    assert grown.devices_on(5) == 1.5e6
