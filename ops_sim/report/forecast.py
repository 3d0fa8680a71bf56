"""The report of `utuple plan forecast`: what to order by which date, from what was measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from ops_sim.forecast.sizing import scaling_said
from ops_sim.operation.policy import Policy
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
from ops_sim.report.words import count

Found = Mapping[str, Any]
"""As `ops_sim/forecast/forecast.py` gives it."""
_HUES = {"memory": 0, "processing": 1}
SERVERS_DRAWN = 40
"""As bars; the table has all."""


def forecast_report(found: Found, history: Sequence[Found], policy: Policy) -> Report:
    """`history` is of `telemetry.daily_cluster`."""
    read = found["telemetry"]
    size_below, buy_above = policy.size_below, policy.buy_above
    sections = [Section("Demand", plots=(_demand_plot(found, history, size_below, buy_above),))]
    if found["servers"]:
        sections.append(
            Section("Servers", plots=(_servers_plot(found),), tables=(_servers_table(found),))
        )
    if found["hot_keys"]:
        sections.append(_keys_section(found, "arrival_per_s", "EAs a second"))
    return Report(
        "forecast",
        f"Forecast from measurements, {read['first']} to {read['last']}",
        found["answer"],
        f"From {read['rows']:,} rows of {count(read['files'], 'file')}: {read['repeated_rows']:,} repeated, "
        f"{read['late_rows']:,} late, {count(read['broken'], 'broken file')}.",
        _figures(found),
        tuple(sections),
        (
            Assumption(
                "growth", "a straight line through the samples", "bands are its uncertainty"
            ),
            Assumption("rule", f"above {buy_above:.0%} predicted, buy for below {size_below:.0%}"),
            Assumption("horizon", f"{found['horizon_days']} days"),
            Assumption("lead time", f"{found['lead_days']} days", "from order to installation"),
            *(Assumption("left out", broken, "cannot be read") for broken in read["broken_files"]),
        ),
    )


def _figures(found: Found) -> tuple[KeyFigure, ...]:
    figures = [KeyFigure("servers_now", "servers now", found["servers_now"])]
    orders = found["order"] or {}
    for edge, title in (("likely", "likely"), ("early", "to be safe")):
        if (order := orders.get(edge)) is not None:
            figures += [
                KeyFigure(f"order_{edge}", f"order, {title}", order["servers"]),
                KeyFigure(f"by_{edge}", f"order by, {title}", order["by"], Unit.TEXT),
            ]
    for resource, demand in found["demand"].items():
        now, ahead = round(demand["servers"], 2), f"in {found['horizon_days']} days"
        if demand["can_tell"]:
            band = f"{demand['ahead_low']:.2f} to {demand['ahead_high']:.2f}"
            title = f"{resource} {ahead}, in servers"
            figures.append(
                KeyFigure(f"{resource}_ahead", title, round(demand["ahead"], 2), note=band)
            )
        else:
            title = f"{resource} now, in servers"
            figures.append(KeyFigure(f"{resource}_now", title, now, note=f"{ahead}: not known"))
    return tuple(figures)


def _demand_plot(
    found: Found, history: Sequence[Found], size_below: float, buy_above: float
) -> Plot:
    now = date.fromisoformat(found["telemetry"]["last"][:10])
    ends = (now.isoformat(), (now + timedelta(days=found["horizon_days"])).isoformat())
    past = tuple(row["day"] for row in history)
    series = []
    for resource, demand in found["demand"].items():
        if any(row[resource] is not None for row in history):
            carried = tuple(row[resource] for row in history)
            shape = Shape.LINE if len(past) > 1 else Shape.MARKERS
            series.append(
                Series(f"{resource}, measured", past, carried, shape, hue=_HUES[resource])
            )
        if not demand["can_tell"]:
            continue
        hue, start = _HUES[resource], demand["servers"]
        low, high = (start, demand["ahead_low"]), (start, demand["ahead_high"])
        series += [
            Series(f"{resource}, band", ends, high, Shape.BAND, low, hue=hue),
            Series(f"{resource}, forecast", ends, (start, demand["ahead"]), hue=hue, dashed=True),
        ]
    order = (found["order"] or {}).get("likely")
    if order is not None and order["by"][:10] <= ends[1]:
        series.append(
            Series(
                *("order", (order["by"][:10],), (buy_above * found["servers_now"],), Shape.STARS),
                labels=(f"+{order['servers']}",),
                hue=RECOMMENDED_HUE,
            )
        )
    servers = found["servers_now"]
    return Plot(
        "demand",
        "Demand of the whole cluster, in servers",
        "What was measured each day, and the line through the samples until the horizon with its band.",
        Axis("date", Unit.TEXT),
        Axis("servers kept fully busy", from_zero=True),
        tuple(series),
        thresholds=(
            Threshold(servers, f"all of the {count(servers, 'server')}"),
            Threshold(buy_above * servers, f"buy above {buy_above:.0%}"),
            Threshold(size_below * servers, f"size below {size_below:.0%}", hue=5),
        ),
    )


def _servers_plot(found: Found) -> Plot:
    def load(server: Found) -> float:
        return float(max(server[resource]["load"] for resource in _HUES))

    shown = sorted(found["servers"], key=load, reverse=True)[:SERVERS_DRAWN]
    names = tuple(server["name"] for server in shown)
    return Plot(
        "servers",
        "Load of the servers now, the most loaded first",
        "Where the line through a server's samples stands today.",
        Axis("server", Unit.TEXT),
        Axis("usage (%)", Unit.SHARE, from_zero=True),
        tuple(
            Series(
                *(resource, names, tuple(server[resource]["load"] for server in shown), Shape.BARS),
                hue=hue,
            )
            for resource, hue in _HUES.items()
        ),
        thresholds=(Threshold(0.9, "90%"),),
    )


def _servers_table(found: Found) -> Table:
    parts = {"load": Unit.SHARE, "full": Unit.TEXT, "full_early": Unit.TEXT, "full_late": Unit.TEXT}
    titles = {"load": "now", "full": "full", "full_early": "earliest", "full_late": "latest"}
    names = [(resource, part) for resource in _HUES for part in parts]
    data = {"server": pa.array([server["name"] for server in found["servers"]], pa.string())}
    for resource, part in names:
        values = [server[resource][part] for server in found["servers"]]
        data[f"{resource}_{part}"] = pa.array(
            values, pa.float64() if part == "load" else pa.string()
        )
    columns = (Column(f"{r}_{p}", f"{r}: {titles[p]}", parts[p]) for r, p in names)
    return Table(
        *("servers", "When each server runs out", pa.table(data)),
        columns=(Column("server", "server", Unit.TEXT), *columns),
        note="A dash: not within ten years, or not known: of that server there are too few samples.",
    )


def _keys_section(found: Found, column: str, title: str) -> Section:
    rows = [dict(key) for key in found["hot_keys"]]
    table = Table(
        *("hot_keys", "Hottest keys", pa.Table.from_pylist(rows)),
        columns=(
            Column("subject", "subject", Unit.TEXT),
            Column("type", "type", Unit.TEXT),
            Column(column, title),
            Column("share", "share", Unit.SHARE),
        ),
    )
    names = tuple(f"{row['subject']} / {row['type']}" for row in rows)
    plot = Plot(
        "hot-keys",
        "Hottest keys",
        "A key that is more than one server can bear is spread over several members.",
        Axis("key", Unit.TEXT),
        Axis(title, from_zero=True),
        (Series(title, names, tuple(float(row[column]) for row in rows), Shape.BARS),),
    )
    return Section("Keys", plots=(plot,), tables=(table,))


def recording_report(found: Found) -> Report:
    """Of a recording there is no growth: what this load asks of servers."""
    read = found["recording"]
    sections = (_keys_section(found, "eas", "EAs"),) if found["hot_keys"] else ()
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
    return Report(
        "recording",
        f"Load of a recording, {read['first']} to {read['last']}",
        found["answer"],
        f"{''.join(f'{caution} ' for caution in found['cautions'])}From {read['rows']:,} rows on {count(read['days'], 'day')}; {read['bad_rows']:,} rows without a time or a name. "
        f"{scaling_said(found)}",
        tuple(figures),
        sections,
        (
            Assumption("cost", str(found["cost"])),
            Assumption("lifetime", f"{found['lifetime_days']} days", "of an EA, as in section 4.2"),
            Assumption(
                "rule", f"enough servers for below {found['size_below']:.0%} in the busiest hour"
            ),
            Assumption(
                "hours without a row",
                f"{read['hours_span'] - read['hours']:,} of {read['hours_span']:,}",
                "taken as not recorded: means are over the others",
            ),
            Assumption("devices", f"{read['devices_day']:,} a day", "the most seen on one day"),
        ),
    )
