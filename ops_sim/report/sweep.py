"""The report of `utuple plan sweep`: the policy to take, what beats what, and forecasts as bands. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from ops_sim.report.operation import Row, days_of, usage_plot
from ops_sim.report.operation import day_axis as axis_of_days
from ops_sim.report.value import (
    RECOMMENDED_HUE,
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Section,
    Series,
    Shape,
    Table,
    Threshold,
    Unit,
)
from ops_sim.report.words import listed, setting

Found = Mapping[str, Any]
"""As `ops_sim/operation/answer.py` gives it: what plan.json holds."""
_QUANTITIES = {
    "usage": ("usage of the scarcer resource", Axis("usage (%)", Unit.SHARE, from_zero=True), 0),
    "servers": ("servers installed", Axis("servers", from_zero=True), 2),
    "devices": ("devices", Axis("devices", from_zero=True), 3),
}


def sweep_report(found: Found, policies: pa.Table, bands: pa.Table, days: pa.Table) -> Report:
    """The tables as `schema.POLICIES`, `schema.BANDS` and `schema.DAYS`, the two last of what is recommended."""
    policies = policies.sort_by("server_days")
    rows = policies.to_pylist()
    chosen = next(row for row in rows if row["policy"] == found["recommended"])
    plan = found["assumptions"]["plan"]
    start = date.fromisoformat(plan["start"]) if plan["start"] else None
    policy = next(p for p in found["assumptions"]["policies"] if p["name"] == found["recommended"])
    band_rows, day_rows = bands.to_pylist(), days.to_pylist()
    demands = [demand["name"] for demand in found["assumptions"]["demands"]]
    forecasts = [
        _forecast(name, place, band_rows, day_rows, policy, start)
        for place, name in enumerate(demands)
    ]
    choice = Section(
        "Which policy",
        (),
        (_pareto(rows, found),),
        (_policies_table(policies, rows.index(chosen)),),
    )
    sections = (choice, *forecasts, Section("Orders", tables=(_orders(found), _days_table(days))))
    return Report(
        "sweep",
        f"Plan {plan['name']}: {plan['days']:,} days, {found['scenarios']:,} scenarios",
        found["answer"],
        " ".join((*found["cautions"], f"By the policy {found['recommended']}. {found['reason']}"))
        + _interruption(found),
        _figures(found, chosen),
        sections,
        _assumptions(found, policy),
    )


def _interruption(found: Found) -> str:
    if not found["interrupted"]:
        return ""
    return f" The sweep was interrupted: this is of the {found['scenarios']:,} scenarios finished."


def _figures(found: Found, chosen: Row) -> tuple[KeyFigure, ...]:
    risk = f"{found['risk']:.1%} was stated"
    more: tuple[KeyFigure, ...] = ()
    if found["assumptions"]["plan"]["day_cost"] != 1:
        more = (KeyFigure("cost_of_operation", "cost of operation", found["cost_of_operation"]),)
    chosen_as = (
        "recommended policy" if found["meets_risk"] else "nearest policy; none meets the risk"
    )
    return (
        KeyFigure("recommended", chosen_as, found["recommended"], Unit.TEXT),
        KeyFigure("server_days", "server-days, mean", round(chosen["server_days"])),
        *more,
        KeyFigure(
            *("scenarios_above_100", "scenarios that ever exceed 100 %"),
            *(chosen["scenarios_above_100"], Unit.SHARE, risk),
        ),
        KeyFigure(
            *("scenarios_above_90", "scenarios that ever exceed 90 %"),
            *(chosen["scenarios_above_90"], Unit.SHARE),
        ),
        KeyFigure("headroom", "headroom, mean", chosen["headroom"], Unit.SHARE),
        KeyFigure("purchases", "orders, mean", round(chosen["purchases"], 1)),
        KeyFigure(
            *("servers_bought", "servers bought, mean", round(chosen["servers_bought"], 1)),
            note=f"over all scenarios; in the middle {_bought_said(found)}",
        ),
        KeyFigure("usage_peak", "highest usage, mean", chosen["usage_peak"], Unit.SHARE),
    )


def _bought_said(found: Found) -> str:
    """In the middle world of each demand."""
    bought = [sum(order["servers"] for order in orders) for orders in found["purchases"].values()]
    return listed([f"{servers:,}" for servers in bought])


def _pareto(rows: Sequence[Row], found: Found) -> Plot:
    front = set(found["front"])
    recommended = [row for row in rows if row["policy"] == found["recommended"]]
    unbeaten = [r for r in rows if r["policy"] in front and r not in recommended]
    beaten = [r for r in rows if r["policy"] not in front and r not in recommended]

    def series(name: str, some: Sequence[Row], shape: Shape, hue: int) -> Series:
        return Series(
            *(name, tuple(row["server_days"] for row in some)),
            *(tuple(row["scenarios_above_100"] for row in some), shape),
            labels=tuple(row["policy"] for row in some),
            hue=hue,
        )

    return Plot(
        "pareto",
        "Cost against risk: one point a policy",
        "Left is cheaper, lower is safer. No other policy beats one of the front in cost, in the share of the "
        "scenarios above 100 % and in that above 90 % at once. The star is the policy recommended for the stated risk.",
        Axis("server-days, mean over the scenarios"),
        Axis("scenarios that ever exceed 100 % (%)", Unit.SHARE, from_zero=True),
        (
            series("beaten", beaten, Shape.MARKERS, 5),
            series("Pareto front", unbeaten, Shape.MARKERS, 0),
            series(
                "recommended" if found["meets_risk"] else "nearest to the stated risk",
                *(recommended, Shape.STARS, RECOMMENDED_HUE),
            ),
        ),
        thresholds=(Threshold(found["risk"], f"stated risk {found['risk']:.1%}"),),
    )


def _forecast(
    demand: str,
    place: int,
    bands: Sequence[Row],
    days: Sequence[Row],
    policy: Mapping[str, Any],
    start: date | None,
) -> Section:
    limits = (policy["size_below"], policy["buy_above"])
    plots = [
        _band_plot(f"{quantity}-{place}", demand, quantity, bands, limits, start)
        for quantity in _QUANTITIES
    ]
    middle = sorted((r for r in days if r["demand"] == demand), key=lambda r: r["day"])
    plots.append(
        usage_plot(
            *(f"middle-{place}", f"{demand}: the world in the middle, by servers bought", middle),
            *(*limits, start),
        )
    )
    text = "Bands hold the middle 90 % and 50 % of the possible worlds, the line is their median."
    return Section(f"Forecast: {demand}", (text,), tuple(plots))


def _band_plot(
    name: str,
    demand: str,
    quantity: str,
    bands: Sequence[Row],
    limits: tuple[float, float],
    start: date | None,
) -> Plot:
    what, axis, hue = _QUANTITIES[quantity]
    rows = [row for row in bands if row["demand"] == demand and row["quantity"] == quantity]
    rows.sort(key=lambda row: row["day"])
    x = days_of(rows, start)

    def band(label: str, low: str, high: str) -> Series:
        lows, highs = (tuple(row[name] for row in rows) for name in (low, high))
        return Series(label, x, highs, Shape.BAND, lows, hue=hue)

    thresholds: tuple[Threshold, ...] = ()
    if quantity == "usage":
        size_below, buy_above = limits
        thresholds = (
            Threshold(1.0, "full"),
            Threshold(buy_above, f"buy above {buy_above:.0%}"),
            Threshold(size_below, f"size below {size_below:.0%}", hue=5),
        )
    return Plot(
        name,
        f"{demand}: {what}",
        f"{what.capitalize()} under the recommended policy, over the possible worlds.",
        axis_of_days(start),
        axis,
        (
            band("5–95 %", "q05", "q95"),
            band("25–75 %", "q25", "q75"),
            Series("median", x, tuple(row["q50"] for row in rows), hue=hue),
        ),
        thresholds=thresholds,
    )


def _policies_table(policies: pa.Table, chosen: int) -> Table:
    return Table(
        *("policies", "Policies, cheapest first", policies),
        columns=(
            Column("policy", "policy", Unit.TEXT),
            Column("server_days", "server-days"),
            Column("servers_last", "servers at the end"),
            Column("purchases", "orders"),
            Column("scenarios_above_90", "scenarios above 90 %", Unit.SHARE),
            Column("scenarios_above_100", "scenarios above 100 %", Unit.SHARE),
            Column("days_above_90", "days above 90 %", Unit.SHARE),
            Column("days_above_100", "days above 100 %", Unit.SHARE),
            Column("headroom", "headroom", Unit.SHARE),
            Column("headroom_5", "headroom at the peak, 5 %", Unit.SHARE),
        ),
        note="Means over the scenarios; the last is exceeded in 95 % of them.",
        marked=(chosen,),
    )


def _orders(found: Found) -> Table:
    rows = [{"demand": d, **order} for d, orders in found["purchases"].items() for order in orders]
    names = {"demand": pa.string(), "by": pa.string(), "day": pa.int32(), "servers": pa.int32()}
    names["installed"] = pa.int32()
    return Table(
        *("orders", "Orders in the middle world of each demand"),
        pa.Table.from_pylist(rows, schema=pa.schema(names)),
        columns=(
            Column("demand", "demand", Unit.TEXT),
            Column("by", "order by", Unit.TEXT),
            Column("servers", "servers"),
            Column("installed", "installed on day", Unit.DAY),
        ),
    )


def _days_table(days: pa.Table) -> Table:
    return Table(
        *("days", "Every day in the middle world of each demand", days),
        columns=(
            Column("demand", "demand", Unit.TEXT),
            Column("day", "day", Unit.DAY),
            Column("devices", "devices"),
            Column("servers", "servers"),
            Column("bought", "ordered"),
            Column("memory", "memory", Unit.SHARE),
            Column("processing", "processing", Unit.SHARE),
        ),
    )


def _assumptions(found: Found, policy: Mapping[str, Any]) -> tuple[Assumption, ...]:
    told = found["assumptions"]
    groups = [("plan", told["plan"]), ("cost", told["cost"]), ("policy", policy)]
    groups += [(f"demand {demand['name']}", demand) for demand in told["demands"]]
    return tuple(
        Assumption(f"{group}: {name}", _said(value))
        for group, values in groups
        for name, value in values.items()
        if name != "name" and value not in ("", 0, None)
    )


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return setting(value)
    return str(value)
