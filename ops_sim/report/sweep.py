"""The report of `utuple plan sweep`: the policy to take, what beats what, and forecasts as bands. Pure."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date

import pyarrow as pa

from ops_sim.operation.policy import Policy
from ops_sim.report.formatting import before, listed, setting
from ops_sim.report.operation import (
    DEVICES,
    SERVERS,
    day_axis,
    days_of,
    rule_thresholds,
    usage_plot,
)
from ops_sim.report.value import (
    RECOMMENDED_HUE,
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Row,
    Rows,
    Section,
    Series,
    Shape,
    Table,
    Threshold,
    Unit,
    values,
)

_QUANTITIES = {
    "usage": ("usage of the scarcer resource", Axis("usage (%)", Unit.SHARE, from_zero=True), 0),
    "servers": ("servers installed", Axis("servers", from_zero=True), SERVERS),
    "devices": ("devices", Axis("devices", from_zero=True), DEVICES),
}
"""Title, axis and hue of what bands are drawn of."""


def sweep_report(found: Row, policies: pa.Table, bands: pa.Table, days: pa.Table) -> Report:
    """`found` is what ops_sim/operation/answer.py gives; the tables are as `schema.POLICIES`, `schema.BANDS` and
    `schema.DAYS`, the two last of what is recommended."""
    policies = policies.sort_by("server_days")
    rows = policies.to_pylist()
    at = next(at for at, row in enumerate(rows) if row["policy"] == found["recommended"])
    assumed = found["assumptions"]
    plan = assumed["plan"]
    start = date.fromisoformat(plan["start"]) if plan["start"] else None
    policy = Policy(**next(p for p in assumed["policies"] if p["name"] == found["recommended"]))
    band_rows, day_rows = bands.to_pylist(), days.to_pylist()
    forecasts = (
        _forecast(demand["name"], place, band_rows, day_rows, policy, start)
        for place, demand in enumerate(assumed["demands"])
    )
    return Report(
        "sweep",
        f"Plan {plan['name']}: {plan['days']:,} days, {found['scenarios']:,} scenarios",
        found["answer"],
        f"{before(found['cautions'])}By the policy {found['recommended']}. {found['reason']}"
        + _interruption(found),
        _figures(found, rows[at]),
        (
            Section("Which policy", (), (_pareto(rows, found),), (_policies_table(policies, at),)),
            *forecasts,
            Section("Orders", tables=(_orders(found), _days_table(days))),
        ),
        _assumptions(assumed, policy),
    )


def _interruption(found: Row) -> str:
    if not found["interrupted"]:
        return ""
    return f" The sweep was interrupted: this is of the {found['scenarios']:,} scenarios finished."


def _figures(found: Row, chosen: Row) -> tuple[KeyFigure, ...]:
    """The figures of the recommended policy, whose row is `chosen`."""

    def share(name: str, title: str, note: str = "") -> KeyFigure:
        return KeyFigure(name, title, chosen[name], Unit.SHARE, note)

    def mean(name: str, title: str, digits: int | None = 1, note: str = "") -> KeyFigure:
        return KeyFigure(name, f"{title}, mean", round(chosen[name], digits), note=note)

    is_priced = found["assumptions"]["plan"]["day_cost"] != 1
    cost = KeyFigure("cost_of_operation", "cost of operation", found["cost_of_operation"])
    title = "recommended policy" if found["meets_risk"] else "nearest policy; none meets the risk"
    bought = (sum(order["servers"] for order in orders) for orders in found["purchases"].values())
    middle = listed([f"{servers:,}" for servers in bought])
    return (
        KeyFigure("recommended", title, found["recommended"], Unit.TEXT),
        mean("server_days", "server-days", None),
        *((cost,) if is_priced else ()),
        share(
            "scenarios_above_100",
            "scenarios that ever exceed 100 %",
            f"{found['risk']:.1%} was stated",
        ),
        share("scenarios_above_90", "scenarios that ever exceed 90 %"),
        share("headroom", "headroom, mean"),
        mean("purchases", "orders"),
        mean(
            "servers_bought", "servers bought", note=f"over all scenarios; in the middle {middle}"
        ),
        share("usage_peak", "highest usage, mean"),
    )


def _pareto(rows: Rows, found: Row) -> Plot:
    front = set(found["front"])
    recommended = [row for row in rows if row["policy"] == found["recommended"]]
    others = [row for row in rows if row["policy"] != found["recommended"]]
    unbeaten = [row for row in others if row["policy"] in front]
    beaten = [row for row in others if row["policy"] not in front]
    star = "recommended" if found["meets_risk"] else "nearest to the stated risk"
    groups = (
        ("beaten", beaten, Shape.MARKERS, 5),
        ("Pareto front", unbeaten, Shape.MARKERS, 0),
        (star, recommended, Shape.STARS, RECOMMENDED_HUE),
    )
    points = {"x": "server_days", "y": "scenarios_above_100"}
    return Plot(
        "pareto",
        "Cost against risk: one point a policy",
        "Left is cheaper, lower is safer. No other policy beats one of the front in cost, in the share of the "
        "scenarios above 100 % and in that above 90 % at once. The star is the policy recommended for the stated risk.",
        Axis("server-days, mean over the scenarios"),
        Axis("scenarios that ever exceed 100 % (%)", Unit.SHARE, from_zero=True),
        tuple(
            Series.of(some, name, **points, shape=shape, labels=values(some, "policy"), hue=hue)
            for name, some, shape, hue in groups
        ),
        thresholds=(Threshold(found["risk"], f"stated risk {found['risk']:.1%}"),),
    )


def _forecast(
    demand: str, place: int, bands: Rows, days: Rows, policy: Policy, start: date | None
) -> Section:
    def of_demand(rows: Rows) -> list[Row]:
        return sorted((r for r in rows if r["demand"] == demand), key=lambda row: row["day"])

    mine, middle = of_demand(bands), of_demand(days)
    plots = [
        _band_plot(f"{quantity}-{place}", demand, quantity, mine, policy, start)
        for quantity in _QUANTITIES
    ]
    title = f"{demand}: the world in the middle, by servers bought"
    plots.append(usage_plot(f"middle-{place}", title, middle, policy, start))
    text = "Bands hold the middle 90 % and 50 % of the possible worlds, the line is their median."
    return Section(f"Forecast: {demand}", (text,), tuple(plots))


def _band_plot(
    name: str, demand: str, quantity: str, bands: Rows, policy: Policy, start: date | None
) -> Plot:
    what, axis, hue = _QUANTITIES[quantity]
    rows = [row for row in bands if row["quantity"] == quantity]
    x = days_of(rows, start)

    def band(label: str, low: str, high: str) -> Series:
        return Series(label, x, values(rows, high), Shape.BAND, values(rows, low), hue=hue)

    full = Threshold(1.0, "full")
    return Plot(
        name,
        f"{demand}: {what}",
        f"{what.capitalize()} under the recommended policy, over the possible worlds.",
        day_axis(start),
        axis,
        (
            band("5–95 %", "q05", "q95"),
            band("25–75 %", "q25", "q75"),
            Series("median", x, values(rows, "q50"), hue=hue),
        ),
        thresholds=(full, *rule_thresholds(policy)) if quantity == "usage" else (),
    )


def _policies_table(policies: pa.Table, chosen: int) -> Table:
    columns = (
        Column.text("policy"),
        Column.number("server_days", "server-days"),
        Column.number("servers_last", "servers at the end"),
        Column.number("purchases", "orders"),
        Column.share("scenarios_above_90", "scenarios above 90 %"),
        Column.share("scenarios_above_100", "scenarios above 100 %"),
        Column.share("days_above_90", "days above 90 %"),
        Column.share("days_above_100", "days above 100 %"),
        Column.share("headroom"),
        Column.share("headroom_5", "headroom at the peak, 5 %"),
    )
    note = "Means over the scenarios; the last is exceeded in 95 % of them."
    return Table("policies", "Policies, cheapest first", policies, columns, note, (chosen,))


def _orders(found: Row) -> Table:
    rows = [{"demand": d, **order} for d, orders in found["purchases"].items() for order in orders]
    text, whole = pa.string(), pa.int32()
    types = {"demand": text, "by": text, "day": whole, "servers": whole, "installed": whole}
    columns = (
        Column.text("demand"),
        Column.text("by", "order by"),
        Column.number("servers"),
        Column.day("installed", "installed on day"),
    )
    data = pa.Table.from_pylist(rows, schema=pa.schema(types))
    return Table("orders", "Orders in the middle world of each demand", data, columns)


def _days_table(days: pa.Table) -> Table:
    columns = (
        Column.text("demand"),
        Column.day("day"),
        Column.number("devices"),
        Column.number("servers"),
        Column.number("bought", "ordered"),
        Column.share("memory"),
        Column.share("processing"),
    )
    return Table("days", "Every day in the middle world of each demand", days, columns)


def _assumptions(assumed: Row, policy: Policy) -> tuple[Assumption, ...]:
    groups = [("plan", assumed["plan"]), ("cost", assumed["cost"]), ("policy", asdict(policy))]
    groups += [(f"demand {demand['name']}", demand) for demand in assumed["demands"]]
    return tuple(
        Assumption(f"{group}: {name}", setting(value))
        for group, settings in groups
        for name, value in settings.items()
        if name != "name" and value not in ("", 0, None)
    )
