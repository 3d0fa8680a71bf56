"""`utuple emit`: events from standard input, a JSON object a line, or one from options."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json
from utuple.cli.outcome import FAILED

if TYPE_CHECKING:
    from utuple.cli.verbs.json_lines import Event
    from utuple.client.space import Space

_COMPLAINTS_SHOWN = 20
"""On standard error; the rest is counted."""


@dataclass
class Tally:
    read: int = 0
    emitted: int = 0
    refused: int = 0
    complaints: list[dict[str, object]] = field(default_factory=list)

    def refuse(self, line: int, error: Any) -> None:
        self.refused += 1
        if len(self.complaints) >= _COMPLAINTS_SHOWN:
            return
        said = {"line": line, "field": getattr(error, "field", ""), "rule": _rule_of(error)}
        self.complaints.append(said)
        typer.echo(f"line {line}: {error}", err=True)


def _rule_of(error: Any) -> str:
    """Of what a server refused, such as what was not granted, the whole sentence."""
    return str(getattr(error, "rule", error))


def emit(
    subject: Annotated[str | None, typer.Option(help="Kind of device, such as truck.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Kind of data, such as load.")] = None,
    address: Annotated[str | None, typer.Option(help="The device's id.")] = None,
    data: Annotated[
        str | None, typer.Option(metavar="JSON", help="""Its data, such as '{"kg": 1200}'.""")
    ] = None,
    position: Annotated[str | None, typer.Option(metavar="LAT,LON")] = None,
    time: Annotated[
        str | None, typer.Option(help="ISO 8601, or how long ago (15m).", show_default="now")
    ] = None,
    lifetime: Annotated[
        str | None, typer.Option(help="Seconds, or 15m, 1h, 7d.", show_default="7d")
    ] = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Register events: JSON lines on standard input, or with --data one event from the options.

    Options other than --data are defaults for lines that do not say. Good lines are registered even
    when others are refused; then the exit code is 1.
    """
    said = _said(subject, type_, address, position, time, lifetime)
    tally = Tally()
    if data is not None:
        from utuple.cli.verbs.json_lines import checked_event, data_of_text

        tally.read = 1
        event = checked_event({**said, "data": data_of_text(data)})
        asyncio.run(_emit_one(addresses(at), event, tally))
    else:
        asyncio.run(_emit_lines(addresses(at), said, tally))
    if json:
        print_json(
            {
                "read": tally.read,
                "emitted": tally.emitted,
                "refused": tally.refused,
                "complaints": tally.complaints,
            }
        )
    else:
        typer.echo(f"{tally.emitted} emitted, {tally.refused} refused", err=True)
    if tally.refused:
        raise typer.Exit(FAILED)


def _said(
    subject: str | None,
    type_: str | None,
    address: str | None,
    position: str | None,
    time: str | None,
    lifetime: str | None,
) -> dict[str, Any]:
    from datetime import UTC, datetime

    from utuple.cli.verbs.parsing import parse_duration_s, parse_position, parse_time

    said = {
        "subject": subject,
        "type": type_,
        "address": address,
        "position": parse_position(position) if position is not None else None,
        "time": parse_time("--time", time, datetime.now(UTC)) if time is not None else None,
        "lifetime_s": parse_duration_s("--lifetime", lifetime) if lifetime is not None else None,
    }
    return {name: value for name, value in said.items() if value is not None}


async def _emit_one(at: list[str], event: Event, tally: Tally) -> None:
    import utuple

    async with utuple.connect(*at) as space:
        await space.emit(**event)
        tally.emitted += 1


async def _emit_lines(at: list[str], defaults: dict[str, Any], tally: Tally) -> None:
    import utuple
    from utuple.cli.verbs.json_lines import event_of_line
    from utuple.cli.verbs.stdin import batches_of_lines

    async with utuple.connect(*at) as space:
        async for lines in _until_interrupted(batches_of_lines(), tally):
            first, events, numbers = tally.read + 1, [], []
            for line in lines:
                tally.read += 1
                if not line.strip():
                    continue
                try:
                    events.append(event_of_line(line, defaults))
                    numbers.append(tally.read)
                except utuple.InvalidInput as error:
                    tally.refuse(tally.read, error)
            try:
                await _registered(space, events)
                tally.emitted += len(events)
            except utuple.SomeRefused as some:
                tally.emitted += some.registered
                for number, refused in some.refused.items():
                    tally.refuse(numbers[number], refused)
            except (utuple.UTupleError, asyncio.CancelledError):  # Ctrl-C cancels
                typer.echo(
                    f"lines {first} to {tally.read} may not all be registered; those before are",
                    err=True,
                )
                raise


async def _until_interrupted(
    batches: AsyncIterator[list[bytes]], tally: Tally
) -> AsyncIterator[list[bytes]]:
    """Ctrl-C between two batches: all that was read is registered, or refused."""
    try:
        async for lines in batches:
            yield lines
    except asyncio.CancelledError:
        typer.echo(f"interrupted: {tally.emitted} emitted, {tally.refused} refused", err=True)
        raise


async def _registered(space: Space, events: list[Event]) -> None:
    """Durable when this returns. A lost answer is asked for once more: it may have been good."""
    from utuple import OutcomeUnknown

    if not events:
        return
    try:
        await space.emit_many(events)
    except OutcomeUnknown as error:
        await space.retry(error)
