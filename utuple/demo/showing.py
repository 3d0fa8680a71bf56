"""What the demo shows: how it goes on standard error, what came of it on standard output."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from utuple.demo.tally import Account, HotKey, Outcome


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

    def progress(self, said: str) -> None:
        """Of a cluster that is started: what it is at, without the details."""
        self.say(said.partition(":")[0])

    def say(self, said: str) -> None:
        if said and said != self._last:
            self._last = said
            passed_s = time.monotonic() - self._began_s
            self._bars.console.print(f"{passed_s:5.1f} s  {said}", soft_wrap=True)

    def table(self, rows: Sequence[str]) -> None:
        self._bars.console.print(*rows, sep="\n", highlight=False, soft_wrap=True)

    def emitted(self, count: int) -> None:
        self._bars.advance(self._emitted, count)

    def delivered(self, count: int) -> None:
        self._bars.advance(self._delivered, count)


def show(outcome: Outcome) -> None:
    console = Console()
    console.print(_table_of_readers(outcome))
    summary, hot = outcome.summary(), outcome.hot_key
    if hot.spread_per_s:
        console.print(_table_of_members(hot))
    console.print(
        f"emitted {summary['emitted']:,}, matched {summary['expected']:,}, delivered "
        f"{summary['delivered']:,}, missed {summary['missed']}, repeated {summary['repeated']}, "
        f"commands {summary['commands']}; {outcome.killed} was killed and "
        f"{'came back with everything' if outcome.recovered else 'DID NOT come back'}; "
        f"{_said_of(hot)}; {summary['seconds']} s"
    )
    if not outcome.is_good:
        said = "This is a bug: please report it with the output above."
        Console(stderr=True).print(said, soft_wrap=True)


def _table_of_readers(outcome: Outcome) -> Table:
    table = Table(title="What happened", title_justify="left")
    table.add_column("reader")
    for column in ("had to come", "came", "of them stored", "missed", "repeated"):
        table.add_column(column, justify="right")
    devices = [name for name in outcome.accounts if name.startswith("room-")]
    for name, account in outcome.accounts.items():
        if name not in devices:
            _add(table, name, [account])
    _add(table, f"{len(devices)} devices", [outcome.accounts[name] for name in devices])
    for name, account in outcome.hot_key.accounts.items():
        _add(table, f"{name}, hot", [account])
    return table


def _add(table: Table, name: str, accounts: Sequence[Account]) -> None:
    counts = [
        sum(counted)
        for counted in zip(
            *((len(a.expected), a.delivered, a.stored, a.missed, a.repeated) for a in accounts),
            strict=True,
        )
    ]
    table.add_row(name, *(f"{count:,}" for count in counts))


def _table_of_members(hot: HotKey) -> Table:
    table = Table(title=f"The hot key, {hot.key}", title_justify="left")
    table.add_column("server")
    for column in ("events/s", "share", "busy"):
        table.add_column(column, justify="right")
    for name, rate in hot.spread_per_s.items():
        table.add_row(
            name, f"{rate:.0f}", f"{hot.share.get(name, 0.0):.0%}", f"{hot.busy[name]:.0%}"
        )
    return table


def _said_of(hot: HotKey) -> str:
    if hot.helped_s is None:
        return "the hot key GOT NO HELP"
    said = f"the hot key had help after {hot.helped_s:.0f} s"
    if hot.released_s is None:
        return f"{said} and its helpers WERE NOT RELEASED"
    return (
        f"{said}; when its load was gone, its helpers were released within {hot.released_s:.0f} s"
    )
