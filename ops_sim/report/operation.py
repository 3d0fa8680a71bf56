"""Plots and words of an operation day by day (`schema.DAYS`), as figure 9 shows one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ops_sim.report.value import (
    RECOMMENDED_HUE,
    Axis,
    Plot,
    Series,
    Shape,
    Threshold,
    Unit,
    X,
)
from ops_sim.report.words import count, date_of, day_said

Row = Mapping[str, Any]
MEMORY, PROCESSING, SERVERS, DEVICES = 0, 1, 2, 3
"""Hues: the same thing has the same colour in every plot."""


def day_axis(start: date | None) -> Axis:
    return Axis("day", Unit.DAY) if start is None else Axis("date", Unit.TEXT)


def days_of(rows: Sequence[Row], start: date | None) -> tuple[X, ...]:
    return tuple(row["day"] if start is None else date_of(row["day"], start) for row in rows)


def column(rows: Sequence[Row], name: str) -> tuple[float | None, ...]:
    return tuple(row[name] for row in rows)


def purchases_of(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["bought"]]


def orders_said(rows: Sequence[Row], start: date | None) -> str:
    """`day 184: 3, day 257: 4`"""
    return ", ".join(f"{day_said(row['day'], start)}: {row['bought']}" for row in rows)


def buying_answer(rows: Sequence[Row], start: date | None) -> str:
    """What to do first, and what follows."""
    orders = purchases_of(rows)
    if not orders:
        return f"Buy nothing: the {count(rows[-1]['servers'], 'server')} there are suffice."
    first = orders[0]
    total = sum(row["bought"] for row in orders)
    said = f"Buy {count(first['bought'], 'server')} by {day_said(first['day'], start)}"
    if len(orders) > 1:
        said += (
            f", {total} in all in {len(orders)} orders until {day_said(orders[-1]['day'], start)}"
        )
    return f"{said}."


def usage_plot(
    name: str,
    title: str,
    rows: Sequence[Row],
    size_below: float,
    buy_above: float,
    start: date | None,
) -> Plot:
    """Figure 9: usage of both resources, and the servers."""
    x = days_of(rows, start)
    orders = clusters(purchases_of(rows), len(rows) // 20)
    firsts = [several[0] for several in orders]
    return Plot(
        name,
        title,
        "Usage of memory and processing over all servers, and the servers installed (right). Stars are orders, on "
        "the day of the decision; the steps come when they are installed. Orders soon after one another share a star.",
        day_axis(start),
        Axis("usage of all servers (%)", Unit.SHARE, from_zero=True),
        (
            Series("memory", x, column(rows, "memory"), hue=MEMORY),
            Series("processing", x, column(rows, "processing"), hue=PROCESSING),
            Series(
                *("servers installed", x, column(rows, "servers"), Shape.STEPS),
                hue=SERVERS,
                right=True,
            ),
            Series(
                *("order", days_of(firsts, start), column(firsts, "servers"), Shape.STARS),
                labels=tuple(" ".join(f"+{row['bought']}" for row in many) for many in orders),
                hue=RECOMMENDED_HUE,
                right=True,
            ),
        ),
        Axis("servers", from_zero=True),
        _limits(size_below, buy_above),
    )


def clusters(orders: Sequence[Row], within_days: int) -> list[list[Row]]:
    """Orders so near to the first of their cluster that their labels would overlap."""
    found: list[list[Row]] = []
    for order in orders:
        if found and order["day"] - found[-1][0]["day"] <= within_days:
            found[-1].append(order)
        else:
            found.append([order])
    return found


def _limits(size_below: float, buy_above: float) -> tuple[Threshold, ...]:
    return (
        Threshold(buy_above, f"buy above {buy_above:.0%}", hue=6),
        Threshold(size_below, f"size below {size_below:.0%}", hue=5),
    )


def capacity_plot(
    name: str, rows: Sequence[Row], size_below: float, buy_above: float, start: date | None
) -> Plot:
    """Devices against what the servers carry. Exact where load is proportional to devices."""
    x = days_of(rows, start)
    carried = [row["devices"] / max(row["memory"], row["processing"]) for row in rows]

    def at(share: float) -> tuple[float | None, ...]:
        return tuple(share * full for full in carried)

    return Plot(
        name,
        "Devices, and how many the servers carry",
        f"Capacity rises by steps as servers are installed. An order is decided where the prediction would cross the "
        f"line of {buy_above:.0%} of what is installed and ordered.",
        day_axis(start),
        Axis("devices", from_zero=True),
        (
            Series(f"carried at {buy_above:.0%}", x, at(buy_above), Shape.STEPS, hue=6),
            Series(f"carried at {size_below:.0%}", x, at(size_below), Shape.STEPS, hue=5),
            Series("devices", x, column(rows, "devices"), hue=DEVICES),
            Series("predicted", x, column(rows, "predicted"), hue=DEVICES, dashed=True),
        ),
    )
