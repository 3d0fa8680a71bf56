"""The report of `utuple plan paper`: our 1000 days beside what the paper prints. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from ops_sim.operation import paper
from ops_sim.report.operation import (
    Row,
    buying_answer,
    capacity_plot,
    column,
    day_axis,
    days_of,
    orders_said,
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
    Section,
    Series,
    Shape,
    Table,
    Unit,
    X,
)
from ops_sim.report.words import count, date_of

if TYPE_CHECKING:
    from ops_sim.operation.paper import Reading


def paper_report(days: pa.Table, start: date | None = None) -> Report:
    """`days`: `schema.DAYS` of both readings."""
    written = _days(days, paper.AS_WRITTEN)
    variant = _days(days, paper.VARIANT)
    policy = paper.AS_WRITTEN.policy
    found = paper.figures(written)
    limits = (policy.size_below, policy.buy_above, start)
    figure_9 = usage_plot(
        "figure-9", "Figure 9: usage and servers, the rule as written", written, *limits
    )
    figure_9_variant = usage_plot(
        "figure-9-variant", "Figure 9, variant: usage and servers", variant, *limits
    )
    return Report(
        "paper",
        "The operation of 1000 days (section 4.2)",
        buying_answer(written, start),
        f"Ten servers at the start become {found['servers_day_1000']} for {written[-1]['devices']:,.0f} devices on "
        f"day {len(written)}. Orders by the rule as written: {orders_said(purchases_of(written), start)}; each is "
        f"installed 30 days later. The paper prints {paper.PRINTED['servers_day_1000']} servers: see below why.",
        _figures(written, found),
        (
            Section("The operation", plots=(figure_9, capacity_plot("capacity", written, *limits))),
            Section(
                "Ours beside the print",
                (paper.DIFFERENCE,),
                (_readings_plot(written, variant, start), figure_9_variant),
                (_beside(written, variant),),
            ),
            Section("Orders and days", tables=(_orders(written, variant, start), _all_days(days))),
        ),
        _assumptions(),
    )


def _days(days: pa.Table, reading: Reading) -> list[Row]:
    import pyarrow.compute as pc

    chosen = days.filter(pc.equal(days["policy"], reading.policy.name)).sort_by("day")
    return chosen.to_pylist()  # type: ignore[no-any-return]  # rows of schema.DAYS


def _figures(written: Sequence[Row], found: dict[str, float]) -> tuple[KeyFigure, ...]:
    printed = paper.PRINTED
    peak = max(max(row["memory"], row["processing"]) for row in written)
    bought = purchases_of(written)
    return (
        KeyFigure(
            *("servers_day_1000", "servers on day 1000", found["servers_day_1000"]),
            note=f"the paper prints {printed['servers_day_1000']}",
        ),
        KeyFigure("servers_bought", "servers bought", sum(row["bought"] for row in bought)),
        KeyFigure("purchases", "orders", len(bought)),
        KeyFigure(
            *("memory_mean", "memory, mean of days 500–1000", found["memory_mean"], Unit.SHARE),
            note=f"the paper prints {printed['memory_mean']:.1%}",
        ),
        KeyFigure(
            *("processing_mean", "processing, mean of days 500–1000"),
            *(found["processing_mean"], Unit.SHARE),
            note=f"the paper prints {printed['processing_mean']:.1%}",
        ),
        KeyFigure("usage_peak", "highest usage", peak, Unit.SHARE, "the paper says below 90%"),
        KeyFigure("server_days", "server-days", sum(row["servers"] for row in written)),
    )


def _readings_plot(written: Sequence[Row], variant: Sequence[Row], start: date | None) -> Plot:
    end: tuple[X, ...] = days_of(written[-1:], start)
    return Plot(
        "readings",
        "Servers under both readings of the rule, and the print",
        "The variant sizes for the day of installation plus 60 and tests against the installed servers alone.",
        day_axis(start),
        Axis("servers installed", from_zero=True),
        (
            Series(
                *("as written", days_of(written, start), column(written, "servers"), Shape.STEPS),
                hue=2,
            ),
            Series(
                *("variant", days_of(variant, start), column(variant, "servers"), Shape.STEPS),
                hue=4,
                dashed=True,
            ),
            Series(
                *("the paper prints", end, (paper.PRINTED["servers_day_1000"],), Shape.STARS),
                labels=(f"print: {paper.PRINTED['servers_day_1000']}",),
                hue=1,
            ),
        ),
    )


def _beside(written: Sequence[Row], variant: Sequence[Row]) -> Table:
    sides = {
        "the rule as written": paper.figures(written),
        "sized for installation + 60": paper.figures(variant),
        "the paper prints": paper.PRINTED,
    }
    names = ("servers_day_1000", "memory_mean", "processing_mean")
    data = {"reading": list(sides)} | {n: [side[n] for side in sides.values()] for n in names}
    return Table(
        *("beside", "Ours beside the print", pa.table(data)),
        columns=(
            Column("reading", "reading", Unit.TEXT),
            Column("servers_day_1000", "servers on day 1000"),
            Column("memory_mean", "memory, mean", Unit.SHARE),
            Column("processing_mean", "processing, mean", Unit.SHARE),
        ),
        note="Means over days 500 to 1000.",
    )


def _orders(written: Sequence[Row], variant: Sequence[Row], start: date | None) -> Table:
    rows = [
        {
            "reading": name,
            "decided": row["day"],
            "installed": row["day"] + paper.AS_WRITTEN.study.demands[0].lead_time_days,
            "servers": row["bought"],
        }
        for name, side in (("as written", written), ("variant", variant))
        for row in purchases_of(side)
    ]
    columns = [
        Column("reading", "reading", Unit.TEXT),
        Column("decided", "decided on day", Unit.DAY),
        Column("installed", "installed on day", Unit.DAY),
        Column("servers", "servers"),
    ]
    if start is not None:
        rows = [{**row, "order_by": date_of(row["decided"], start)} for row in rows]
        columns.append(Column("order_by", "order by", Unit.TEXT))
    return Table("orders", "Orders", pa.Table.from_pylist(rows), tuple(columns))


def _all_days(days: pa.Table) -> Table:
    return Table(
        *("days", "Every day", days),
        columns=(
            Column("policy", "reading", Unit.TEXT),
            Column("day", "day", Unit.DAY),
            Column("devices", "devices"),
            Column("servers", "servers"),
            Column("on_order", "on order"),
            Column("bought", "ordered"),
            Column("memory", "memory", Unit.SHARE),
            Column("processing", "processing", Unit.SHARE),
        ),
    )


def _assumptions() -> tuple[Assumption, ...]:
    reading, study = paper.AS_WRITTEN, paper.AS_WRITTEN.study
    policy, cost, demand = reading.policy, reading.cost, study.demands[0]
    other = paper.VARIANT.cost
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
        Assumption("lead time", f"{demand.lead_time_days} days", "from decision to installation"),
        Assumption(
            "cost of an EA",
            f"{cost.ea_bytes:,.0f} bytes and {cost.ea_s * 1e3:g} ms",
            f"EF terms 0; for the variant {other.ea_bytes:,.0f} bytes and {other.ea_s * 1e3:g} ms",
        ),
        Assumption("stored EAs", "350 a device", "50 a day that live 7 days"),
        Assumption("memory of a server", f"{cost.memory_bytes / 1e9:g} GB", "section 4.1.2"),
    )
