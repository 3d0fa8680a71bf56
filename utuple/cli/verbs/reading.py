"""`utuple watch`, `utuple read`, `utuple serve`: deliveries as JSON lines, each written at once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import AT_DEFAULT, At, addresses
from utuple.cli.outcome import FAILED
from utuple.cli.verbs import templates as t

if TYPE_CHECKING:
    from utuple import Drop
    from utuple.cli.verbs.json_lines import Delivered

Reader = Annotated[
    str | None,
    typer.Option("--reader", help="A name to go on under later; each line is acknowledged."),
]
Absent = Annotated[
    str,
    typer.Option(
        "--absent",
        metavar="POLICY",
        help="What becomes of events that arrive while the reader is away: keep, newest:N, oldest:N, latest_per_address, "
        "expire:SECONDS, respond_within:SECONDS or respond_within:SECONDS:SHARE. What is dropped is said on standard "
        "error, one JSON line each.",
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="End after so many lines.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", min=0, help="End after so many seconds; exit code 1 short of --limit."
    ),
]


def watch(
    subject: t.Subject,
    type_: t.Type,
    address: t.Addresses = None,
    prefix: t.Prefix = None,
    area: t.Area = None,
    since: t.Since = None,
    until: t.Until = None,
    where: t.Where = None,
    reader: Reader = None,
    absent: Absent = "keep",
    limit: Limit = None,
    timeout: Timeout = None,
    at: At = AT_DEFAULT,
) -> None:
    """Print matching events, the stored ones first, then live ones until Ctrl-C."""
    from utuple.cli.verbs.parsing import parse_absent, parse_where

    asked = t.place_of(address, prefix, area, since, until)
    asked |= {"where": parse_where(where or ()), "reader": reader}
    asked |= {"absent": parse_absent(absent), "on_dropped": _print_dropped}

    def watching(space: Any) -> Any:
        return space.watch(subject=subject, type=type_, **asked)

    _print_deliveries(addresses(at), watching, limit, timeout, acknowledge=reader is not None)


def read(
    subject: t.Subject,
    type_: t.Type,
    address: t.Addresses = None,
    prefix: t.Prefix = None,
    area: t.Area = None,
    since: t.Since = None,
    until: t.Until = None,
    where: t.Where = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="So many at most, the oldest first.")
    ] = None,
    newest: Annotated[
        bool, typer.Option("--newest", help="The newest first, by the events' time.")
    ] = False,
    timeout: Timeout = None,
    at: At = AT_DEFAULT,
) -> None:
    """Print the stored events that match, and end."""
    from utuple.cli.verbs.parsing import parse_where

    asked = t.place_of(address, prefix, area, since, until)
    asked |= {"limit": limit, "newest_first": newest}

    @asynccontextmanager
    async def stored(space: Any) -> AsyncIterator[Any]:
        yield space.read(subject=subject, type=type_, where=parse_where(where or ()), **asked)

    _print_deliveries(addresses(at), stored, limit, timeout, acknowledge=False, endless=False)


def serve(
    subject: t.Subject,
    type_: t.Type,
    address: Annotated[str, typer.Option("--address", help="The device's id.")],
    position: Annotated[str | None, typer.Option(metavar="LAT,LON")] = None,
    where: t.Where = None,
    reader: Reader = None,
    limit: Limit = None,
    timeout: Timeout = None,
    at: At = AT_DEFAULT,
) -> None:
    """Be a device: print the commands that come to it, until Ctrl-C."""
    import logging

    from utuple.cli.verbs.parsing import parse_position, parse_where
    from utuple.runtime.logs import log_to_stderr

    asked: dict[str, Any] = {"where": parse_where(where or ()), "reader": reader}
    if position is not None:
        asked["position"] = parse_position(position)

    def serving(space: Any) -> Any:
        return space.serve(subject=subject, type=type_, address=address, **asked)

    log_to_stderr("utuple", level=logging.WARNING)  # a device runs long: it says what it waits for
    _print_deliveries(addresses(at), serving, limit, timeout, acknowledge=reader is not None)


def _print_deliveries(
    at: list[str],
    opened: Any,
    limit: int | None,
    timeout: float | None,
    *,
    acknowledge: bool,
    endless: bool = True,
) -> None:
    printed = asyncio.run(_print_until(at, opened, limit, timeout, acknowledge))
    if endless and limit is not None and printed < limit:
        typer.echo(f"{printed} of {limit} came in {timeout:g} s", err=True)
        raise typer.Exit(FAILED)


async def _print_until(
    at: list[str], opened: Any, limit: int | None, timeout: float | None, acknowledge: bool
) -> int:
    """How many lines were printed before the limit, the time-out or the end of what is read."""
    import utuple

    printed = 0
    is_open = False
    try:
        async with asyncio.timeout(timeout), utuple.connect(*at) as space:
            source: AbstractAsyncContextManager[AsyncIterator[Delivered]] = opened(space)
            async with source as deliveries:
                is_open = True
                async for delivery in deliveries:
                    _print(delivery)
                    printed += 1
                    if acknowledge:
                        await delivery.ack()  # type: ignore[attr-defined]
                    if printed == limit:
                        break
    except TimeoutError:
        if not is_open:
            raise utuple.Unavailable(
                f"not open after {timeout:g} s: see `utuple status` for what is missing or does not answer"
            ) from None
    return printed


def _print_dropped(drop: Drop) -> None:
    """Beside the events, so that who reads those is not disturbed."""
    from utuple.cli.verbs.json_lines import line_of_drop

    sys.stderr.buffer.write(line_of_drop(drop) + b"\n")
    sys.stderr.buffer.flush()


def _print(delivery: Delivered) -> None:
    """Written at once: whoever reads us acts on it now."""
    from utuple.cli.verbs.json_lines import line_of_delivery

    sys.stdout.buffer.write(line_of_delivery(delivery) + b"\n")
    sys.stdout.buffer.flush()
