"""What a forecast says first."""

from __future__ import annotations

from typing import Any

from utuple.cli.plan.forecast import _order_said

DUE = {"servers": 3, "by": "2026-12-01", "installed": "2026-12-31"}


def of_days(days: float) -> dict[str, Any]:
    return {"telemetry": {"days": days}}


def test_an_hour_of_samples_orders_nothing_whatever_its_line_says() -> None:
    assert _order_said(DUE, DUE, of_days(1 / 24)).startswith(
        "Too early to say: these samples are of 1.0 hours"
    )


def test_weeks_of_samples_say_how_many_to_order_by_when_and_to_be_safe() -> None:
    early = {**DUE, "servers": 5, "by": "2026-11-20"}
    said = _order_said(DUE, early, of_days(14.0))
    assert said == (
        "Order 3 servers by 2026-12-01 (installed 2026-12-31); to be safe 5 by 2026-11-20."
    )
    assert _order_said(None, None, of_days(14.0)).startswith("Nothing to order")
