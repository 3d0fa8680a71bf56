"""Reports to try: of small tables made by the rules themselves, without Spark."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date, timedelta
from itertools import repeat
from typing import Any

import pyarrow as pa

from load_monitor.planning.policy import Policy as Moves
from ops_sim.cost.application import APPLICATIONS
from ops_sim.cost.calibration import Calibration, Points, calibrate
from ops_sim.cost.estimate import cautions, estimates
from ops_sim.operation import paper
from ops_sim.operation.answer import answer
from ops_sim.operation.daily_rule import operate
from ops_sim.operation.paper import Reading
from ops_sim.operation.policy import Policy
from ops_sim.operation.scenario import Plan, Scenario
from ops_sim.placement.on_spark import figures
from ops_sim.placement.scenario import Scenario as Keys
from ops_sim.placement.scenario import skew_from
from ops_sim.placement.study import METHODS, PROPOSED, Study
from ops_sim.report.calibration import calibration_report
from ops_sim.report.estimate import estimate_report
from ops_sim.report.forecast import forecast_report
from ops_sim.report.paper import paper_report
from ops_sim.report.placement import placement_report
from ops_sim.report.sweep import sweep_report
from ops_sim.report.value import Report

NASTY = "<script>alert('x')</script> & \"$5\" %{y}"
"""What a name may hold that a page must not obey."""


def days_of(reading: Reading, demand: str, days: int) -> list[dict[str, Any]]:
    """Rows of `schema.DAYS` where 10,000 devices come a day."""
    devices = [10_000.0 * day for day in range(1, days + 1)]
    found = operate(devices, repeat(30), reading.study.load, reading.policy)
    names = {"policy": reading.policy.name, "demand": demand, "world": 0}
    return [names | asdict(day) for day in found]


def a_paper_report() -> Report:
    rows = [
        row
        for reading in (paper.AS_WRITTEN, paper.VARIANT)
        for row in days_of(reading, "paper", 1_000)
    ]
    return paper_report(pa.Table.from_pylist(rows))


def a_policy(name: str, cost: float, risk: float) -> dict[str, Any]:
    """A row of `schema.POLICIES`."""
    return {
        "policy": name,
        "scenarios": 100,
        "server_days": cost,
        "servers_last": 50.0,
        "purchases": 6.0,
        "servers_bought": 40.0,
        "days_above_90": risk / 2,
        "days_above_100": risk / 4,
        "scenarios_above_90": min(1.0, risk * 2),
        "scenarios_above_100": risk,
        "usage_mean": 0.7,
        "usage_peak": 0.9,
        "headroom": 0.3,
        "headroom_5": 0.1,
    }


def a_sweep_report(name: str = "steady", risk: float = 0.05) -> Report:
    """Three policies, of which one is beaten; one demand."""
    reading = paper.AS_WRITTEN
    policies = tuple(replace(Policy(), name=each) for each in ("bold", "paper", "wasteful"))
    demand = replace(reading.study.demands[0], name=name)
    study = replace(reading.study, demands=(demand,), policies=policies)
    scenario = Scenario(Plan(name="a plan", start="2027-01-01", risk=risk), reading.cost, study)
    table = [
        a_policy("bold", 20_000.0, 0.4),
        a_policy("paper", 25_000.0, 0.02),
        a_policy("wasteful", 30_000.0, 0.03),
    ]
    days = days_of(reading, name, 1_000)
    bands = [
        {"policy": "paper", "demand": name, "day": day, "quantity": quantity}
        | {f"q{q:02d}": top * day / 1_000 * (0.75 + q / 200) for q in (5, 25, 50, 75, 95)}
        for quantity, top in (("devices", 1e7), ("servers", 50.0), ("usage", 0.8))
        for day in range(1, 1_001, 20)
    ]
    found = answer(scenario, table, days, 1)
    return sweep_report(
        found, pa.Table.from_pylist(table), pa.Table.from_pylist(bands), pa.Table.from_pylist(days)
    )


def a_placement_report(hot: float = 0.5, members_max: int = 256) -> Report:
    """One hot key on a few servers, for some days."""
    keys = Keys(
        servers=8,
        servers_first=4,
        devices=1_100_000.0,
        devices_first=550_000.0,
        keys=200,
        days=20,
        skew=skew_from(f"hot:{hot}"),
    )
    policy = Moves(members_max=members_max)
    studies = [Study(method, keys, paper.AS_WRITTEN.cost, policy) for method in METHODS]
    rows = [study.live(day) for study in studies for day in range(keys.days)]
    return placement_report(
        pa.Table.from_pylist(rows), figures(rows), PROPOSED, members_max, {"keys": 200}
    )


def an_estimate_report() -> Report:
    cost = replace(paper.AS_WRITTEN.cost, name="dear EFs", ea_s_per_ef=1e-6, ef_bytes=3e5)
    rows = list(estimates(APPLICATIONS.values(), cost, (1, 2, 5, 10, 20, 50, 100)))
    told = [asdict(row) for row in rows]
    return estimate_report(told, cost.to_json(), cautions(rows, cost))


def a_calibration() -> Calibration:
    """Points on lines, but for EFs, where they fall a little and scatter."""

    def line(there: tuple[float, ...], at_0: float, each: float) -> Points:
        return Points(there, tuple(at_0 + each * x for x in there))

    some = (0.0, 1_000.0, 2_000.0)
    return calibrate(
        {
            "ea_s": line(some, 50e-6, 1e-9),
            "ef_s": Points((0.0, 1_000.0, 2_000.0, 3_000.0), (2e-3, 2.1e-3, 1.9e-3, 2e-3)),
            "ca_s": line(some, 4e-3, 2e-6),
            "cf_s": Points(some, (3e-3, 4e-3, 2.9e-3)),
            "ea_bytes": line(some, 8_192.0, 400.0),
            "ef_bytes": line(some, 0.0, 900.0),
            "cf_bytes": line(some, 0.0, 300.0),
        },
        memory_bytes=10e9,
    )


def a_calibration_report() -> Report:
    """What cost.json holds."""
    return calibration_report(asdict(a_calibration()))


def a_forecast_report(days: int = 30, servers: int = 2) -> Report:
    """Two servers, of which one runs out; what `ops_sim/forecast/samples.py` gives after so many days."""
    never = {
        "load": 0.3,
        "can_tell": True,
        "per_day": 0.0,
        "full": None,
        "full_early": None,
        "full_late": None,
    }
    soon = {"load": 0.85, "can_tell": True, "per_day": 0.01, "full": "2027-02-15"}
    soon |= {"full_early": "2027-02-10", "full_late": None}
    growing = {"servers": 1.4, "per_day": 0.01, "points": 30, "can_tell": True}
    growing |= {"ahead": 2.0, "ahead_low": 1.8, "ahead_high": 2.3}
    flat = growing | {"servers": 0.4, "per_day": 0.0, "ahead": 0.4, "ahead_low": 0.3}
    flat |= {"ahead_high": 0.5}
    order = {"servers": 2, "by": "2027-02-03", "installed": "2027-03-05", "in_days": 3.5}
    key = {"subject": "truck", "type": NASTY, "key": 1, "servers": 1}
    found = {
        "answer": "Order 2 servers by 2027-02-03.",
        "reason": None,
        "telemetry": {
            "files": 9,
            "broken": 1,
            "broken_files": ["x.parquet: not Parquet"],
            "rows": 1_000,
            "repeated_rows": 3,
            "late_rows": 2,
            "days": 30.0,
            "first": "2027-01-01",
            "last": "2027-01-30",
        },
        "order": {"likely": order, "early": order | {"by": "2027-02-01"}, "late": None},
        "lead_days": 30,
        "horizon_days": 60,
        "demand": {"processing": growing, "memory": flat},
        "servers_now": servers,
        "servers": [
            {"name": "s1", "processing": soon, "memory": never},
            {"name": "s2", "processing": never, "memory": never},
        ],
        "hot_keys": [{**key, "arrival_per_s": 120.0, "share": 0.8}],
    }
    last = date(2027, 1, 30)
    history = [
        {"day": str(last - timedelta(days=ago)), "processing": 1.4 - ago / 100, "memory": 0.4}
        for ago in reversed(range(days))
    ]
    return forecast_report(found, history, Policy())
