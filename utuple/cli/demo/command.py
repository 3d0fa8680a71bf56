"""`utuple demo`, and what it shows."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from utuple.cli.options import print_json

if TYPE_CHECKING:
    from utuple.cli.demo.tally import Outcome


class Shown:
    """Bars and words on standard error; standard output is for the result."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began_s = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._emitted = self._bars.add_task("emitted", total=None)
        self._delivered = self._bars.add_task("delivered", total=None)
        self._last = ""

    def begin(self, events: int, deliveries: int) -> None:
        self._bars.update(self._emitted, total=events)
        self._bars.update(self._delivered, total=deliveries)
        self._bars.start()

    def end(self) -> None:
        self._bars.stop()

    def say(self, said: str) -> None:
        if said and said != self._last:
            self._last = said
            self._bars.console.print(f"{time.monotonic() - self._began_s:5.1f} s  {said}")

    def emitted(self, count: int) -> None:
        self._bars.advance(self._emitted, count)

    def delivered(self, count: int) -> None:
        self._bars.advance(self._delivered, count)


def run(json: bool) -> int:
    """The exit code."""
    from utuple.cli.demo.performance import Performance
    from utuple.cli.demo.stage import stage

    began_s = time.monotonic()
    # What the SDK logs of the killed server is part of the play.
    shown = Shown(Console(stderr=True))
    with stage(lambda said: shown.say(said.split(":")[0])) as on:
        performance = Performance(on.addresses, on, shown)
        shown.say(f"a cluster of {on.layout.servers} servers is ready")
        shown.begin(performance.events, performance.deliveries)
        try:
            outcome = asyncio.run(performance.run())
        finally:
            shown.end()
    outcome.seconds = time.monotonic() - began_s
    if json:
        print_json(outcome.summary())
    else:
        _show(outcome)
    return 0 if outcome.is_good else 1


def _show(outcome: Outcome) -> None:
    console = Console()
    table = Table(title="What happened", title_justify="left")
    table.add_column("reader")
    for column in ("had to come", "came", "of them stored", "missed", "repeated"):
        table.add_column(column, justify="right")
    devices = [name for name in outcome.accounts if name.startswith("room-")]
    for name, account in outcome.accounts.items():
        if name not in devices:
            counts = [len(account.expected), account.delivered, account.stored]
            counts += [account.missed, account.repeated]
            table.add_row(name, *(f"{count:,}" for count in counts))
    commanded = [outcome.accounts[name] for name in devices]
    table.add_row(
        f"{len(devices)} devices",
        f"{sum(len(account.expected) for account in commanded):,}",
        f"{sum(account.delivered for account in commanded):,}",
        "0",
        f"{sum(account.missed for account in commanded):,}",
        f"{sum(account.repeated for account in commanded):,}",
    )
    console.print(table)
    summary = outcome.summary()
    console.print(
        f"emitted {summary['emitted']:,}, matched {summary['expected']:,}, delivered "
        f"{summary['delivered']:,}, missed {summary['missed']}, repeated {summary['repeated']}, "
        f"commands {summary['commands']}; {outcome.killed} was killed and "
        f"{'came back with everything' if outcome.recovered else 'DID NOT come back'}; "
        f"{summary['seconds']} s"
    )
    if not outcome.is_good:
        typer.echo("This is a bug: please report it with the output above.", err=True)
