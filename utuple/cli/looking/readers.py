"""`utuple readers`: who reads, how far each is behind, and forgetting one that will not come back."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED, told
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from utuple.admin.parking import Action
    from utuple.admin.programs import Server

readers = typer.Typer(help="Readers: list, parked, forget.", invoke_without_command=True)


@readers.callback()
@told
def list_readers(context: typer.Context, at: At = AT_DEFAULT, json: Json = False) -> None:
    """Every reader at every server: connected or since when away, and how many events it would be given now."""
    if context.invoked_subcommand is not None:
        return
    from utuple.admin.snapshot import snapshot_of
    from utuple.cli.looking.show import table_of_readers, table_of_terms

    servers = asyncio.run(snapshot_of(addresses(at))).servers
    if json:
        found = [
            {"server": one.name, **asdict(reader)} for one in servers for reader in one.readers
        ]
        print_json_block(found)
        return
    from rich.console import Console

    Console().print(table_of_readers(servers) or "Nobody reads.")
    if (terms := table_of_terms(servers)) is not None:
        Console().print(terms)


@readers.command()
@told
def forget(
    name: Annotated[str, typer.Argument(help="The reader's name, as `utuple readers` shows it.")],
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Forget a reader at every server: what waits for it is no longer kept for it. Again, it does nothing."""
    from utuple.admin import transport
    from utuple.admin.snapshot import snapshot_of

    async def work() -> tuple[dict[str, int], list[str]]:
        servers = (await snapshot_of(addresses(at))).servers
        held = [one.name for one in servers if _is_connected(one, name)]
        if held:
            return {}, held
        answers = {one.name: await transport.forget_reader(one.address, name) for one in servers}
        forgotten = {server: answer.formals for server, answer in answers.items() if answer.formals}
        return forgotten, [server for server, answer in answers.items() if answer.connected]

    forgotten, held = asyncio.run(work())
    if json:
        print_json_block({"reader": name, "forgotten": forgotten, "connected_at": held})
    elif forgotten:
        said = ", ".join(f"{server} ({count})" for server, count in forgotten.items())
        typer.echo(f"Reader {name!r} and its watches are forgotten at {said}.")
    elif not held:
        typer.echo(f"No server knows a reader {name!r}.")
    if held:
        where = ", ".join(held)
        typer.echo(
            f"Reader {name!r} is connected at {where}, and was not forgotten there: stop its program first.",
            err=True,
        )
        raise typer.Exit(FAILED)


@readers.command()
@told
def parked(
    name: Annotated[str, typer.Argument(help="The reader's name, as `utuple readers` shows it.")],
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Events; none: all that are parked."),
    ] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Deliver them again, from the first attempt.")
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Forget them for this reader.")] = False,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Deliveries that were tried too often, with what they say; --release or --drop them. They block nobody."""
    from utuple.admin.parking import parked_events
    from utuple.cli.looking.show_parked import print_parked

    chosen = [_event_id(one) for one in ids or ()]
    if release and drop:
        raise InvalidInput("--drop", drop, "goes without --release")
    action: Action = "release" if release else "drop" if drop else "list"
    found = asyncio.run(parked_events(addresses(at), name, action, chosen))
    if found is None:
        typer.echo(f"No server knows a reader {name!r} whose deliveries are settled.", err=True)
        raise typer.Exit(FAILED)
    print_parked(found, action, json=json)


def _event_id(text: str) -> bytes:
    try:
        return UUID(text).bytes
    except ValueError:
        raise InvalidInput(
            "ID", text, "must be an event's id, as `utuple readers parked` shows it"
        ) from None


def _is_connected(server: Server, name: str) -> bool:
    return any(one.reader == name and one.connected for one in server.readers)
