"""The report of `utuple plan estimate`: figure 8, for any cost model. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ops_sim.report.formatting import before, listed, number, setting
from ops_sim.report.value import (
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
    Table,
)

_HUES = {"proposed": 0, "existing": 1}
_HELD = ("throughput", "accumulatable")
_MEASURES = {
    "throughput_per_s": ("throughput", "uTuples registered a second"),
    "accumulatable": ("accumulatable uTuples", "uTuples stored when memory is full"),
}


def estimate_report(rows: Rows, cost: Row, cautions: Sequence[str]) -> Report:
    """`rows` as `schema.ESTIMATES`."""
    applications = list(dict.fromkeys(row["application"] for row in rows))
    most = max(row["servers"] for row in rows)
    at_most = {
        (row["application"], row["method"], row["condition"]): row
        for row in rows
        if row["servers"] == most
    }

    def ratio(one: tuple[str, str, str], other: tuple[str, str, str]) -> float:
        part, whole = (at_most[key]["throughput_per_s"] for key in (one, other))
        return part / whole if whole else 0.0

    kept = listed(
        [
            f"{ratio((name, 'proposed', 'worst'), (name, 'proposed', 'best')):.0%} for application {name}"
            for name in applications
        ]
    )
    gains = (
        ratio((name, "proposed", "worst"), (name, "existing", "worst")) for name in applications
    )
    single = listed([f"{gain:,.0f}" for gain in gains])
    return Report(
        "estimate",
        f"Performance by the number of servers (figure 8), costs: {cost['name']}",
        f"{_beyond_said(rows)}ith {most:,} servers and everything on one key, the proposed method keeps {kept} of the throughput it has "
        f"with keys spread evenly.",
        f"{before(cautions)}That is {single} times what a traditional DHT reaches there, where one server carries it all however many "
        f"are bought. With keys spread evenly both are the same.{_free_copies(cost)}",
        tuple(
            KeyFigure(
                f"{name}_{application}",
                f"{application}, worst condition, {most:,} servers: {title}",
                round(at_most[application, "proposed", "worst"][name]),
            )
            for application in applications
            for name, (title, _) in _MEASURES.items()
        ),
        (
            *(_section(rows, name) for name in applications),
            Section("Every estimate", tables=(_table(rows),)),
        ),
        _assumptions(cost),
    )


def _beyond_said(rows: Rows) -> str:
    """Whoever reads the headline alone must not take an extended line for a measurement."""
    beyond = max(row[f"{name}_beyond"] or 0.0 for row in rows for name in _HELD)
    if beyond > 1:
        return f"Up to {number(round(beyond, 1))} times beyond what was measured: w"
    return "W"


def _free_copies(cost: Row) -> str:
    if any(cost[name] for name in ("ea_s_per_ef", "ef_s", "ef_s_per_ea", "ef_bytes")):
        return ""
    return " This cost model has no EF terms, so that copied EFs cost nothing: calibrate to see their cost."


def _section(rows: Rows, application: str) -> Section:
    mine = [row for row in rows if row["application"] == application]
    plots = tuple(
        Plot(
            f"figure-8-{application}-{name.partition('_')[0]}",
            f"Figure 8: {title} of application {application}",
            "Both axes are logarithmic. In the best condition keys are spread evenly; in the worst there is one key, "
            "and the existing method leaves it all on one server.",
            Axis("uTupleServers", log=True),
            Axis(unit, log=True),
            tuple(
                _line(mine, method, condition, name)
                for method in _HUES
                for condition in ("best", "worst")
            ),
        )
        for name, (title, unit) in _MEASURES.items()
    )
    return Section(f"Application {application}", plots=plots)


def _line(rows: Rows, method: str, condition: str, name: str) -> Series:
    some = [row for row in rows if (row["method"], row["condition"]) == (method, condition)]
    some.sort(key=lambda row: row["servers"])
    return Series(
        f"{method}, {condition}",
        tuple(row["servers"] for row in some),
        tuple(row[name] or None for row in some),  # a logarithmic axis has no zero
        hue=_HUES[method],
        dashed=condition == "best",
    )


def _table(rows: Rows) -> Table:
    columns = (
        Column.text("application"),
        Column.text("method"),
        Column.text("condition"),
        Column.number("servers"),
        Column.number("throughput_per_s", "uTuples a second"),
        Column.number("throughput_beyond", "times what was measured with"),
        Column.number("accumulatable", "accumulatable uTuples"),
        Column.number("accumulatable_beyond", "times what was measured with"),
    )
    note = (
        "How many times the uTuples a server holds that it was measured with: above 1, the lines are extended. "
        "A dash: not known."
    )
    return Table("estimates", "Every estimate", estimates_table(rows), columns, note)


def estimates_table(rows: Rows) -> pa.Table:
    """`schema.ESTIMATES`; what is not known of any row is a column of nulls all the same."""
    types = dict.fromkeys(("application", "method", "condition"), pa.string())
    types["servers"] = pa.int32()
    columns = {name: types.get(name, pa.float64()) for name in rows[0]}
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(columns))


def _assumptions(cost: Row) -> tuple[Assumption, ...]:
    known = {name: value for name, value in cost.items() if value is not None}
    return (
        Assumption("load", "table 2 of the paper", "applications A and B"),
        Assumption("costs", "linear, independent, they add up", "section 4.1.2"),
        Assumption("copying EFs and the network", "cost nothing", "section 4.1.2"),
        *(Assumption(f"cost: {name}", setting(value)) for name, value in known.items()),
    )
