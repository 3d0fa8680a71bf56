"""`utuple elastic status`: the servers and machines there are, and what elasticity does about them."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED
from utuple.cli.plan.printing import print_cautions, print_table

if TYPE_CHECKING:
    from utuple.admin.programs import Elastic, Monitor

NOT_ELASTIC = (
    "servers do not come and go by themselves here: start with `utuple up --elastic elastic.toml`"
)
_MICROSECONDS = 1e6


def status(at: At = AT_DEFAULT, json: Json = False) -> None:
    """Servers and machines, what is wanted and why, what was done lately. Exit code 1 where nothing is elastic."""
    from utuple.admin.snapshot import snapshot_of

    snapshot = asyncio.run(snapshot_of(addresses(at)))
    found = [monitor for monitor in snapshot.monitors if monitor.elastic is not None]
    found.sort(key=lambda monitor: monitor.elastic is None or not monitor.elastic.acts)
    if json:
        print_json_block({monitor.name: monitor.elastic for monitor in found})
    elif found:
        _show(found)
    else:
        typer.echo(f"utuple: {NOT_ELASTIC}", err=True)
    if not found:
        raise typer.Exit(FAILED)


def _show(monitors: list[Monitor]) -> None:
    for monitor in monitors:
        if monitor.elastic is None:
            continue
        if monitor.elastic.acts:
            _show_acting(monitor.name, monitor.elastic)
        else:
            typer.echo(f"{monitor.name} watches: another controller acts")


def _show_acting(name: str, elastic: Elastic) -> None:
    typer.echo(f"{name} acts: {elastic.servers} servers, {elastic.wanted} wanted: {elastic.why}")
    if elastic.waits:
        typer.echo(f"Before the next decision it waits: {elastic.waits}")
    if elastic.waiting:
        typer.echo(f"Without a place: {', '.join(elastic.waiting)}")
    print_cautions([elastic.warning] if elastic.warning else [])
    print_table(
        "Machines",
        ("name", "vCPU", "MB", "state", "servers"),
        (
            (
                machine.name,
                str(machine.cpu),
                f"{machine.memory_mb:,.0f}",
                "ready" if machine.ready else "coming",
                ", ".join(machine.servers) or "none",
            )
            for machine in elastic.machines
        ),
    )
    for done in elastic.done:
        at = datetime.fromtimestamp(done.at_us / _MICROSECONDS).astimezone()
        failed = f" NOT DONE, {done.failed}" if done.failed else ""
        typer.echo(f"{at:%H:%M:%S} {done.what}{failed}: {done.why}")
