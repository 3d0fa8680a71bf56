"""The report of `utuple plan estimate`: figure 8, for any cost model. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ops_sim.report.value import (
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Section,
    Series,
    Table,
    Unit,
)
from ops_sim.report.words import listed, number, setting

Row = Mapping[str, Any]
_HUES = {"proposed": 0, "existing": 1}
_HELD = ("throughput", "accumulatable")
_MEASURES = {
    "throughput_per_s": ("throughput", "uTuples registered a second"),
    "accumulatable": ("accumulatable uTuples", "uTuples stored when memory is full"),
}


def estimate_report(
    rows: Sequence[Row], cost: Mapping[str, Any], cautions: Sequence[str]
) -> Report:
    """`rows` as `schema.ESTIMATES`."""
    applications = list(dict.fromkeys(row["application"] for row in rows))
    most = max(row["servers"] for row in rows)
    shares = {name: _kept(rows, name, most) for name in applications}
    kept = listed([f"{share:.0%} for application {name}" for name, share in shares.items()])
    single = listed([f"{_gain(rows, name, most):,.0f}" for name in applications])
    return Report(
        "estimate",
        f"Performance by the number of servers (figure 8), costs: {cost['name']}",
        f"{_beyond_said(rows)}ith {most:,} servers and everything on one key, the proposed method keeps {kept} of the throughput it has "
        f"with keys spread evenly.",
        f"{''.join(f'{caution} ' for caution in cautions)}That is {single} times what a traditional DHT reaches there, where one server carries it all however many "
        f"are bought. With keys spread evenly both are the same.{_free_copies(cost)}",
        tuple(figure for name in applications for figure in _figures(rows, name, most)),
        (
            *(_section(rows, name) for name in applications),
            Section("Every estimate", tables=(_table(rows),)),
        ),
        _assumptions(cost),
    )


def _beyond_said(rows: Sequence[Row]) -> str:
    """Whoever reads the headline alone must not take an extended line for a measurement."""
    beyond = max(row[f"{name}_beyond"] or 0.0 for row in rows for name in _HELD)
    return (
        f"Up to {number(round(beyond, 1))} times beyond what was measured: w" if beyond > 1 else "W"
    )


def _free_copies(cost: Mapping[str, Any]) -> str:
    if any(cost[name] for name in ("ea_s_per_ef", "ef_s", "ef_s_per_ea", "ef_bytes")):
        return ""
    return " This cost model has no EF terms, so that copied EFs cost nothing: calibrate to see their cost."


def _of(rows: Sequence[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _at(rows: Sequence[Row], application: str, method: str, condition: str, servers: int) -> Row:
    chosen = {"application": application, "method": method, "condition": condition}
    return _of(rows, **chosen, servers=servers)[0]


def _kept(rows: Sequence[Row], application: str, servers: int) -> float:
    best, worst = (_at(rows, application, "proposed", c, servers) for c in ("best", "worst"))
    return _ratio(worst["throughput_per_s"], best["throughput_per_s"])


def _gain(rows: Sequence[Row], application: str, servers: int) -> float:
    ours, theirs = (_at(rows, application, m, "worst", servers) for m in ("proposed", "existing"))
    return _ratio(ours["throughput_per_s"], theirs["throughput_per_s"])


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _figures(rows: Sequence[Row], application: str, most: int) -> list[KeyFigure]:
    worst = _at(rows, application, "proposed", "worst", most)
    said = f"{application}, worst condition, {most:,} servers"
    return [
        KeyFigure(f"{name}_{application}", f"{said}: {title}", round(worst[name]))
        for name, (title, _) in _MEASURES.items()
    ]


def _section(rows: Sequence[Row], application: str) -> Section:
    plots = tuple(
        Plot(
            f"figure-8-{application}-{name.partition('_')[0]}",
            f"Figure 8: {title} of application {application}",
            "Both axes are logarithmic. In the best condition keys are spread evenly; in the worst there is one key, "
            "and the existing method leaves it all on one server.",
            Axis("uTupleServers", log=True),
            Axis(unit, log=True),
            tuple(_lines(_of(rows, application=application), name)),
        )
        for name, (title, unit) in _MEASURES.items()
    )
    return Section(f"Application {application}", plots=plots)


def _lines(rows: Sequence[Row], name: str) -> list[Series]:
    found = []
    for method, hue in _HUES.items():
        for condition in ("best", "worst"):
            some = sorted(_of(rows, method=method, condition=condition), key=lambda r: r["servers"])
            # A logarithmic axis has no zero.
            values = tuple(row[name] or None for row in some)
            x = tuple(row["servers"] for row in some)
            label = f"{method}, {condition}"
            found.append(Series(label, x, values, hue=hue, dashed=condition == "best"))
    return found


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        *("estimates", "Every estimate", estimates_table(rows)),
        columns=(
            Column("application", "application", Unit.TEXT),
            Column("method", "method", Unit.TEXT),
            Column("condition", "condition", Unit.TEXT),
            Column("servers", "servers"),
            Column("throughput_per_s", "uTuples a second"),
            Column("throughput_beyond", "times what was measured with"),
            Column("accumulatable", "accumulatable uTuples"),
            Column("accumulatable_beyond", "times what was measured with"),
        ),
        note="How many times the uTuples a server holds that it was measured with: above 1, the lines are extended. "
        "A dash: not known.",
    )


def estimates_table(rows: Sequence[Row]) -> pa.Table:
    """`schema.ESTIMATES`; what is not known of any row is a column of nulls all the same."""
    types = {"servers": pa.int32()} | dict.fromkeys(
        ("application", "method", "condition"), pa.string()
    )
    return pa.Table.from_pylist(
        [dict(row) for row in rows],
        schema=pa.schema({name: types.get(name, pa.float64()) for name in rows[0]}),
    )


def said_cost(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return setting(value) if isinstance(value, int | float) else str(value)


def _assumptions(cost: Mapping[str, Any]) -> tuple[Assumption, ...]:
    costs = tuple(
        Assumption(f"cost: {name}", said_cost(value))
        for name, value in cost.items()
        if value is not None
    )
    return (
        Assumption("load", "table 2 of the paper", "applications A and B"),
        Assumption("costs", "linear, independent, they add up", "section 4.1.2"),
        Assumption("copying EFs and the network", "cost nothing", "section 4.1.2"),
        *costs,
    )
