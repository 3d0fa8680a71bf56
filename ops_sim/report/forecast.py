"""The report of `utuple plan forecast`: what to order by which date, from what was measured. Pure."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa

from ops_sim.forecast.sizing import scaling_said
from ops_sim.operation.policy import Policy
from ops_sim.report.formatting import before, count
from ops_sim.report.operation import MEMORY, PROCESSING, rule_thresholds
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

_HUES = {"memory": MEMORY, "processing": PROCESSING}
SERVERS_DRAWN = 40
"""So many servers are drawn as bars; the table has all."""


def forecast_report(found: Row, history: Rows, policy: Policy) -> Report:
    """`found` is the answer to samples; `history` is of `samples.daily_cluster`."""
    read = found["telemetry"]
    sections = [Section("Demand", plots=(_demand_plot(found, history, policy),))]
    if found["servers"]:
        plots, tables = (_servers_plot(found["servers"]),), (_servers_table(found["servers"]),)
        sections.append(Section("Servers", plots=plots, tables=tables))
    if found["hot_keys"]:
        sections.append(_keys_section(found["hot_keys"], "arrival_per_s", "EAs a second"))
    rule = f"above {policy.buy_above:.0%} predicted, buy for below {policy.size_below:.0%}"
    line = "a straight line through the samples"
    return Report(
        "forecast",
        f"Forecast from measurements, {read['first']} to {read['last']}",
        found["answer"],
        f"From {read['rows']:,} rows of {count(read['files'], 'file')}: {read['repeated_rows']:,} repeated, "
        f"{read['late_rows']:,} late, {count(read['broken'], 'broken file')}.",
        _figures(found),
        tuple(sections),
        (
            Assumption("growth", line, "bands are its uncertainty"),
            Assumption("rule", rule),
            Assumption("horizon", f"{found['horizon_days']} days"),
            Assumption("lead time", f"{found['lead_days']} days", "from order to installation"),
            *(Assumption("left out", broken, "cannot be read") for broken in read["broken_files"]),
        ),
    )


def _figures(found: Row) -> tuple[KeyFigure, ...]:
    figures = [KeyFigure("servers_now", "servers now", found["servers_now"])]
    orders = found["order"] or {}
    for edge, title in (("likely", "likely"), ("early", "to be safe")):
        if (order := orders.get(edge)) is not None:
            figures += [
                KeyFigure(f"order_{edge}", f"order, {title}", order["servers"]),
                KeyFigure(f"by_{edge}", f"order by, {title}", order["by"], Unit.TEXT),
            ]
    when = f"in {found['horizon_days']} days"
    for resource, demand in found["demand"].items():
        if demand["can_tell"]:
            name, title, value = f"{resource}_ahead", f"{resource} {when}", demand["ahead"]
            note = f"{demand['ahead_low']:.2f} to {demand['ahead_high']:.2f}"
        else:
            name, title, value = f"{resource}_now", f"{resource} now", demand["servers"]
            note = f"{when}: not known"
        figures.append(KeyFigure(name, f"{title}, in servers", round(value, 2), note=note))
    return tuple(figures)


def _demand_plot(found: Row, history: Rows, policy: Policy) -> Plot:
    now = date.fromisoformat(found["telemetry"]["last"][:10])
    ends = (now.isoformat(), (now + timedelta(days=found["horizon_days"])).isoformat())
    servers = found["servers_now"]
    series = []
    for resource, demand in found["demand"].items():
        hue = _HUES[resource]
        if any(row[resource] is not None for row in history):
            shape = Shape.LINE if len(history) > 1 else Shape.MARKERS
            name = f"{resource}, measured"
            series.append(Series.of(history, name, "day", resource, shape=shape, hue=hue))
        if demand["can_tell"]:
            start = demand["servers"]
            low, likely, high = (
                (start, demand[edge]) for edge in ("ahead_low", "ahead", "ahead_high")
            )
            series += [
                Series(f"{resource}, band", ends, high, Shape.BAND, low, hue=hue),
                Series(f"{resource}, forecast", ends, likely, hue=hue, dashed=True),
            ]
    order = (found["order"] or {}).get("likely")
    if order is not None and order["by"][:10] <= ends[1]:
        at, height = (order["by"][:10],), (policy.buy_above * servers,)
        label = (f"+{order['servers']}",)
        star = Series("order", at, height, Shape.STARS, labels=label, hue=RECOMMENDED_HUE)
        series.append(star)
    return Plot(
        "demand",
        "Demand of the whole cluster, in servers",
        "What was measured each day, and the line through the samples until the horizon with its band.",
        Axis("date", Unit.TEXT),
        Axis("servers kept fully busy", from_zero=True),
        tuple(series),
        thresholds=(
            Threshold(servers, f"all of the {count(servers, 'server')}"),
            *rule_thresholds(policy, servers),
        ),
    )


def _servers_plot(servers: Rows) -> Plot:
    def load(server: Row) -> float:
        return float(max(server[resource]["load"] for resource in _HUES))

    shown = sorted(servers, key=load, reverse=True)[:SERVERS_DRAWN]
    names = values(shown, "name")
    return Plot(
        "servers",
        "Load of the servers now, the most loaded first",
        "Where the line through a server's samples stands today.",
        Axis("server", Unit.TEXT),
        Axis("usage (%)", Unit.SHARE, from_zero=True),
        tuple(
            Series(resource, names, values(values(shown, resource), "load"), Shape.BARS, hue=hue)
            for resource, hue in _HUES.items()
        ),
        thresholds=(Threshold(0.9, "90%"),),
    )


def _servers_table(servers: Rows) -> Table:
    titles = {"load": "now", "full": "full", "full_early": "earliest", "full_late": "latest"}
    data = {"server": pa.array(values(servers, "name"), pa.string())}
    columns = [Column.text("server")]
    for resource in _HUES:
        for part, title in titles.items():
            name, is_load = f"{resource}_{part}", part == "load"
            kind = pa.float64() if is_load else pa.string()
            data[name] = pa.array(values(values(servers, resource), part), kind)
            column = Column.share if is_load else Column.text
            columns.append(column(name, f"{resource}: {title}"))
    note = "A dash: not within ten years, or not known: of that server there are too few samples."
    return Table("servers", "When each server runs out", pa.table(data), tuple(columns), note)


def _keys_section(hot_keys: Rows, column: str, title: str) -> Section:
    rows = [dict(key) for key in hot_keys]
    columns = (
        Column.text("subject"),
        Column.text("type"),
        Column.number(column, title),
        Column.share("share"),
    )
    names = tuple(f"{row['subject']} / {row['type']}" for row in rows)
    heights = tuple(float(row[column]) for row in rows)
    plot = Plot(
        "hot-keys",
        "Hottest keys",
        "A key that is more than one server can bear is spread over several members.",
        Axis("key", Unit.TEXT),
        Axis(title, from_zero=True),
        (Series(title, names, heights, Shape.BARS),),
    )
    table = Table("hot_keys", "Hottest keys", pa.Table.from_pylist(rows), columns)
    return Section("Keys", plots=(plot,), tables=(table,))


def recording_report(found: Row) -> Report:
    """What the load of a recording asks of servers. A recording tells of no growth."""
    read = found["recording"]
    figures = [
        KeyFigure("devices", "devices a day", round(found["devices"])),
        KeyFigure("peak_over_mean", "busiest hour over the mean", found["peak_over_mean"]),
        KeyFigure("eas_per_s_mean", "EAs a second, mean", found["eas_per_s_mean"]),
    ]
    if found["servers_needed"] is not None:
        figures = [
            KeyFigure("servers_needed", "servers needed", found["servers_needed"]),
            *figures,
            KeyFigure("processing", "processing, in servers", found["processing_servers"]),
            KeyFigure("memory", "memory, in servers", found["memory_servers"]),
            KeyFigure("eas_a_day", "EAs a day", round(found["eas_a_day"])),
        ]
    rule = f"enough servers for below {found['size_below']:.0%} in the busiest hour"
    empty = f"{read['hours_span'] - read['hours']:,} of {read['hours_span']:,}"
    return Report(
        "recording",
        f"Load of a recording, {read['first']} to {read['last']}",
        found["answer"],
        f"{before(found['cautions'])}From {read['rows']:,} rows on {count(read['days'], 'day')}; "
        f"{read['bad_rows']:,} rows without a time or a name. {scaling_said(found)}",
        tuple(figures),
        (_keys_section(found["hot_keys"], "eas", "EAs"),) if found["hot_keys"] else (),
        (
            Assumption("cost", str(found["cost"])),
            Assumption("lifetime", f"{found['lifetime_days']} days", "of an EA, as in section 4.2"),
            Assumption("rule", rule),
            Assumption(
                "hours without a row", empty, "taken as not recorded: means are over the others"
            ),
            Assumption("devices", f"{read['devices_day']:,} a day", "the most seen on one day"),
        ),
    )
