"""How the commands of `utuple plan` speak: tables, cautions and progress on the terminal, reports in a folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ops_sim.report.value import Report


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    first: Literal["left", "right"] = "left",
    green: Collection[int] = (),
    caption: str | None = None,
) -> None:
    """All columns but the first are justified to the right; `green` are the rows that stand out."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, caption=caption)
    for place, column in enumerate(columns):
        table.add_column(escape(column), justify="right" if place else first)
    for place, row in enumerate(rows):
        table.add_row(*map(escape, row), style="green" if place in green else None)
    Console().print(table)


def print_cautions(cautions: Iterable[str]) -> None:
    """What to know before using what is printed below."""
    from rich.console import Console

    for caution in cautions:
        Console().print(caution, style="yellow", markup=False, highlight=False)


@contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that is gone when it is left; where that is no terminal, lines: whoever reads them (the console does) sees how
    far it is. Call what it gives with how many are finished."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    if not sys.stderr.isatty():

        def tell(done: int) -> None:
            print(f"{done} of {total} {what}", file=sys.stderr, flush=True)

        tell(0)
        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{total:,} {what}", total=total)
        yield lambda done: bar.update(task, completed=done)


def write_report(report: Report, folder: Path) -> None:
    """Says where on stderr: stdout may be JSON."""
    from ops_sim.report.folder import write

    command = shlex.join(["utuple", *sys.argv[1:]])
    write(report, folder, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", command)
    print(f"The report is {folder / 'report.html'}", file=sys.stderr)
