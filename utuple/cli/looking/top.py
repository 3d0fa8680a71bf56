"""`utuple top`: the console's first page in a terminal, live."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, addresses
from utuple.errors import UTupleError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from utuple.admin.snapshot import Snapshot

_WIDTH = 64
_COLOURS = ("blue", "cyan", "yellow", "magenta", "green", "red", "bright_blue", "bright_cyan")


def top(
    at: At = AT_DEFAULT,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
) -> None:
    """The cluster, live: the hash space, servers with their load, busiest families, moves. Ctrl-C ends it."""
    from rich.console import Console
    from rich.live import Live

    asked = addresses(at)
    if once:
        Console().print(asyncio.run(_look(asked)))
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


def page(snapshot: Snapshot) -> RenderableType:
    """What is shown. Pure."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from utuple.admin.moves import sentence

    colours = {s.name: _COLOURS[n % len(_COLOURS)] for n, s in enumerate(snapshot.servers)}
    bar = Text("space  ")
    for line in snapshot.lines:
        share = (line.section.end - line.section.start) / 2**64
        on = len(line.accumulatable)
        bar.append(
            ("█" if on < 2 else "▓") * max(1, round(share * _WIDTH)), colours.get(line.home, "")
        )
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
    for server in snapshot.servers:
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
        Text(f"families  {families or 'nothing comes in'}"),
        Text("moves     " + ("\n          ".join(moves) or "none yet")),
        *(Text(sentence_, "yellow") for sentence_ in said),
    )
