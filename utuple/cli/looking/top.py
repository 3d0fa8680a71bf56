"""`utuple top`: the console's first page in a terminal, live."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, addresses
from utuple.errors import UTupleError
from utuple.model.key import HASH_SPACE

if TYPE_CHECKING:
    from rich.console import RenderableType

    from utuple.admin.programs import Server
    from utuple.admin.snapshot import Snapshot
    from utuple.cluster.line import Line

_WIDTH = 64
_SERVERS = 24
"""Shown; of more those that do not serve and the busiest."""
_COLOURS = ("blue", "cyan", "yellow", "magenta", "green", "red", "bright_blue", "bright_cyan")


def top(
    at: At = AT_DEFAULT,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
) -> None:
    """The cluster, live: the hash space, servers with their load, busiest families, moves. Ctrl-C ends it."""
    from rich.console import Console
    from rich.live import Live

    from utuple.admin.snapshot import snapshot_of

    asked = addresses(at)
    if once:
        Console().print(page(asyncio.run(snapshot_of(asked, brief=True))))
        return
    with Live(asyncio.run(_look(asked)), screen=True, auto_refresh=False) as live:
        asyncio.run(_show(asked, every, live.update))


async def _show(at: Sequence[str], every_s: float, update: object) -> None:
    assert callable(update)
    while True:
        update(await _look(at), refresh=True)
        await asyncio.sleep(every_s)


async def _look(at: Sequence[str]) -> RenderableType:
    from rich.text import Text

    from utuple.admin.snapshot import snapshot_of

    try:
        return page(await snapshot_of(at, brief=True))
    except UTupleError as error:
        return Text(str(error), style="red")


def _cells(lines: Sequence[Line]) -> Iterator[Line]:
    """Of each part of the space that is one character wide the line in its middle: ten thousand lines are as wide as ten. While
    the table is not whole, a part that nobody has is left out."""
    ordered = sorted(lines, key=lambda line: line.section.start)
    starts = [line.section.start for line in ordered]
    for cell in range(_WIDTH):
        middle = (2 * cell + 1) * HASH_SPACE // (2 * _WIDTH)
        line = ordered[bisect_right(starts, middle) - 1] if starts else None
        if line is not None and line.section.start <= middle < line.section.end:
            yield line


def _worth_seeing(servers: Sequence[Server]) -> list[Server]:
    """In their own order."""
    first = sorted(servers, key=lambda server: (server.serves, -server.load.busy))[:_SERVERS]
    names = {server.name for server in first}
    return [server for server in servers if server.name in names]


def page(snapshot: Snapshot) -> RenderableType:
    """What is shown. Pure."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from utuple.admin.moves import sentence

    colours = {s.name: _COLOURS[n % len(_COLOURS)] for n, s in enumerate(snapshot.servers)}
    bar = Text("space  ")
    for line in _cells(snapshot.lines):
        on = len(line.accumulatable)
        bar.append("█" if on < 2 else "▓", colours.get(line.home, ""))
    table = Table(box=SIMPLE_HEAD)
    for column in (
        "server",
        "state",
        "busy",
        "",
        "mem",
        "queue",
        "in/s",
        "events",
        "EFs",
        "lines",
    ):
        table.add_column(
            column, no_wrap=True, justify="left" if column in ("server", "state", "") else "right"
        )
    shown = _worth_seeing(snapshot.servers)
    for server in shown:
        load, capacity = server.load, server.capacity_bytes
        table.add_row(
            Text(server.name, colours[server.name]),
            Text(server.state, "green" if server.serves else "red"),
            f"{load.busy:.0%}",
            Text("▮" * round(10 * min(1, load.busy)), "red" if load.busy > 0.7 else "green"),
            f"{server.size_bytes / capacity:.1%}" if capacity else "-",
            f"{load.queued:,.0f}",
            f"{load.arrival_per_s:,.0f}",
            f"{server.events:,}",
            f"{server.event_templates:,}",
            str(len(server.flags)),
        )
    more = len(snapshot.servers) - len(shown)
    rates: dict[str, float] = {}
    for server in snapshot.servers:
        for family in server.families:
            name = f"{family.subject}/{family.type}"
            rates[name] = rates.get(name, 0.0) + family.arrival_per_s
    busiest = sorted(rates.items(), key=lambda of: -of[1])[:5]
    families = "   ".join(f"{name} {rate:,.0f}/s" for name, rate in busiest)
    moves = [f"{move.step:<10} {sentence(move)}" for move in snapshot.moves[:-6:-1]]
    well = Text("all well", "green") if snapshot.is_well else Text("not everything serves", "red")
    said = [*snapshot.missing, *snapshot.advice]
    return Group(
        Text.assemble("uTupleSpace  ", well, f"  {len(snapshot.lines)} sections"),
        bar,
        table,
        *([Text(f"{more} more: utuple server list")] if more else []),
        Text(f"families  {families or 'nothing comes in'}"),
        Text("moves     " + ("\n          ".join(moves) or "none yet")),
        *(Text(sentence_, "yellow") for sentence_ in said),
    )
