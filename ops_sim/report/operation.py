"""What reports of an operation share: its days (`schema.DAYS`) as figure 9 shows them, and the lines of the rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from ops_sim.operation.policy import Policy
from ops_sim.report.formatting import date_of
from ops_sim.report.value import (
    RECOMMENDED_HUE,
    Axis,
    Plot,
    Row,
    Rows,
    Series,
    Shape,
    Threshold,
    Unit,
    X,
    values,
)

MEMORY, PROCESSING, SERVERS, DEVICES = 0, 1, 2, 3
"""Hues: the same thing has the same colour in every plot."""
LABEL_DAYS = 20
"""A label is so wide that this many fit beside one another."""


def day_axis(start: date | None) -> Axis:
    return Axis("day", Unit.DAY) if start is None else Axis("date", Unit.TEXT)


def days_of(rows: Rows, start: date | None) -> tuple[X, ...]:
    return tuple(row["day"] if start is None else date_of(row["day"], start) for row in rows)


def purchases_of(rows: Rows) -> list[Row]:
    return [row for row in rows if row["bought"]]


def rule_thresholds(policy: Policy, servers: float = 1) -> tuple[Threshold, ...]:
    """Where the rule buys and sizes, as shares or in servers."""
    buy, size = policy.buy_above, policy.size_below
    return (
        Threshold(buy * servers, f"buy above {buy:.0%}"),
        Threshold(size * servers, f"size below {size:.0%}", hue=5),
    )


def usage_plot(name: str, title: str, rows: Rows, policy: Policy, start: date | None) -> Plot:
    """Figure 9: usage of both resources, and the servers."""
    x = days_of(rows, start)
    orders = clusters(purchases_of(rows), len(rows) // LABEL_DAYS)
    firsts = [several[0] for several in orders]
    installed = values(rows, "servers")
    stars = Series(
        "order",
        days_of(firsts, start),
        values(firsts, "servers"),
        Shape.STARS,
        labels=tuple(" ".join(f"+{row['bought']}" for row in several) for several in orders),
        hue=RECOMMENDED_HUE,
        right=True,
    )
    return Plot(
        name,
        title,
        "Usage of memory and processing over all servers, and the servers installed (right). Stars are orders, on "
        "the day of the decision; the steps come when they are installed. Orders soon after one another share a star.",
        day_axis(start),
        Axis("usage of all servers (%)", Unit.SHARE, from_zero=True),
        (
            Series("memory", x, values(rows, "memory"), hue=MEMORY),
            Series("processing", x, values(rows, "processing"), hue=PROCESSING),
            Series("servers installed", x, installed, Shape.STEPS, hue=SERVERS, right=True),
            stars,
        ),
        Axis("servers", from_zero=True),
        rule_thresholds(policy),
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
