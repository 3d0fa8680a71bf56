"""The report of `utuple plan paper`: our 1000 days beside what the paper prints. Pure."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ops_sim.operation import paper
from ops_sim.operation.paper import PRINTED, days_under
from ops_sim.operation.policy import Policy
from ops_sim.report.formatting import count
from ops_sim.report.operation import (
    DEVICES,
    SERVERS,
    day_axis,
    days_of,
    purchases_of,
    usage_plot,
)
from ops_sim.report.value import (
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Rows,
    Section,
    Series,
    Shape,
    Table,
    Unit,
)

_WRITTEN_POLICY = paper.AS_WRITTEN.policy
_LEAD_DAYS = paper.AS_WRITTEN.study.demands[0].lead_time_days


def paper_report(days: pa.Table) -> Report:
    """`days`: `schema.DAYS` of both readings."""
    written, variant = (days_under(reading, days) for reading in (paper.AS_WRITTEN, paper.VARIANT))
    found = paper.figures(written)
    orders = ", ".join(f"day {row['day']}: {row['bought']}" for row in purchases_of(written))
    figure_9, figure_9_variant = (
        usage_plot(name, title, rows, _WRITTEN_POLICY, None)
        for name, title, rows in (
            ("figure-9", "Figure 9: usage and servers, the rule as written", written),
            ("figure-9-variant", "Figure 9, variant: usage and servers", variant),
        )
    )
    return Report(
        "paper",
        "The operation of 1000 days (section 4.2)",
        buying_answer(written),
        f"Ten servers at the start become {found['servers_day_1000']} for {written[-1]['devices']:,.0f} devices on "
        f"day {len(written)}. Orders by the rule as written: {orders}; each is "
        f"installed 30 days later. The paper prints {PRINTED['servers_day_1000']} servers: see below why.",
        _figures(written, found),
        (
            Section("The operation", plots=(figure_9, _capacity_plot(written, _WRITTEN_POLICY))),
            Section(
                "Ours beside the print",
                (paper.DIFFERENCE,),
                (_readings_plot(written, variant), figure_9_variant),
                (_beside(written, variant),),
            ),
            Section("Orders and days", tables=(_orders(written, variant), _all_days(days))),
        ),
        _assumptions(),
    )


def buying_answer(rows: Rows) -> str:
    """What to do first, and what follows."""
    orders = purchases_of(rows)
    if not orders:
        return f"Buy nothing: the {count(rows[-1]['servers'], 'server')} there are suffice."
    first, last = orders[0], orders[-1]
    said = f"Buy {count(first['bought'], 'server')} by day {first['day']}"
    if len(orders) > 1:
        total = sum(row["bought"] for row in orders)
        said += f", {total} in all in {len(orders)} orders until day {last['day']}"
    return f"{said}."


def _figures(written: Rows, found: dict[str, Any]) -> tuple[KeyFigure, ...]:
    peak = max(max(row["memory"], row["processing"]) for row in written)
    bought = purchases_of(written)
    servers = found["servers_day_1000"]
    print_said = f"the paper prints {PRINTED['servers_day_1000']}"
    means = (
        KeyFigure(
            f"{resource}_mean",
            f"{resource}, mean of days 500–1000",
            found[f"{resource}_mean"],
            Unit.SHARE,
            f"the paper prints {PRINTED[f'{resource}_mean']:.1%}",
        )
        for resource in ("memory", "processing")
    )
    return (
        KeyFigure("servers_day_1000", "servers on day 1000", servers, note=print_said),
        KeyFigure("servers_bought", "servers bought", sum(row["bought"] for row in bought)),
        KeyFigure("purchases", "orders", len(bought)),
        *means,
        KeyFigure("usage_peak", "highest usage", peak, Unit.SHARE, "the paper says below 90%"),
        KeyFigure(
            "usage_floor",
            f"lowest usage from day {found['floor_from_day']} on",
            found["usage_floor"],
            Unit.SHARE,
            f"the paper says {PRINTED['usage_floor']:.0%}: memory is there from this day on, processing "
            f"from day {found['above_floor_from_day']}",
        ),
        KeyFigure("server_days", "server-days", sum(row["servers"] for row in written)),
    )


def _capacity_plot(rows: Rows, policy: Policy) -> Plot:
    """Devices against what the servers carry. Exact where load is proportional to devices."""
    x = days_of(rows, None)
    full = [row["devices"] / max(row["memory"], row["processing"]) for row in rows]
    lines = [
        Series(f"carried at {share:.0%}", x, tuple(share * n for n in full), Shape.STEPS, hue=hue)
        for share, hue in ((policy.buy_above, 6), (policy.size_below, 5))
    ]
    return Plot(
        "capacity",
        "Devices, and how many the servers carry",
        f"Capacity rises by steps as servers are installed. An order is decided where the prediction would cross the "
        f"line of {policy.buy_above:.0%} of what is installed and ordered.",
        day_axis(None),
        Axis("devices", from_zero=True),
        (
            *lines,
            Series.of(rows, "devices", "day", "devices", hue=DEVICES),
            Series.of(rows, "predicted", "day", "predicted", hue=DEVICES, dashed=True),
        ),
    )


def _readings_plot(written: Rows, variant: Rows) -> Plot:
    steps = {"x": "day", "y": "servers", "shape": Shape.STEPS}
    printed = PRINTED["servers_day_1000"]
    label, end = (f"print: {printed}",), days_of(written[-1:], None)
    return Plot(
        "readings",
        "Servers under both readings of the rule, and the print",
        "The variant sizes for the day of installation plus 60 and tests against the installed servers alone.",
        day_axis(None),
        Axis("servers installed", from_zero=True),
        (
            Series.of(written, "as written", **steps, hue=SERVERS),
            Series.of(variant, "variant", **steps, hue=4, dashed=True),
            Series("the paper prints", end, (printed,), Shape.STARS, labels=label, hue=1),
        ),
    )


def _beside(written: Rows, variant: Rows) -> Table:
    sides = {
        "the rule as written": paper.figures(written),
        "sized for installation + 60": paper.figures(variant),
        "the paper prints": PRINTED,
    }
    columns = (
        Column.number("servers_day_1000", "servers on day 1000"),
        Column.share("memory_mean", "memory, mean"),
        Column.share("processing_mean", "processing, mean"),
    )
    data = {"reading": list(sides)}
    data |= {column.name: [side[column.name] for side in sides.values()] for column in columns}
    return Table(
        "beside",
        "Ours beside the print",
        pa.table(data),
        (Column.text("reading"), *columns),
        note="Means over days 500 to 1000.",
    )


def _orders(written: Rows, variant: Rows) -> Table:
    rows = [
        {
            "reading": name,
            "decided": row["day"],
            "installed": row["day"] + _LEAD_DAYS,
            "servers": row["bought"],
        }
        for name, side in (("as written", written), ("variant", variant))
        for row in purchases_of(side)
    ]
    columns = (
        Column.text("reading"),
        Column.day("decided", "decided on day"),
        Column.day("installed", "installed on day"),
        Column.number("servers"),
    )
    return Table("orders", "Orders", pa.Table.from_pylist(rows), columns)


def _all_days(days: pa.Table) -> Table:
    columns = (
        Column.text("policy", "reading"),
        Column.day("day"),
        Column.number("devices"),
        Column.number("servers"),
        Column.number("on_order", "on order"),
        Column.number("bought", "ordered"),
        Column.share("memory"),
        Column.share("processing"),
    )
    return Table("days", "Every day", days, columns)


def _assumptions() -> tuple[Assumption, ...]:
    study = paper.AS_WRITTEN.study
    policy, demand = _WRITTEN_POLICY, study.demands[0]
    cost, other = (
        f"{model.ea_bytes:,.0f} bytes and {model.ea_s * 1e3:g} ms"
        for model in (paper.AS_WRITTEN.cost, paper.VARIANT.cost)
    )
    memory = f"{paper.AS_WRITTEN.cost.memory_bytes / 1e9:g} GB"
    return (
        Assumption("growth", f"{demand.devices_per_day:,.0f} devices a day", "section 4.2"),
        Assumption("start", count(study.servers_start, "server"), "section 4.2"),
        Assumption(
            "prediction",
            f"straight line through {policy.window_days} days, {policy.horizon_days} days ahead",
            "demand is extrapolated, not usage in per cent",
        ),
        Assumption(
            "rule",
            f"above {policy.buy_above:.0%} predicted, buy enough for below {policy.size_below:.0%}",
            "servers on order count in the test and are subtracted from what is bought",
        ),
        Assumption("lead time", f"{_LEAD_DAYS} days", "from decision to installation"),
        Assumption(
            "cost of an EA",
            cost,
            f"fitted to the means the paper prints, since its figures 6 and 7 are drawings; EF terms 0; for the variant {other}",
        ),
        Assumption("stored EAs", "350 a device", "50 a day that live 7 days"),
        Assumption("memory of a server", memory, "section 4.1.2"),
    )
