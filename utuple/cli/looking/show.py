"""Snapshots as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from utuple.admin.certificates import Certificate
from utuple.admin.programs import SERVING, Flag, Manager, Sca, Server
from utuple.admin.readers import Reader
from utuple.admin.snapshot import NO_MONITOR, Snapshot, members_said, section_said
from utuple.cli.looking.show_moves import table_of_monitors, table_of_moves
from utuple.cluster.line import Line
from utuple.model.utuple import datetime_of
from utuple.runtime.clock import now_us

_GOOD, _BAD = "green", "red"
FLAGS = "flags, one a line: 1 accumulatable, 0 not, ? suspended; h where it is home"
"""The legend of `_flags`; it fits a terminal of 80 columns."""
_NEAR_US = 180 * 86_400 * 1_000_000
"""Within half a year a time needs no year."""
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def table_of_lines(lines: Sequence[Line]) -> Table:
    """As figures 3 to 5 draw it: a section, and its servers with their flags, home first."""
    table = Table(title="Assignment table", title_justify="left", box=SIMPLE_HEAD)
    table.caption = "1: accumulatable, 0: not, ?: suspended; home first"
    for column in ("hash space", "epoch", "servers"):
        table.add_column(column)
    for line in lines:
        table.add_row(section_said(line), str(line.epoch), members_said(line))
    return table


def tables_of_servers(servers: Sequence[Server]) -> tuple[Table, Table, Table]:
    """How they do, what they bear and what they hold: tables that fit a terminal of 80 columns."""
    return _how_they_do(servers), _what_they_bear(servers), _what_they_hold(servers)


def _how_they_do(servers: Sequence[Server]) -> Table:
    table = Table(title="uTupleServers", title_justify="left", box=SIMPLE_HEAD)
    table.caption, table.caption_justify = FLAGS, "left"
    for column in ("name", "address", "pid", "state", "flags"):
        table.add_column(column)
    for column in ("busy", "queued", "in/s"):
        table.add_column(column, justify="right")
    for server in servers:
        load = server.load
        table.add_row(
            server.name,
            server.address or "not known",
            str(server.pid or "-"),
            _state(server.state, server.leaving),
            _flags(server.flags, server.name),
            f"{load.busy:.0%}",
            f"{load.queued:,.0f}",
            f"{load.arrival_per_s:,.0f}",
        )
    return table


def _what_they_bear(servers: Sequence[Server]) -> Table:
    table = Table(title="What they bear", title_justify="left", box=SIMPLE_HEAD)
    table.caption = (
        "help relieves a server of EAs, CFs and their deliveries, not of EFs and searches"
    )
    table.caption_justify = "left"
    table.add_column("name")
    for column in ("busy", "EAs, CFs", "EFs, searches", "deliveries", "memory", "of"):
        table.add_column(column, justify="right")
    for server in servers:
        load, capacity_bytes = server.load, server.capacity_bytes
        shares = (load.busy, load.by_cause.events, load.by_cause.searches, load.by_cause.deliveries)
        memory = server.size_bytes / capacity_bytes if capacity_bytes else 0.0
        said = [f"{share:.0%}" for share in (*shares, memory)]
        table.add_row(server.name, *said, bytes_shown(capacity_bytes))
    return table


def _what_they_hold(servers: Sequence[Server]) -> Table:
    table = Table(title="What they hold", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("name")
    for column in ("EA", "EF", "CF", "CA", "size", "registered", "delivered"):
        table.add_column(column, justify="right")
    for server in servers:
        table.add_row(
            server.name,
            f"{server.events:,}",
            f"{server.event_templates:,}",
            f"{server.devices:,}",
            f"{server.command_templates:,}",
            bytes_shown(server.size_bytes),
            f"{server.registered:,}",
            f"{server.delivered:,}",
        )
    return table


def _state(state: str, leaving: bool = False) -> Text:
    if state == SERVING:
        return Text("leaving", style="yellow") if leaving else Text(state, style=_GOOD)
    return Text(state, style=_BAD)


def _flags(flags: Sequence[Flag], name: str) -> str:
    """One sign a line: h1 where it is home and on, 0 where it is off."""
    signs = (
        ("h" if flag.home == name else "")
        + ("?" if flag.suspended else str(int(flag.accumulatable)))
        for flag in flags
    )
    return " ".join(signs) or "-"


def table_of_readers(servers: Sequence[Server]) -> Table | None:
    rows = [(reader, server.name) for server in servers for reader in server.readers]
    if not rows:
        return None
    table = Table(title="Readers", title_justify="left", box=SIMPLE_HEAD)
    for column in ("reader", "at server", "reads"):
        table.add_column(column, overflow="fold")
    for column in ("connected", "behind", "forgotten"):
        table.add_column(column, no_wrap=True)
    rows.sort(key=lambda row: (row[0].reader, row[1]))
    for name, group in groupby(rows, key=lambda row: row[0].reader):
        own = list(group)
        for reader, server in own:
            connected = "yes" if reader.connected else f"away {_short(reader.seen_us)}"
            reads = ", ".join(reader.families)
            behind, forgotten = _behind([reader]), _short(reader.expires_us)
            table.add_row(name, server, reads, connected, behind, forgotten)
        if name and len(own) > 1:
            table.add_row(name, "all", "", "", _behind([reader for reader, _ in own]), "")
    return table


_TERMS = ("on/off s", "λ/μ per s", "ζ", "dropped", "parked", "programs")


def table_of_terms(servers: Sequence[Server]) -> Table | None:
    """What drop policies have measured and done, and what waits to be settled; None if nobody has such terms."""
    rows = [(one, server.name) for server in servers for one in server.readers if one.terms]
    if not rows:
        return None
    table = Table(title="Terms of readers", title_justify="left", box=SIMPLE_HEAD)
    for column in ("reader", "at server"):
        table.add_column(column, overflow="fold")
    for column in _TERMS:
        table.add_column(column, no_wrap=True)
    for reader, server in sorted(rows, key=lambda row: (row[0].reader, row[1])):
        table.add_row(reader.reader, server, *_said_by_terms(reader))
    return table


def _said_by_terms(reader: Reader) -> list[str]:
    return [
        f"{reader.on_s:.3g}/{reader.off_s:.3g}" if reader.on_s else "",
        f"{reader.arrival_per_s:.3g}/{reader.service_per_s:.3g}" if reader.arrival_per_s else "",
        "" if reader.zeta is None else f"{reader.zeta:.3f}",
        f"{reader.dropped:,}",
        f"{reader.parked:,}",
        str(reader.seats) if reader.seats else "",
    ]


def _behind(readers: Sequence[Reader]) -> str:
    """Of one reader at these servers together."""
    more = "+" if any(reader.lag_is_more for reader in readers) else ""
    return f"{sum(reader.lag for reader in readers):,}{more}"


def _short(time_us: int | None) -> str:
    """In local time, as `ls` does: near ones to the minute, others by their day."""
    if time_us is None:
        return "-"
    is_near = abs(time_us - now_us()) < _NEAR_US
    return f"{datetime_of(time_us).astimezone():{'%m-%d %H:%M' if is_near else '%Y-%m-%d'}}"


def _table_of_managers(managers: Sequence[Manager], scas: Sequence[Sca]) -> Table:
    table = Table(
        title="Assignment managers and sCA servers", title_justify="left", box=SIMPLE_HEAD
    )
    for column in ("name", "address", "state", "holds"):
        table.add_column(column)
    for manager in managers:
        holds = f"{manager.kept} lines"
        table.add_row(manager.name, manager.address, _state(manager.state), holds)
    for sca in scas:
        table.add_row(sca.name, sca.address, _state(sca.state), _devices_of(sca))
    return table


def _devices_of(sca: Sca) -> str:
    waits = f", waits for {', '.join(sca.waiting_for)}" if sca.waiting_for else ""
    return f"{sca.devices:,} devices, {sca.connected:,} connected{waits}"


def table_of_scas(scas: Sequence[Sca]) -> Table:
    table = Table(title="sCA servers", title_justify="left", box=SIMPLE_HEAD)
    for column in ("name", "address", "state"):
        table.add_column(column)
    for column in ("devices", "connected", "commands", "handed"):
        table.add_column(column, justify="right")
    for sca in scas:
        table.add_row(
            sca.name,
            sca.address,
            _state(sca.state),
            f"{sca.devices:,}",
            f"{sca.connected:,}",
            f"{sca.commands:,}",
            f"{sca.handed_over:,}",
        )
    return table


def show_status(snapshot: Snapshot, asked: Sequence[tuple[str, int, str]] = ()) -> None:
    console = Console()
    console.print(*tables_of_servers(snapshot.servers), sep="")
    readers = table_of_readers(snapshot.servers)
    if readers is not None:
        console.print(readers)
    if asked:
        console.print(_table_of_asked(asked))
    console.print(_table_of_managers(snapshot.managers, snapshot.scas))
    monitors = table_of_monitors(snapshot.monitors)
    if monitors is not None:
        console.print(monitors)
    if snapshot.under_way:
        console.print(table_of_moves(snapshot.under_way, "Moves under way"))
    if snapshot.certificates:
        console.print(_table_of_certificates(snapshot.certificates))
    for said in snapshot.advice:
        console.print(f"Advice: {said}", style="yellow")
    for said in snapshot.missing:
        style = "yellow" if said == NO_MONITOR else _BAD
        console.print(said[0].upper() + said[1:] + ".", style=style, soft_wrap=True)
    if not snapshot.whole:
        console.print(_why_not_whole(snapshot), style=_BAD, soft_wrap=True)


def _table_of_asked(asked: Sequence[tuple[str, int, str]]) -> Table:
    table = Table(title="What EFs ask", title_justify="left", box=SIMPLE_HEAD)
    table.caption = "the share of a section's EFs that constrain each attribute, by a sample"
    table.caption_justify = "left"
    table.add_column("section from")
    table.add_column("EFs", justify="right")
    table.add_column("asked", overflow="fold")
    for start, efs, said in asked:
        table.add_row(start, f"{efs:,}", said)
    return table


def _table_of_certificates(certificates: Sequence[Certificate]) -> Table:
    table = Table(title="Certificates", title_justify="left", box=SIMPLE_HEAD)
    for column in ("of", "until", "grants in force"):
        table.add_column(column)
    for one in certificates:
        name = f"{one.name} (you)" if one.is_own else one.name
        table.add_row(name, one.until, "" if one.is_own else str(one.grants_number))
    return table


def _why_not_whole(snapshot: Snapshot) -> str:
    if snapshot.lines:
        return "The assignment table is not whole: some keys have no server yet."
    names = " ".join(server.name for server in snapshot.servers) or "NAME…"
    return (
        f"The cluster has no table yet. Once all its servers answer, found it: utuple found {names}"
    )


def bytes_shown(size: float) -> str:
    for unit in _BYTE_UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_BYTE_UNITS[-1]}"
