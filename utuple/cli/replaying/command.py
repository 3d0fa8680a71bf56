"""`utuple replay FILE` and `utuple map FILE`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json
from utuple.cli.outcome import FAILED

if TYPE_CHECKING:
    from utuple.cli.replaying.recording import Mapped

_SLICE_S = 0.05
"""Events that are due within this leave together."""
_SLICE_ROWS = 5_000
_SHOWN = 5

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A table: .csv or .csv.gz, with a row of names.")
]
Subject = Annotated[str, typer.Option("--subject", help="For a table without that column.")]
Type = Annotated[str, typer.Option("--type", help="For a table without that column.")]


def map_file(file: File, subject: Subject = "", type_: Type = "", json: Json = False) -> None:
    """Show what the rows of a table would become, without sending anything."""
    import orjson

    from utuple.cli.replaying.recording import events_of, heads_of, mapped
    from utuple.errors import InvalidInput

    how = mapped(heads_of(file), subject, type_)
    some: list[Any] = []
    for event in events_of(file, how):
        some.append(
            str(event)
            if isinstance(event, InvalidInput)
            else {**event, "time": event["time"].isoformat()}
        )
        if len(some) == _SHOWN:
            break
    if json:
        print_json({"columns": dict(how.columns), "data": how.data, "first": some})
        return
    for part, head in how.columns.items():
        typer.echo(f"{part:<8} ← {head}")
    typer.echo(f"data     ← {', '.join(how.data) or 'nothing'}")
    typer.echo("")
    for event in some:
        typer.echo(event if isinstance(event, str) else orjson.dumps(event))
    typer.echo(f"\nPlay it with: utuple replay {file} --speed 60", err=True)


def replay(
    file: File,
    speed: Annotated[
        float, typer.Option(min=0, help="So many times as fast as it was; 0: as fast as it can.")
    ] = 1.0,
    subject: Subject = "",
    type_: Type = "",
    now: Annotated[
        bool,
        typer.Option("--now", help="With the time of sending, instead of that of the recording."),
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many rows.")] = None,
    lifetime: Annotated[str, typer.Option(help="Of each event: seconds, or 15m, 1h, 7d.")] = "7d",
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Emit the rows of a recording, as they came then: any table of address, time, subject, type, lat, lon.

    Columns are found by the names people use, and what is left is the data: `utuple map FILE` shows it. Rows that
    cannot be events are counted and left out; then the exit code is 1.
    """
    from utuple.cli.replaying.recording import heads_of, mapped
    from utuple.cli.verbs.parsing import parse_duration_s

    how = mapped(heads_of(file), subject, type_)
    lifetime_s = parse_duration_s("--lifetime", lifetime)
    sent, refused = asyncio.run(_replay(addresses(at), file, how, speed, lifetime_s, now, limit))
    if json:
        print_json({"emitted": sent, "refused": refused})
    else:
        typer.echo(f"{sent} emitted, {refused} refused", err=True)
    if refused:
        raise typer.Exit(FAILED)


async def _replay(
    at: list[str],
    file: Path,
    how: Mapped,
    speed: float,
    lifetime_s: float,
    now: bool,
    limit: int | None,
) -> tuple[int, int]:
    from itertools import islice

    import utuple
    from utuple.cli.replaying.recording import events_of
    from utuple.runtime.clock import monotonic_s

    sent = refused = 0
    async with utuple.connect(*at) as space:
        began_s = monotonic_s()
        rows = islice(events_of(file, how), limit)
        for due_s, events, wrong in slices(rows, speed):
            for error in wrong[: max(0, _SHOWN - refused)]:
                typer.echo(f"refused: {error}", err=True)
            refused += len(wrong)
            await asyncio.sleep(max(0.0, began_s + due_s - monotonic_s()))
            for event in events:
                event["lifetime_s"] = lifetime_s
                if now:
                    del event["time"]
            try:
                sent += await space.emit_many(events)
            except utuple.SomeRefused as error:
                sent += error.registered
                refused += len(error.refused)
                typer.echo(str(error), err=True)
    return sent, refused


def slices(
    rows: Iterator[Any], speed: float
) -> Iterator[tuple[float, list[dict[str, Any]], list[Exception]]]:
    """Rows that are due together: when, from the first one on; the events; those that cannot be. Pure. A row that goes back
    in time is due at once."""
    first = None
    due_s, events, wrong = 0.0, list[dict[str, Any]](), list[Exception]()
    for row in rows:
        if isinstance(row, Exception):
            wrong.append(row)
            continue
        first = first or row["time"]
        own_s = max(0.0, (row["time"] - first).total_seconds() / speed) if speed else 0.0
        if (own_s > due_s + _SLICE_S or len(events) >= _SLICE_ROWS) and (events or wrong):
            yield due_s, events, wrong
            events, wrong = [], []
        if not events:
            due_s = max(due_s, own_s)
        events.append(row)
    if events or wrong:
        yield due_s, events, wrong
